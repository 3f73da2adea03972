"""The stages of ZeRO, which shard the model state over two ranks, against PyTorch.

DistributedDataParallel shards nothing. ZeroRedundancyOptimizer shards the optimizer's state
(ZeRO-1). FSDP2 also shards parameters and gradients (ZeRO-3). PyTorch has no ZeRO-2.
"""

from dataclasses import dataclass

from peer_comparison.contender import Contender
from peer_comparison.contenders import (
    DDP_VARIANTS,
    FSDP_VARIANTS,
    Scenario,
    Settings,
    stratagem_row,
    torch_peer,
    variants_of,
)
from peer_comparison.ratios import Ratio

KEPT = "zero3/no_reshard"
# Stratagem's rows by name: the options, and the highest ratio of step time to ddp.
OURS = {
    "zero1": ("--strategy zero1", 1.00),
    "zero2": ("--strategy zero2", 1.02),
    "zero3": ("--strategy zero3", 1.08),
    KEPT: ("--strategy zero3 --no-reshard-after-forward", 1.04),
}
# Peers by name: the options, and Stratagem's row that shards as much.
TORCH = {
    "ddp": ("ddp", "ddp"),
    "zero1": ("zero1", "zero1"),
    "fsdp": ("fsdp", "zero3"),
    "fsdp/no_reshard": ("fsdp --no-reshard-after-forward", KEPT),
}


@dataclass(frozen=True)
class Way:
    """A variant of peers: further options, and with the allocator or as installed."""

    label: str  # part of the ratio's name
    name: str  # part of the contender's name
    options: str
    allocator: bool


# The aims of a peer's step time over that of Stratagem's row, by peer and variant.
AIMS = {
    ("zero1", "as installed"): 1.20,
    ("zero1", "with allocator"): 1.10,
    ("fsdp", "as installed"): 1.40,
    ("fsdp", "with allocator"): 1.20,
    ("fsdp", "with allocator, oneDNN"): 1.10,
}
# The aims over a cable, by its rate: for all variants of a peer, and of our float32 over bfloat16.
CABLE_AIMS = {"fsdp": {"1gbit": 1.30}}
OVER_BFLOAT16 = {"1gbit": 1.80}


def ways_of(model: str, settings: Settings) -> list[Way]:
    """Return the variants of the peers of a model.

    ResNet-50 runs in NCHW, because FSDP2 cuts contiguous parameters.
    """
    if model == "resnet50":
        ways = [("", "nchw", "--memory-format nchw")]
    else:
        products = {"installed": "", "onednn": ", oneDNN"}
        ways = [(products[name], name, f"--matmul {name}") for name in settings.matmuls]
    ends = [("as installed", False)]
    if settings.device == "cpu":
        ends.append(("with allocator", True))
    return [
        Way(end + product, name, options, allocator)
        for product, name, options in ways
        for end, allocator in ends
        if allocator or name != "onednn"
    ]


def zero(settings: Settings, model: str) -> Scenario:
    """Return ddp and the stages of ZeRO on two ranks of both sides.

    Over a cable Stratagem's zero3 of gpt-small also computes in bfloat16, which halves the bytes of
    parameters.
    """

    def row(name: str, options: str) -> Contender:
        return stratagem_row(name, model, f"{options} --devices 2", settings)

    ours = {"ddp": row("ddp", "--strategy ddp")}
    ours |= {name: row(name, options) for name, (options, _) in OURS.items()}
    has_aims = model == "gpt-small"
    ratios = [
        Ratio(
            f"{name}: over our ddp",
            (ours[name].name,),
            (ours["ddp"].name,),
            aim if has_aims else None,
            at_most=True,
        )
        for name, (_, aim) in OURS.items()
    ]
    peers: list[Contender] = []
    for peer, (strategy, counterpart) in TORCH.items():
        for way in ways_of(model, settings):
            both = torch_peer(f"{peer}/{way.name}", model, f"{strategy} {way.options}", settings)
            contender = both[int(way.allocator)]
            peers.append(contender)
            aim = AIMS.get((peer, way.label)) if has_aims else None
            ratios.append(
                Ratio(
                    f"{counterpart}: torch's {peer} {way.label}",
                    (contender.name,),
                    (ours[counterpart].name,),
                    aim,
                    cable_aims=CABLE_AIMS.get(peer, {}) if has_aims else {},
                )
            )
    tuned = {"fsdp": FSDP_VARIANTS, "fsdp/no_reshard": FSDP_VARIANTS, "ddp": DDP_VARIANTS}
    for peer, variants in tuned.items():
        strategy, counterpart = TORCH[peer]
        ways = {way.name: way.options for way in ways_of(model, settings)}
        for name, options in ways.items():
            peers += variants_of(
                f"{peer}/{name}", model, f"{strategy} {options}", variants, settings
            )
        begins = tuple(f"torch/{peer}/{name}" for name in ways)
        candidates = tuple(each.name for each in peers if each.name.startswith(begins))
        ratios.append(
            Ratio(f"{counterpart}: torch's best {peer}", candidates, (ours[counterpart].name,))
        )
    if settings.cable and has_aims:
        half = row("zero3/bfloat16", "--strategy zero3 --mixed-precision bfloat16")
        name = "zero3: our float32 over bfloat16"
        ratios.append(Ratio(name, (ours["zero3"].name,), (half.name,), cable_aims=OVER_BFLOAT16))
        ours["zero3/bfloat16"] = half
    return Scenario((*ours.values(), *peers), tuple(ratios))
