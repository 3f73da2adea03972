"""data_parallel and ddp on two devices, against PyTorch's DDP and nn.DataParallel.

On CPUs nn.DataParallel has one device.
"""

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

# The aims of each model: step time of single over data_parallel, and of ddp over data_parallel.
AIMS = {"resnet50": (1.60, 0.95), "gpt-small": (None, 0.87)}


def ways_of(model: str, settings: Settings) -> dict[str, str]:
    """Return the variants of a peer of the model: names and options of train.py."""
    if model == "resnet50":
        return {name: f"--memory-format {name}" for name in ("nchw", "channels_last")}
    return {name: f"--matmul {name}" for name in settings.matmuls}


def data_parallel(settings: Settings, model: str) -> Scenario:
    """Return Stratagem's single, data_parallel and ddp, and PyTorch's nn.DataParallel and DDP."""
    over_single, within_ddp = AIMS[model]
    ways = ways_of(model, settings)
    one = "_on_one_device" if settings.device == "cpu" else ""
    ours = single, parallel, ddp = [
        stratagem_row(strategy, model, f"--strategy {strategy} --devices {devices}", settings)
        for strategy, devices in (("single", 1), ("data_parallel", 2), ("ddp", 2))
    ]
    wrapped, replicated = (
        [
            contender
            for way, options in ways.items()
            for contender in torch_peer(
                f"{name}/{way}", model, f"{strategy} {options}", settings
            )
        ]
        for name, strategy in ((f"data_parallel{one}", "data_parallel"), ("ddp", "ddp"))
    )
    replicated += [
        contender
        for way, options in ways.items()
        for contender in variants_of(
            f"ddp/{way}", model, f"ddp {options}", DDP_VARIANTS, settings
        )
    ]
    parallels = (parallel.name,)
    ratios = (
        Ratio("data_parallel: over our single", (single.name,), parallels, over_single),
        Ratio("data_parallel: our ddp over it", (ddp.name,), parallels, within_ddp),
        Ratio("data_parallel: nn.DataParallel over it", names(wrapped), parallels),
        Ratio("ddp: over PyTorch's best DDP", names(replicated), (ddp.name,)),
    )
    return Scenario((*ours, *wrapped, *replicated), ratios)
