"""Step time against peak memory: every row a point, and the frontier that no other row beats."""

import textwrap
from typing import NamedTuple

from ..analysis.labels import significant
from ..analysis.selection import Selection
from ..results.load import Results, Row
from . import marks
from .chart import Chart
from .chart_limits import labelled, without_shared
from .measured import axis_title, color_key, error_label, point
from .registry import Drawn, Registered
from .theme import MUTED, TEXT, strategy_color

_WIDTH, _HEIGHT = 560, 380
_NARROW, _LETTERS = 230, 18  # the width of a narrow chart, and of a line of a name there
# Pixels, of the names' letters and lines, and around a point.
_LETTER, _LINE, _ROOM = 5.8, 14.0, 8.0
# Where a name may stand beside its point: align, dx, dy. The best come first; below the frontier
# there are no other points.
_BELOW = (("right", -8, 12), ("right", -10, 0), ("center", 0, 17))
_SIDES = (
    ("left", 10, 0),
    ("left", 8, -12),
    ("center", 0, -16),
    ("left", 8, 12),
    ("right", -8, -12),
    *_BELOW,
)


class Span(NamedTuple):
    """What an axis shows."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Where a value stands on the axis, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


def draw(_: Results, selection: Selection) -> Drawn:
    """To the lower left is better; the frontier is the best time that an amount of memory buys."""
    found = [(label, item) for label, item in labelled(selection) if _memory(item)]
    if len(found) < 2:
        return "fewer than two rows have their devices' memory"
    error = error_label(selection, [item for _, item in found])
    bytes_in_unit, byte_unit = marks.byte_unit_of(max(_memory(item) for _, item in found))
    divisor, unit = marks.unit_of(max(item.time_ms for _, item in found))
    names, shared = without_shared([label for label, _ in found])
    rows = []
    for name, (label, item) in zip(names, found, strict=True):
        memory = _memory(item) / bytes_in_unit
        words = f"{significant(memory)} {byte_unit} on the fullest device"
        row = point(item, divisor, label, error, words)
        row |= {"x": marks.short(memory), "y": row["value"], "text": name}
        rows.append(row | {"color": strategy_color(color_key(selection, item))})
    frontier = _frontier(rows)
    x = _span([row["x"] for row in rows])
    y = _span([row[key] for row in rows for key in ("low", "high")])
    named = {width: _named(frontier, rows, x, y, width) for width in (_WIDTH, _NARROW)}
    entries = [
        marks.Entry("frontier", marks.LINE, stroke=TEXT),
        marks.Entry(error, marks.INTERVAL, stroke=MUTED),
    ]
    layers = [
        *_frontier_layers(frontier, x, y),
        marks.intervals(rows, color=MUTED),
        marks.layer(rows, _DOT, x="x", y="y", fill="color", tooltip="words"),
        marks.dots(frontier, size=150, fill="transparent", stroke=TEXT, strokeWidth=1.5),
        *_name_layers(named[_WIDTH], "!narrow"),
        *_name_layers(named[_NARROW], "narrow"),
    ]
    unnamed = min(sum(map(len, groups.values())) for groups in named.values()) < len(rows)
    hidden = " A name is left out where it would cover others; the table of all rows has them all."
    held = f"Peak memory of the fullest device ({byte_unit})"
    across = marks.quantity(held, *x, grid=True, tickCount=marks.TICKS)
    along = marks.quantity(f"{axis_title(selection)} ({unit})", *y, grid=True, tickCount=6)
    return Chart(
        "Time and memory",
        f"{selection.workload}; further to the lower left is better",
        "Every row by its time and the memory of its fullest device. Line: the frontier; no other "
        f"row is both as fast and as small as one on it. Error bar: {error}.{shared}"
        f"{hidden if unnamed else ''}",
        f"Points. {marks.described(rows)} On the frontier: "
        f"{', '.join(row['text'] for row in frontier)}.",
        marks.view(_WIDTH, _HEIGHT, across, along, layers) | marks.narrowing(_WIDTH + 60),
        entries,
    )


_DOT = {"type": "point", "shape": "circle", "size": 80, "opacity": 1, "strokeWidth": 0}


def _memory(item: Row) -> float:
    return item.summary.peak_memory_bytes or 0.0


def _frontier(rows: list[marks.Datum]) -> list[marks.Datum]:
    """The rows than which none is both as fast and as small, from the smallest on."""
    found: list[marks.Datum] = []
    for row in sorted(rows, key=lambda row: (row["x"], row["y"])):
        if not found or row["y"] < found[-1]["y"]:
            found.append(row)
    return found


def _span(values: list[float]) -> Span:
    """With room for the names; an axis that begins near zero begins there."""
    low, high = min(values), max(values)
    room = high - low if high - low > 0.02 * high else 0.5 * high
    return Span(marks.short(max(0.0, low - 0.2 * room)), marks.short(high + 0.2 * room))


def _steps(
    frontier: list[marks.Datum], x: Span, y: Span
) -> tuple[list[marks.Datum], list[marks.Datum]]:
    """The lines across, each to where the next row is smaller still, and those down to a row."""
    ends = [row["x"] for row in frontier[1:]] + [x.high]
    starts = [y.high] + [row["y"] for row in frontier[:-1]]
    across = [
        {"x": row["x"], "y": row["y"], "to": end} for row, end in zip(frontier, ends, strict=True)
    ]
    down = [
        {"x": row["x"], "y": start, "to": row["y"]}
        for row, start in zip(frontier, starts, strict=True)
    ]
    return across, down


def _frontier_layers(frontier: list[marks.Datum], x: Span, y: Span) -> list[marks.Layer]:
    across, down = _steps(frontier, x, y)
    rule = {"type": "rule", "color": TEXT, "strokeWidth": 1.6, "strokeCap": "round"}
    return [
        marks.layer(across, rule, x="x", x2="to", y="y"),
        marks.layer(down, rule, x="x", y="y", y2="to"),
    ]


def _name_layers(named: dict[tuple, list[marks.Datum]], condition: str) -> list[marks.Layer]:
    """The names by their sides, drawn where the condition on the view's parameter holds."""
    return [
        part | {"transform": [{"filter": condition}]}
        for (align, dx, dy), group in named.items()
        for part in marks.texts(group, align=align, dx=dx, dy=dy, lineHeight=_LINE)["layer"]
    ]


def _named(
    frontier: list[marks.Datum], rows: list[marks.Datum], x: Span, y: Span, width: int
) -> dict[tuple, list[marks.Datum]]:
    """The rows whose names have room, by the side where it is; the chart is `width` pixels wide.

    The names of the frontier are placed first. They cover lines where no free place is left.
    """

    def pixels(across: float, along: float) -> Point:
        return width * x.share(across), _HEIGHT * (1.0 - y.share(along))

    taken = [_around(pixels(row["x"], row["y"]), _ROOM) for row in rows]
    drawn = []
    for row in rows:
        low, high = (pixels(row["x"], row[end]) for end in ("low", "high"))
        drawn.append(_around(low, 3.0, high))
    for lines, end in zip(_steps(frontier, x, y), ("x", "y"), strict=True):
        for line in lines:
            one = pixels(line["x"], line["y"])
            other = pixels(*({"x": line["x"], "y": line["y"]} | {end: line["to"]}).values())
            drawn.append(_around(one, 1.0, other))
    placed: dict[tuple, list[marks.Datum]] = {}
    for row in frontier + [row for row in rows if row not in frontier]:
        at = pixels(row["x"], row["y"])
        text = row["text"] if width == _WIDTH else textwrap.fill(row["text"], _LETTERS)
        sides = dict.fromkeys((_BELOW if row in frontier else ()) + _SIDES)
        boxes = {side: box for side, box in (_name_box(text, at, one) for one in sides)}
        for avoided in (taken + drawn, taken) if row in frontier else (taken + drawn,):
            free = (side for side, box in boxes.items() if _fits(box, width, avoided))
            if side := next(free, None):
                taken.append(boxes[side])
                placed.setdefault(side, []).append(row | {"text": text})
                break
    return placed


Point = tuple[float, float]  # from the left, from the top [pixels]
Box = tuple[float, float, float, float]  # left, right, top, bottom [pixels]


def _around(one: Point, room: float, other: Point | None = None) -> Box:
    """What a point, or the line to another one, takes with some room around it."""
    lefts, tops = zip(one, other or one, strict=True)
    return min(lefts) - room, max(lefts) + room, min(tops) - room, max(tops) + room


def _name_box(text: str, at: Point, side: tuple[str, int, int]) -> tuple[tuple, Box]:
    """Where the text begins beside its point, and the area of its lines.

    Lines above a point end there, those below it begin there, and others have it in their middle.
    """
    align, dx, dy = side
    lines = text.split("\n")
    width, more = _LETTER * max(map(len, lines)), _LINE * (len(lines) - 1)
    dy -= more * (1.0 if dy < 0 else 0.5 if dy == 0 else 0.0)
    left = at[0] + dx - width * {"left": 0.0, "center": 0.5, "right": 1.0}[align]
    top = at[1] + dy - _LINE / 2
    return (align, dx, dy), (left, left + width, top, top + _LINE + more)


def _fits(box: Box, width: int, avoided: list[Box]) -> bool:
    left, right, top, bottom = box
    inside = min(left, top) >= 0 and right <= width and bottom <= _HEIGHT
    return inside and not any(_meet(box, other) for other in avoided)


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


CHARTS = (Registered("time_and_memory", 72, draw),)
