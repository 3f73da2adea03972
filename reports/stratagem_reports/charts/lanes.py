"""Where a timeline's actions lie: lanes, idle gaps, and which kinds move data and do not compute.

Computing kinds fill a lane's upper part and copies and communication the strip below it, because on
some devices they run beside each other.
"""

import re
from collections.abc import Iterable

from ..results.timeline import Action

# Offset and height within a lane of height 1.
COMPUTE = (0.0, 0.68)
STRIP = (0.72, 0.2)

# A gap shorter than this fraction of the chart cannot be seen.
_SHORTEST_GAP = 2e-4

# What stands for a kind in its boxes.
LETTERS = {
    "forward": "F",
    "backward": "B",
    "backward_input": "I",
    "backward_weight": "W",
    "recompute": "C",
    "optimizer": "opt",
}

_MOVING = re.compile(
    r"unshard|copy|send|recv|receive|reduce|gather|broadcast|all_to_all|scatter|wait|transfer"
)


def is_moving(kind: str) -> bool:
    """True for kinds that copy or communicate."""
    return bool(_MOVING.search(kind))


def lanes(actions: list[Action]) -> list[str]:
    """The devices in their natural order: device 2 before device 10."""
    return sorted({action.device for action in actions}, key=_natural)


def gaps(actions: list[Action], start: float, end: float) -> list[tuple[float, float]]:
    """Where a device with these actions visibly runs nothing at all between `start` and `end`."""
    found, at = [], start
    for action in sorted(actions, key=lambda item: item.start_ms):
        found.append((at, action.start_ms))
        at = max(at, action.end_ms)
    found.append((at, end))
    return [(low, high) for low, high in found if high - low > _SHORTEST_GAP * (end - start)]


def kinds(actions: list[Action], known: Iterable[str]) -> list[str]:
    """The kinds that occur, the known ones in their order, then any others as they come."""
    present = dict.fromkeys(action.kind for action in actions)
    return [kind for kind in known if kind in present] + [
        kind for kind in present if kind not in known
    ]


def _natural(text: str) -> list:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]
