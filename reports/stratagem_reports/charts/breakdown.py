"""Stacked bars: where each row's step goes."""

from ..analysis.labels import percent, sentence, time_text
from ..analysis.selection import Selection
from ..results.load import Results
from . import marks
from .chart import Chart
from .chart_limits import fastest_bars
from .measured import axis_title
from .registry import Drawn, Registered
from .theme import HIDDEN, IDLE, part_color

_PARTS = ("compute", "communication_exposed", "wait", "bubble", "optimizer", "input_copy", "other")
_HIDDEN = "communication_hidden"
_HALF = 0.36


def draw(_: Results, selection: Selection) -> Drawn:
    """One horizontal bar a row; its parts add up to the step."""
    rows, shown = fastest_bars(selection)
    steps = {label: parts for label, item in rows if (parts := item.summary.breakdown_ms)}
    if not steps:
        return "no row has a breakdown of its step"
    parts = _present(list(steps.values()))
    totals = [sum(own.get(part, 0.0) for part in parts) for own in steps.values()]
    divisor, unit = marks.unit_of(max(totals))
    pieces = [
        piece
        for place, (label, own) in enumerate(steps.items())
        for piece in _pieces(place, label, own, parts, divisor)
    ]
    ends = [
        {"x": marks.short(total / divisor), "y": place, "text": f"mean {time_text(total)}"}
        for place, total in enumerate(totals)
    ]
    entries = [marks.Entry(sentence(part), marks.BOX, _fill(part)) for part in parts]
    if any(piece["color"] == HIDDEN for piece in pieces):
        ground = part_color("compute")
        entries.append(marks.Entry("Communication hidden", marks.BOX, HIDDEN, ground))
    layers = [marks.boxes(pieces), marks.texts(ends, align="left", dx=7)]
    high = max(totals) / divisor
    x = marks.quantity(f"Mean step time ({unit})", 0.0, high, grid=True, tickCount=marks.TICKS)
    return Chart(
        "Where the step goes",
        f"{selection.workload}; means over the devices and timed steps of a row",
        "A bar is as long as the mean step; other charts show the "
        f"{axis_title(selection).lower()}. Hidden communication lies inside compute and is striped "
        "there. Bubble: the device was idle because another stage had no output yet. "
        f"Wait: inside a collective before its last peer came.{shown}",
        f"Stacked bars. {marks.described(pieces)}",
        marks.lying(list(steps), x, layers),
        entries,
    )


def _present(steps: list[dict[str, float]]) -> list[str]:
    """The known parts in their order, then any others; hidden communication is no part."""
    present = dict.fromkeys(part for own in steps for part, value in own.items() if value > 0.0)
    known = [part for part in _PARTS if part in present]
    return known + [part for part in present if part not in (*_PARTS, _HIDDEN)]


def _pieces(
    place: int, label: str, own: dict[str, float], parts: list[str], divisor: float
) -> list[marks.Datum]:
    """The boxes of a bar; the end of compute is striped for as long as it hides communication."""
    total = sum(own.get(part, 0.0) for part in parts)
    found, at = [], 0.0
    for part in parts:
        width = own.get(part, 0.0)
        hidden = min(own.get(_HIDDEN, 0.0), width) if part == "compute" else 0.0
        at += width
        for start, color, name in (
            (at - width, _fill(part), sentence(part)),
            (at - hidden, HIDDEN, "Communication hidden"),
        ):
            if at > start:
                share = f"{time_text(at - start)}, {percent((at - start) / total)} of the step"
                found.append(
                    {
                        "start": marks.short(start / divisor),
                        "end": marks.short(at / divisor),
                        "top": place - _HALF,
                        "bottom": place + _HALF,
                        "color": color,
                        "words": marks.lines(label, f"{name} {share}"),
                    }
                )
    return found


def _fill(part: str) -> str:
    return IDLE if part == "bubble" else part_color(part)


CHARTS = (Registered("breakdown", 50, draw),)
