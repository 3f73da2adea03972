"""A GPT on one core in half formats and in float32, against PyTorch's autocast.

Both sides keep parameters and the optimizer's state in float32. Stratagem rounds parameters once
per step, and its layers compute in the half format. autocast rounds parameters when they are used,
and chooses the format of each function. With float16 both scale the loss dynamically.
"""

from peer_comparison.contender import Contender
from peer_comparison.contenders import Scenario, Settings, stratagem_row, torch_peer
from peer_comparison.ratios import Ratio

FORMATS = ("bfloat16", "float16")
# The aims of float32's step time over a format's, on a processor with units for the format.
OVER_FLOAT32 = {"bfloat16": 1.80}
ENDS = ("as installed", "with allocator")  # on GPUs only the first


def mixed_precision(settings: Settings, model: str) -> Scenario:
    """Return Stratagem's single in float32 and the half formats, and PyTorch's autocast."""
    has_aims = model == "gpt-small"

    def row(name: str, options: str = "") -> Contender:
        return stratagem_row(name, model, f"--strategy single --devices 1 {options}", settings)

    exact = row("single")
    ours = [row(f"single/{name}", f"--mixed-precision {name}") for name in FORMATS]
    peers: list[Contender] = []
    ratios: list[Ratio] = []
    for name, own in zip(FORMATS, ours, strict=True):
        made = torch_peer(f"autocast/{name}", model, f"autocast --format {name}", settings)
        peers += made
        ratios += [
            Ratio(
                f"{name}: PyTorch's autocast {end} over ours",
                (peer.name,),
                (own.name,),
                1.00 if has_aims else None,
            )
            for end, peer in zip(ENDS, made, strict=False)
        ]
        ratios.append(
            Ratio(
                f"{name}: our float32 over it",
                (exact.name,),
                (own.name,),
                OVER_FLOAT32.get(name) if has_aims else None,
            )
        )
    return Scenario((exact, *ours, *peers), tuple(ratios))
