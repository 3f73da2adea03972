"""Recomputation of a GPT, on one core and replicated on two ranks, against PyTorch.

Both sides keep only the inputs of groups of layers (Chen et al. 2016, "Training Deep Nets with
Sublinear Memory Cost"). A group of Stratagem is a layer, and with ddp a bucket of gradients. A
group of PyTorch is a block or a run of blocks. The last run keeps its activations, so that with
fewer runs PyTorch recomputes less and holds more.
"""

from peer_comparison.contender import Contender
from peer_comparison.contenders import (
    DDP_VARIANTS,
    Scenario,
    Settings,
    names,
    stratagem_row,
    torch_peer,
    variants_of,
)
from peer_comparison.ratios import Ratio

# The numbers of runs into which checkpoint_sequential cuts the blocks; first, a run per block.
SEGMENTS = {"gpt-small": (8, 4, 2), "gpt-tiny": (2,)}
# The sizes in MiB of our gradient buckets, the groups of ddp; 25 would hold all of gpt-tiny.
BUCKETS = {"gpt-small": (25, 5), "gpt-tiny": (0.1,)}
KINDS = {"": "", "/reentrant": "--reentrant"}  # kinds of checkpoints
FULL = "--recompute full"


def recomputation(settings: Settings, model: str) -> Scenario:
    """Return single and ddp of both sides, without and with recomputation."""

    def row(name: str, options: str) -> Contender:
        return stratagem_row(name, model, f"--strategy {options}", settings)

    def peers(name: str, options: str) -> list[Contender]:
        """Return a peer, on CPUs with the allocator, for each kind of products."""
        return [
            torch_peer(f"{name}/{matmul}", model, f"{options} --matmul {matmul}", settings)[-1]
            for matmul in settings.matmuls
        ]

    def replicas(name: str, options: str) -> list[Contender]:
        """Return DDP, untuned and tuned, for each kind of products."""
        return peers(name, options) + [
            contender
            for matmul in settings.matmuls
            for contender in variants_of(
                f"{name}/{matmul}", model, f"{options} --matmul {matmul}", DDP_VARIANTS, settings
            )
        ]

    single, ddp = row("single", "single --devices 1"), row("ddp", "ddp --devices 2")
    single_full = row("single/full", f"single --devices 1 {FULL}")
    ddp_full = [
        row(f"ddp/full/bucket:{size}", f"ddp --devices 2 {FULL} --bucket-mb {size}")
        for size in BUCKETS[model]
    ]

    each_block = f"segments:{SEGMENTS[model][0]}"
    way = f"single {FULL} --segments {SEGMENTS[model][0]}"
    installed = torch_peer(f"single/full/{each_block}", model, way, settings)[0]
    kept = peers("single", "single")
    repeated = [
        contender
        for segments in SEGMENTS[model]
        for kind, extra in KINDS.items()
        for contender in peers(
            f"single/full/segments:{segments}{kind}", f"single {FULL} --segments {segments} {extra}"
        )
    ]
    compiled = peers("single/full/compiled", f"single {FULL} --compile")
    ddp_kept = replicas("ddp", "ddp")
    ddp_repeated = [
        *replicas("ddp/full", f"ddp {FULL}"),
        *peers(f"ddp/full/{each_block}", f"ddp {FULL} --segments {SEGMENTS[model][0]}"),
    ]

    alike = names(repeated, part=each_block)
    ours, ours_ddp = (single_full.name,), names(ddp_full)
    ratios = (
        Ratio("single: PyTorch as installed over ours", (installed.name,), ours),
        Ratio("single: PyTorch's best of a block a segment over ours", alike, ours),
        Ratio("single: PyTorch's best over ours", names(repeated), ours),
        Ratio("single: PyTorch's compiled over ours", names(compiled), ours),
        Ratio("single: ours over our none", ours, (single.name,)),
        Ratio("single: PyTorch's of a block a segment over its none", alike, names(kept)),
        Ratio("single: PyTorch's best over its none", names(repeated), names(kept)),
        Ratio("ddp: PyTorch's best over ours", names(ddp_repeated), ours_ddp),
        Ratio("ddp: ours over our none", ours_ddp, (ddp.name,)),
        Ratio("ddp: PyTorch's best over its none", names(ddp_repeated), names(ddp_kept)),
    )
    rows = (single, single_full, ddp, *ddp_full)
    of_one = (installed, *kept, *repeated, *compiled)
    return Scenario((*rows, *of_one, *ddp_kept, *ddp_repeated), ratios)
