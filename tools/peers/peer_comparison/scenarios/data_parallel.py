"""data_parallel and ddp on two devices, against nn.DataParallel, which uses one, and DDP."""

from peer_comparison.contenders import Scenario, Settings, names, stratagem_row, torch_peer
from peer_comparison.ratios import Ratio

# Of each model: how a peer is asked for (its name and options), and the aims of data_parallel over
# single and of ddp over data_parallel.
WAYS = {
    "resnet50": ({name: f"--memory-format {name}" for name in ("nchw", "channels_last")}, 1.60, 0.95),
    "gpt-small": ({name: f"--matmul {name}" for name in ("installed", "onednn")}, None, 0.87),
}


def data_parallel(settings: Settings, model: str) -> Scenario:
    """Return our three ways of one and two devices and the two of PyTorch."""
    ways, over_single, within_ddp = WAYS[model]
    ours = single, parallel, ddp = [
        stratagem_row(strategy, model, f"--strategy {strategy} --devices {devices}", settings)
        for strategy, devices in (("single", 1), ("data_parallel", 2), ("ddp", 2))
    ]
    one_device, replicated = (
        [
            contender
            for way, options in ways.items()
            for contender in torch_peer(
                f"{name}/{way}", model, f"{strategy} {options}", settings
            )
        ]
        for name, strategy in (("data_parallel_on_one_device", "data_parallel"), ("ddp", "ddp"))
    )
    parallels = (parallel.name,)
    ratios = (
        Ratio("data_parallel: over our single", (single.name,), parallels, over_single),
        Ratio("data_parallel: our ddp over it", (ddp.name,), parallels, within_ddp),
        Ratio("data_parallel: nn.DataParallel, on one device, over it", names(one_device), parallels),
        Ratio("ddp: over PyTorch's best DDP", names(replicated), (ddp.name,)),
    )
    return Scenario((*ours, *one_device, *replicated), ratios)
