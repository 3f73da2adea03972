"""ResNet-50 with each strategy on one or several devices: a first look at a machine.

Both sides hold images in channels_last. If several devices share a GPU, the ranks communicate by
Gloo, and PyTorch's strategies that need a GPU per device are left out.
"""

from peer_comparison.contenders import Scenario, Settings, names, stratagem_row, torch_peer
from peer_comparison.ratios import Ratio
from peer_comparison.scenarios.resnet import BLOCKS

MODEL = "resnet50"
OURS = ("single", "data_parallel", "ddp", "pipeline")
TORCH = ("single", "data_parallel", "ddp", "pipelining")
NEED_A_GPU_EACH = ("data_parallel", "pipelining")


def cut_for(settings: Settings) -> str:
    """Return the cut into one stage per device: the first blocks of all stages but the first.

    Two devices have the first of --cuts. More devices have stages of about as many blocks each.
    """
    if settings.devices == 2:
        return settings.cuts[0]
    starts = (len(BLOCKS) * stage // settings.devices for stage in range(1, settings.devices))
    return "+".join(BLOCKS[start] for start in starts)


def our_devices(settings: Settings, strategy: str) -> str:
    """Return the options of a row's devices and of the backend of its ranks."""
    if strategy == "single":
        return "--devices 1"
    options = f"--devices {settings.devices}"
    if strategy == "pipeline":
        options += f" --ranks {settings.devices}"
    if settings.shares_gpus:
        numbers = (str(index % max(1, settings.gpus)) for index in range(settings.devices))
        options += f" --device-ids {'+'.join(numbers)}"
        if strategy != "data_parallel":
            options += " --backend gloo"
    return options


def every_way(settings: Settings) -> Scenario:
    """Return single, data_parallel, ddp and a pipeline of both sides."""
    stages = f"--schedule 1f1b --cut {cut_for(settings)} --split-size {settings.splits[0]}"
    extra = {"pipeline": stages, "pipelining": stages}
    ours = {}
    for way in OURS:
        options = f"--strategy {way} {our_devices(settings, way)} {extra.get(way, '')}"
        ours[way] = stratagem_row(way, MODEL, options, settings)
    left_out = NEED_A_GPU_EACH if settings.shares_gpus else ()
    torch = {
        way: torch_peer(
            way, MODEL, f"{way} --memory-format channels_last {extra.get(way, '')}", settings
        )
        for way in TORCH
        if way not in left_out
    }
    ratios = [
        Ratio(f"{way}: torch's {peer} over ours", names(torch[peer]), (ours[way].name,))
        for way, peer in zip(OURS, TORCH, strict=True)
        if peer in torch
    ]
    ratios += [
        Ratio(f"{way}: our single over it", (ours["single"].name,), (ours[way].name,))
        for way in OURS[1:]
    ]
    peers = [contender for both in torch.values() for contender in both]
    return Scenario((*ours.values(), *peers), tuple(ratios))
