"""ResNet-50 by each way on one device and on several, once: a first look at a machine.

Both sides hold images in channels_last. Where several devices share a GPU, the ranks talk by Gloo,
and PyTorch's ways that need GPUs of their own are left out.
"""

from peer_comparison.contenders import Scenario, Settings, names, stratagem_row, torch_peer
from peer_comparison.ratios import Ratio
from peer_comparison.scenarios.resnet import BLOCKS

MODEL = "resnet50"
OURS = ("single", "data_parallel", "ddp", "pipeline")
TORCH = ("single", "data_parallel", "ddp", "pipelining")
NEED_A_GPU_EACH = ("data_parallel", "pipelining")


def cut_for(settings: Settings) -> str:
    """Return the first blocks of the stages after the first: one a device, of as many blocks."""
    if settings.devices == 2:
        return settings.cuts[0]
    starts = (len(BLOCKS) * stage // settings.devices for stage in range(1, settings.devices))
    return "+".join(BLOCKS[start] for start in starts)


def our_devices(settings: Settings, strategy: str) -> str:
    """Return the options of a row's devices and of what connects its ranks."""
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
