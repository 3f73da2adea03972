"""From DataParallel to DDP: what each change of one cost saves, as a waterfall."""

from itertools import pairwise

from ..analysis.labels import significant, time_text
from ..analysis.selection import Selection
from ..results.load import Results, Row
from . import marks
from .chart import Chart
from .measured import axis_title, error_label, reach
from .registry import Drawn, Registered
from .theme import TEXT, pair, strategy_color

# The options in the order of the ladder: the value that takes a cost away, and what it does.
_CHANGES = {
    "loss_on": ("replicas", "loss on the replicas"),
    "replicate": ("kept", "copies kept"),
    "reduce": ("overlapped", "reduce overlapped"),
    "update": ("everywhere", "update everywhere"),
}
_PROCESSES = "a process a device: DDP"
_SAVED, _LOST = pair("#009E73", "#2BB88D"), pair("#D6604D", "#D6604D")
_HALF = 0.33


def draw(_: Results, selection: Selection) -> Drawn:
    """DataParallel's step as a point, and each change as a bar between two rows' steps."""
    steps = ladder(selection)
    if len(steps) < 2:
        return None
    found = [row for _, row in steps]
    ends = [value for row in found for value in (row.time_ms, *reach(row))]
    divisor, unit = marks.unit_of(max(ends))
    error = error_label(selection, found)
    bars = [
        _change(place, name, before, after, divisor)
        for place, ((_, before), (name, after)) in enumerate(pairwise(steps), 1)
    ]
    start = _start(*steps[0], divisor)
    entries = [
        marks.Entry("saved", marks.BOX, _SAVED),
        marks.Entry("lost", marks.BOX, _LOST),
        marks.Entry(error, marks.INTERVAL, stroke=TEXT),
    ]
    layers = [
        marks.boxes(bars),
        marks.intervals([start, *bars], along="x"),
        marks.dots([start], shape="diamond", size=110, fill=strategy_color("data_parallel")),
        marks.texts([start, *bars], x="last", align="left", dx=9),
    ]
    low, high = (1.08 * min(ends) - 0.08 * max(ends)) / divisor, max(ends) / divisor
    title = f"{axis_title(selection)} ({unit})"
    x = marks.quantity(title, low, high, grid=True, tickCount=marks.TICKS)
    return Chart(
        "From DataParallel to DDP",
        selection.workload,
        "Each bar is one change: it reaches from the step before the change to the step with it "
        f"and all those above. Error bar: of the step with the change, {error}. The axis does not "
        "begin at zero.",
        f"Bars. {marks.described([start, *bars])}",
        marks.lying([name for name, _ in steps], x, layers, each=40),
        entries,
    )


def ladder(selection: Selection) -> list[tuple[str, Row]]:
    """DataParallel, each row that has one change more than the one before, and DDP, named."""
    rows = {
        _changes(row): row for row in reversed(selection.rows) if row.strategy == "data_parallel"
    }
    at: frozenset[str] = frozenset()
    if at not in rows:
        return []
    found = [("DataParallel", rows[at])]
    while following := [name for name in _CHANGES if name not in at and at | {name} in rows]:
        at |= {following[0]}
        found.append((_CHANGES[following[0]][1], rows[at]))
    ddp = next((row for row in selection.rows if row.strategy == "ddp"), None)
    return [*found, (_PROCESSES, ddp)] if ddp else found


def _changes(row: Row) -> frozenset[str]:
    return frozenset(name for name, (value, _) in _CHANGES.items() if row.option(name) == value)


def _start(name: str, row: Row, divisor: float) -> marks.Datum:
    text = time_text(row.time_ms)
    at = {"x": marks.short(row.time_ms / divisor), "text": text, "words": marks.lines(name, text)}
    return _row(0, row, divisor) | at


def _change(place: int, name: str, before: Row, after: Row, divisor: float) -> marks.Datum:
    saved = before.time_ms - after.time_ms
    sign = "\u2212" if saved > 0 else "+"
    change = f"{sign}{significant(abs(saved))} ms"
    told = f"{'saves' if saved > 0 else 'costs'} {time_text(abs(saved))}"
    ends = sorted((before.time_ms / divisor, after.time_ms / divisor))
    return _row(place, after, divisor) | {
        "start": marks.short(ends[0]),
        "end": marks.short(ends[1]),
        "top": place - _HALF,
        "bottom": place + _HALF,
        "color": _SAVED if saved > 0 else _LOST,
        "text": f"{change}, {time_text(after.time_ms)}",
        "words": marks.lines(name, f"{told}, leaves {time_text(after.time_ms)}"),
        "last": marks.short(max(ends[1], reach(after)[1] / divisor)),
    }


def _row(place: int, row: Row, divisor: float) -> marks.Datum:
    """Where the row stands, and its error bar."""
    low, high = (value / divisor for value in reach(row))
    return {
        "y": place,
        "low": marks.short(low),
        "high": marks.short(high),
        "last": marks.short(max(high, row.time_ms / divisor)),
    }


CHARTS = (Registered("data_parallel_ladder", 85, draw),)
