"""ResNet-50 data parallel on two ranks, against PyTorch's DistributedDataParallel."""

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

MODEL = "resnet50"


def resnet_ddp(settings: Settings) -> Scenario:
    """Return Stratagem's single and ddp, and PyTorch's DDP in both memory formats and compiled."""
    single = stratagem_row("single", MODEL, "--strategy single --devices 1", settings)
    ddp = stratagem_row("ddp", MODEL, "--strategy ddp --devices 2", settings)
    nchw, last, compiled = (
        torch_peer(f"ddp/{name}", MODEL, f"ddp --memory-format {options}", settings)
        for name, options in (
            ("nchw", "nchw"),
            ("channels_last", "channels_last"),
            ("channels_last/compiled", "channels_last --compile"),
        )
    )
    tuned = variants_of(
        "ddp/channels_last", MODEL, "ddp --memory-format channels_last", DDP_VARIANTS, settings
    )
    ours, best = (ddp.name,), "ddp: over PyTorch's best"
    ratios = (
        Ratio("ddp: all, over PyTorch DDP NCHW", names(nchw, False), ours),
        Ratio("  layout: NCHW to channels_last", names(nchw, False), names(last, False)),
        Ratio("  allocator: NCHW", names(nchw, False), names(nchw, True)),
        Ratio(f"{best} as installed", names(nchw + last, False), ours, 1.10),
        Ratio(f"{best} with allocator", names(nchw + last, True) + names(tuned), ours, 1.05),
        Ratio("ddp: over compiled channels_last", names(compiled), ours, 1.00),
        Ratio("ddp: speed-up over single (2.00 is ideal)", (single.name,), ours, 1.70),
    )
    return Scenario((single, ddp, *nchw, *last, *compiled, *tuned), ratios)
