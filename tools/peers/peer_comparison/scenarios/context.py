"""Context parallelism of a GPT, against PyTorch's ring attention and Ulysses.

The ranks share the positions of each sample. Stratagem's gather and PyTorch's rotation by allgather
collect all keys and values at once. Stratagem's ring and PyTorch's rotation by alltoall pass them
from rank to rank.
"""

from collections.abc import Sequence

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

ORDERS = ("zigzag", "contiguous")
SENDS_AT_ONCE, SENDS_ROUND = "allgather", "alltoall"


def _peers(settings: Settings, model: str, name: str, options: str) -> list[Contender]:
    """Return a peer with the allocator, also tuned and compiled, for each kind of products."""
    made: list[Contender] = []
    for matmul in settings.matmuls:
        whole, chosen = f"{name}/{matmul}", f"{options} --matmul {matmul}"
        made.append(torch_peer(whole, model, chosen, settings)[-1])
        made += variants_of(whole, model, chosen, DDP_VARIANTS, settings)
        compiled = f"{name}/compiled/{matmul}", model, f"{chosen} --compile"
        made.append(torch_peer(*compiled, settings)[-1])
    return made


def context(settings: Settings, model: str) -> Scenario:
    """Return all exchanges of both sides on two ranks, and Stratagem's single."""

    def row(name: str, options: str) -> Contender:
        return stratagem_row(name, model, f"--strategy {options}", settings)

    def ours(exchange: str, orders: Sequence[str]) -> list[Contender]:
        options = f"context_parallel --devices 2 --context-exchange {exchange}"
        return [
            row(f"context_parallel/{exchange}/{order}", f"{options} --context-order {order}")
            for order in orders
        ]

    single = row("single", "single --devices 1")
    heads = row("context_parallel/heads", "context_parallel --devices 2 --context-exchange heads")
    ring, gather = ours("ring", ORDERS), ours("gather", ORDERS)
    ulysses = _peers(settings, model, "ulysses", "ulysses")
    rings = [
        contender
        for order in ORDERS
        for rotation in (SENDS_AT_ONCE, SENDS_ROUND)
        for contender in _peers(
            settings,
            model,
            f"ring_attention/{order}/{rotation}",
            f"ring_attention --order {order} --rotate {rotation}",
        )
    ]
    rows = [heads, *ring, *gather]
    ratios = (
        Ratio("heads: torch's best Ulysses over ours", names(ulysses), (heads.name,)),
        Ratio("ring: torch's best ring over ours", names(rings), names(ring)),
        Ratio("  that passes on", names(rings, part=SENDS_ROUND), names(ring)),
        Ratio("gather: torch's best ring over ours", names(rings), names(gather)),
        Ratio("  that gathers", names(rings, part=SENDS_AT_ONCE), names(gather)),
        Ratio("best: torch's best over ours", names([*ulysses, *rings]), names(rows)),
        Ratio("heads: our single over it", (single.name,), (heads.name,)),
        Ratio("ring: our single over it", (single.name,), names(ring)),
        Ratio("gather: our single over it", (single.name,), names(gather)),
    )
    return Scenario((single, *rows, *ulysses, *rings), ratios)
