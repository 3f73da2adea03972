"""A Llama on one core, against PyTorch."""

from peer_comparison.contenders import Scenario, Settings, names, stratagem_row, torch_peer
from peer_comparison.ratios import Ratio

MODEL = "llama-small"


def llama(settings: Settings) -> Scenario:
    """Return single of both sides, for PyTorch also compiled."""
    ours = stratagem_row("single", MODEL, "--strategy single --devices 1", settings)
    installed = torch_peer("single", MODEL, "single", settings)[0]
    singles, compiled = (
        [
            torch_peer(f"{name}/{matmul}", MODEL, f"{options} --matmul {matmul}", settings)[-1]
            for matmul in settings.matmuls
        ]
        for name, options in (("single", "single"), ("single/compiled", "single --compile"))
    )
    ratios = (
        Ratio("single: over PyTorch as installed", (installed.name,), (ours.name,)),
        Ratio("single: over PyTorch's best", names(singles), (ours.name,), 1.05),
        Ratio("single: over PyTorch's compiled", names(compiled), (ours.name,)),
    )
    return Scenario((ours, installed, *singles, *compiled), ratios)
