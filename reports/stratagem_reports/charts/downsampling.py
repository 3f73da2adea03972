"""Keeps a timeline of thousands of actions cheap: those too short to be seen are drawn together.

Time is cut into slots. Of the actions that are shorter than a slot, those of one kind on one device
in one slot become one box, as long as they were together. So every kind keeps its share of the
time, and an idle device stays idle for as long as it was.
"""

from msgspec.structs import replace

from ..analysis.labels import time_text
from ..results.timeline import Action
from .lanes import is_moving

MOST_ACTIONS = 400
# A slot starts as about a pixel and grows until the boxes are few enough.
_SLOTS = 1000


def readable(actions: list[Action], most: int = MOST_ACTIONS) -> tuple[list[Action], str]:
    """At most `most` boxes where that can be, and words for the caption; few actions stay as is."""
    if len(actions) <= most:
        return actions, ""
    start = min(action.start_ms for action in actions)
    span = max(action.end_ms for action in actions) - start
    slots, ordered = _SLOTS, sorted(actions, key=lambda action: action.start_ms)
    boxes = _pooled(ordered, start, span / slots)
    while len(boxes) > most and slots > 1:
        slots = slots * 3 // 4
        boxes = _pooled(ordered, start, span / slots)
    return boxes, (
        f" Of {len(actions):,} actions those shorter than {time_text(span / slots)} are drawn "
        "together: in each slot of that length every kind has as much as it took."
    )


def _pooled(actions: list[Action], start: float, slot: float) -> list[Action]:
    """Boxes for the actions, which come in the order of their starts."""
    boxes = []
    pools: dict[tuple[str, int, str], list[Action]] = {}
    for action in actions:
        if action.end_ms - action.start_ms >= slot:
            boxes.append(action)
            continue
        middle = (action.start_ms + action.end_ms) / 2.0 - start
        pools.setdefault((action.device, int(middle / slot), action.kind), []).append(action)
    reached: dict[tuple[str, int], float] = {}
    for (device, index, kind), pool in pools.items():
        box = _box(pool, reached.get((device, index), 0.0))
        boxes.append(box)
        if not is_moving(kind):
            reached[device, index] = box.end_ms
    return boxes


def _box(pool: list[Action], free_from: float) -> Action:
    """One box for actions of a kind; a computing one stands behind those before it in its slot."""
    first, length = pool[0], sum(action.end_ms - action.start_ms for action in pool)
    begin = first.start_ms
    if is_moving(first.kind):
        length = min(length, max(action.end_ms for action in pool) - begin)
    else:
        begin = max(begin, free_from)
    return replace(
        first,
        stage=_shared([action.stage for action in pool]),
        micro_batch=_shared([action.micro_batch for action in pool]),
        start_ms=begin,
        end_ms=begin + length,
        count=len(pool),
    )


def _shared(values: list[int | None]) -> int | None:
    """The value that all have, else None."""
    return values[0] if len(set(values)) == 1 else None
