"""A GPT on one core, data and tensor parallel over two, and pipelined over two, against PyTorch."""

from itertools import pairwise

from peer_comparison.contender import Contender
from peer_comparison.contenders import (
    DDP_VARIANTS,
    FSDP_VARIANTS,
    Scenario,
    Settings,
    names,
    stratagem_row,
    torch_peer,
    variants_of,
)
from peer_comparison.ratios import Ratio

MODEL = "gpt-small"
# The blocks at which the stages of each schedule begin. The head has the operations of 1.3 blocks.
# In a V-shaped schedule the first and the last stage are on one rank.
LOOPED, V_SHAPED = "blocks.3+blocks.5+blocks.7", "blocks.2+blocks.5+blocks.7"
OUR_CUTS = {
    "1f1b": "blocks.5",
    "zb_h1": "blocks.5",
    "zb_h2": "blocks.5",
    "interleaved_1f1b": LOOPED,
    "zb_v": V_SHAPED,
}
TORCH_CUTS = {
    "gpipe": "blocks.5",
    "1f1b": "blocks.5",
    "interleaved": LOOPED,
    "interleaved_zero_bubble": LOOPED,
    "zb_v": V_SHAPED,
    "dualpipe_v": V_SHAPED,
}


def _peers(settings: Settings, name: str, options: str) -> list[Contender]:
    """Return a peer for each kind of products; on CPUs with the allocator, and also with oneDNN."""
    return [
        torch_peer(f"{name}/{matmul}", MODEL, f"{options} --matmul {matmul}", settings)[-1]
        for matmul in settings.matmuls
    ]


def _tuned(settings: Settings, way: str, variants: dict[str, str]) -> list[Contender]:
    """Return the variants of a data-parallel strategy, for each kind of products."""
    return [
        contender
        for matmul in settings.matmuls
        for contender in variants_of(
            f"{way}/{matmul}", MODEL, f"{way} --matmul {matmul}", variants, settings
        )
    ]


def _row(settings: Settings, strategy: str, devices: int, options: str = "") -> Contender:
    """Return Stratagem's row, named by its strategy, schedule and split size."""
    parts = {"--schedule": "", "--split-size": "split:"}
    words = options.split()
    named = [parts[key] + value for key, value in pairwise(words) if key in parts]
    row = f"--strategy {strategy} --devices {devices} {options}"
    return stratagem_row("/".join([strategy, *named]), MODEL, row, settings)


def gpt(settings: Settings) -> Scenario:
    """Return the strategies of both sides on one and two ranks."""
    single, tensor = _row(settings, "single", 1), _row(settings, "tensor_parallel", 2)
    ddp = _row(settings, "ddp", 2)
    pipelines = [
        _row(
            settings,
            "pipeline",
            2,
            f"--ranks 2 --schedule {schedule} --cut {cut} --split-size {split}",
        )
        for schedule, cut in OUR_CUTS.items()
        for split in settings.splits
    ]
    installed = torch_peer("single", MODEL, "single", settings)[0]
    singles = _peers(settings, "single", "single")
    compiled = _peers(settings, "single/compiled", "single --compile")
    tensors = _peers(settings, "tensor_parallel", "tensor_parallel")
    replicas = [
        *_peers(settings, "ddp", "ddp"),
        *_peers(settings, "ddp/compiled", "ddp --compile"),
        *_peers(settings, "fsdp", "fsdp"),
        *_tuned(settings, "ddp", DDP_VARIANTS),
        *_tuned(settings, "fsdp", FSDP_VARIANTS),
    ]
    torch = [
        contender
        for schedule, cut in TORCH_CUTS.items()
        for split in settings.splits
        for contender in _peers(
            settings,
            f"{schedule}/split:{split}",
            f"pipelining --schedule {schedule} --cut {cut} --split-size {split}",
        )
    ]

    ours, allocator = (single.name,), (singles[0].name,)
    ratios = (
        Ratio("single: over PyTorch as installed", (installed.name,), ours, 1.70),
        Ratio("  allocator", (installed.name,), allocator),
        Ratio("  oneDNN products", allocator, names(singles[1:])),
        Ratio("single: over PyTorch's best", names(singles), ours, 1.05),
        Ratio("single: over PyTorch's compiled", names(compiled), ours, 1.00),
        Ratio("tensor_parallel: over our single", ours, (tensor.name,), 1.20),
        Ratio("tensor_parallel: over PyTorch's", names(tensors), (tensor.name,), 1.15),
        Ratio("ddp: over PyTorch's best DDP or FSDP2", names(replicas), (ddp.name,), 1.05),
        Ratio(
            "1f1b: over torch's 1f1b",
            names(torch, part="1f1b"),
            names(pipelines, part="1f1b"),
            1.15,
        ),
        Ratio(
            "zb_h2: over torch's DualPipeV",
            names(torch, part="dualpipe_v"),
            names(pipelines, part="zb_h2"),
        ),
        Ratio("best pipeline: over torch's best", names(torch), names(pipelines), 1.15),
    )
    ours_all = (single, tensor, ddp, *pipelines)
    peers = (installed, *singles, *compiled, *tensors, *replicas, *torch)
    return Scenario((*ours_all, *peers), ratios)
