"""Stacked areas over a step: what each device's memory is for from moment to moment.

Charts of each strategy's fastest row that has a curve. A chart has a lane a device, and all lanes
have one scale. Heights are pixels above the chart's lower edge, so that the lanes share an axis.
"""

import json
import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from ..analysis.labels import STRATEGIES, row_label, sentence, significant, time_text
from ..analysis.selection import Selection
from ..results.launch import MemoryCurve, MemoryPoint, Repetition
from ..results.load import Results, Row
from ..results.timeline import device_name
from . import marks
from .chart import Chart
from .gantt import MOST_STRATEGIES
from .registry import Drawn, Registered
from .theme import BACKGROUND, TEXT, memory_color

MOST_DEVICES = 8
_PREFIX = "memory_over_time_"
_PURPOSES = (
    "parameters", "gradients", "optimizer", "activations", "communication", "staging", "other"
)  # fmt: skip
# Pixels: the width, a lane's part for the areas where there are few devices and where there are
# more (2, 3 and 4 steps of an axis are whole numbers of each), and what words take above it.
_WIDTH, _HIGH, _LOW, _HEAD = 880, 108, 72, 32
_FEW_DEVICES = 4
_LETTER, _NAME_BELOW, _APART = 6.0, 12, 27  # of a letter, below a lane's end, of words to a name
# Columns of all lanes of a chart together, and of one: each becomes at most two points.
_ALL_COLUMNS, _COLUMNS = 600, 440
# A peak's words stand above it as far as the chart's edges and the lane's name let them.
_ACROSS = "scale('x', datum.x)"
_SHIFT = f"max(datum.least, min({_ACROSS} - datum.room / 2, width - datum.room)) - {_ACROSS}"
_AREA = {"type": "area", "interpolate": "step-after", "orient": "vertical"}
_STEPS = {"type": "line", "interpolate": "step-after"}
_DASHED = {"color": TEXT, "strokeWidth": 1.5, "strokeDash": [5, 3]}
_PLACES: dict[str, str | dict] = {"x": "x", "y": "y", "detail": "lane"}


class Scale(NamedTuple):
    """The axes that all lanes have.

    `divisor` is bytes of the unit; `step` is units between ticks, of which so many are above zero;
    `height` is a lane's areas in pixels; the step ends at `end_ms`.
    """

    divisor: float
    unit: str
    step: float
    ticks: int
    height: int
    end_ms: float

    @property
    def lane(self) -> int:
        """A lane's height with its words."""
        return self.height + _HEAD

    def pixels(self, held: float) -> float:
        """How high so many bytes stand."""
        return held / self.divisor / self.step * self.height / self.ticks

    def time(self, ms: float) -> float:
        """A time to a quarter of a pixel."""
        return round(ms, max(0, math.ceil(math.log10(4 * _WIDTH / self.end_ms))))

    def text(self, held: float) -> str:
        """So many bytes in words."""
        return f"{significant(held / self.divisor)} {self.unit}"


class Lane(NamedTuple):
    """A device with its curves; one that was not predicted has no points there."""

    name: str
    measured: list[MemoryPoint]
    predicted: list[MemoryPoint]

    @property
    def peak(self) -> MemoryPoint:
        """The first point from which the device holds most."""
        return max(self.measured, key=_most)

    @property
    def predicted_peak(self) -> float | None:
        """The most that the device was predicted to hold; None without a prediction."""
        return max(map(_most, self.predicted), default=None)

    @property
    def highest(self) -> float:
        """The most that any of the lines reaches."""
        return max([_most(self.peak), *(point.total for point in self.predicted)])

    def words(self, scale: Scale) -> str:
        """The peak, and what was predicted."""
        peak, predicted = scale.text(_most(self.peak)), self.predicted_peak
        return peak if predicted is None else f"{peak}, predicted {scale.text(predicted)}"


def draw(_: Results, selection: Selection) -> dict[str, Drawn]:
    """Of each strategy its fastest row with a curve, by the chart's name, the fastest first."""
    found: dict[str, tuple[Row, Repetition]] = {}
    for item in selection.rows:
        if recorded := [launch for launch in item.repetitions if launch.memory_curve]:
            found.setdefault(item.strategy, (item, recorded[0]))
    made: dict[str, Drawn] = {}
    for place, (strategy, (item, launch)) in enumerate(found.items(), start=1):
        few = place <= MOST_STRATEGIES
        reason = f"memory over a step is drawn of the {MOST_STRATEGIES} fastest strategies"
        name = _PREFIX + re.sub(r"[^A-Za-z0-9_.-]", "_", strategy)
        made[name] = _of_row(selection, item, launch) if few else reason
    return made


def _of_row(selection: Selection, item: Row, repetition: Repetition) -> Chart:
    every = _lanes(repetition)
    ranked = sorted(every, key=lambda lane: -_most(lane.peak))
    shown = {lane.name for lane in ranked[:MOST_DEVICES]}
    lanes = [lane for lane in every if lane.name in shown]
    left_out = f" Shown: the {MOST_DEVICES} fullest of {len(every):,} devices."
    predicted = any(lane.predicted for lane in lanes)
    height = _HIGH if len(lanes) <= _FEW_DEVICES else _LOW
    end = max(point.ms for lane in lanes for point in lane.measured + lane.predicted) or 1.0
    scale = _scale(max(lane.highest for lane in lanes), height, end)
    name, fullest = row_label(item), ranked[0]
    when, said = time_text(fullest.peak.ms), fullest.words(scale)
    return Chart(
        f"Memory over a step: {name}",
        f"{selection.workload}; one step after the timed steps of repetition "
        f"{repetition.index + 1}",
        "Each area shows what a device holds for one purpose. The thin line adds what an action "
        "holds only while it runs. The dot marks the peak."
        f"{' The dashed line shows the total that the simulator predicts.' if predicted else ''}"
        f"{left_out if len(every) > len(lanes) else ''}",
        f"Stacked areas over {time_text(end)}, one lane per device. The fullest, {fullest.name}, "
        f"peaks after {when} at {said}.",
        _view(lanes, scale),
        _entries(lanes, predicted),
    )


def _lanes(repetition: Repetition) -> list[Lane]:
    """The devices in order, named as in the timelines."""
    measured = _by_device(repetition.memory_curve)
    predicted = _by_device(repetition.predicted_memory_curve)
    several = len({rank for rank, _ in measured}) > 1
    found = []
    for (rank, device), points in sorted(measured.items()):
        name = device_name(device)
        name = f"rank {rank}, {name}" if several else name
        found.append(Lane(name, points, predicted.get((rank, device), [])))
    return found


def _by_device(curves: list[MemoryCurve]) -> dict[tuple[int, int], list[MemoryPoint]]:
    return {(curve.rank, curve.device): curve.points for curve in curves}


def _most(point: MemoryPoint) -> float:
    return max(point.most_bytes, point.total)


def _text(held: float) -> str:
    """So many bytes in the unit that suits them."""
    divisor, unit = marks.byte_unit_of(held)
    return f"{significant(held / divisor)} {unit}"


def _scale(most: float, height: int, end_ms: float) -> Scale:
    """Two to four steps of 1, 2 or 5 times a power of ten reach the most."""
    divisor, unit = marks.byte_unit_of(most)
    reach = max(most / divisor, 1e-6)
    power = 10.0 ** (math.floor(math.log10(reach)) - 1)
    step = next(step for step in (power * n for n in (5, 10, 20, 50)) if reach <= 4 * step)
    return Scale(divisor, unit, step, max(2, math.ceil(reach / step)), height, end_ms)


def _view(lanes: list[Lane], scale: Scale) -> dict:
    columns = min(_COLUMNS, _ALL_COLUMNS // len(lanes))
    curves = [_fewer(lane.measured, columns, scale.end_ms) for lane in lanes]
    predicted = [_fewer(lane.predicted, columns, scale.end_ms) for lane in lanes]
    bases = [scale.lane * place for place in reversed(range(len(lanes)))]
    drawn, present = list(zip(lanes, curves, bases, strict=True)), _present(lanes)
    layers = []
    for place, purpose in enumerate(present):
        rows = _areas(purpose, present[:place], drawn, scale)
        look = _AREA | {"color": memory_color(purpose)}
        told = marks.fixed(_told(purpose, lanes, scale))
        layers.append(marks.layer(rows, look, **_PLACES, y2="y2", tooltip=told))
    highest = _lines(curves, bases, _most, scale)
    layers.append(marks.layer(highest, _STEPS | {"color": TEXT, "strokeWidth": 1}, **_PLACES))
    if totals := _lines(predicted, bases, _total, scale):
        looks = ({"color": BACKGROUND, "strokeWidth": 3.2, "opacity": 0.6}, _DASHED)
        layers += [marks.layer(totals, _STEPS | look, **_PLACES) for look in looks]
    layers += _words(lanes, bases, scale)
    x = marks.quantity("Time (ms)", 0.0, scale.end_ms, grid=True, tickCount=marks.TICKS)
    y = _axis(bases, scale)
    return marks.view(_WIDTH, scale.lane * len(lanes), x, y, layers)


def _axis(bases: list[int], scale: Scale) -> dict:
    """Every lane's own ticks from zero."""
    each = scale.height // scale.ticks
    labels = {
        base + each * tick: f"{scale.step * tick:,.6g}"
        for base in bases
        for tick in range(scale.ticks + 1)
    }
    look = {"values": list(labels), "labelExpr": f"{json.dumps(labels)}[datum.value]"}
    high = scale.lane * len(bases)
    return marks.quantity(f"Memory ({scale.unit})", 0.0, high, grid=True, domain=False, **look)


def _fewer(points: list[MemoryPoint], columns: int, end: float) -> list[MemoryPoint]:
    """The first point, and of each column of the step its fullest and its last; few stay as is."""
    if len(points) <= 2 * columns:
        return points
    by_column: dict[int, list[MemoryPoint]] = {-1: points[:1]}
    for point in points[1:]:
        by_column.setdefault(int(columns * point.ms / end), []).append(point)
    kept = []
    for own in by_column.values():
        fullest = max(own, key=lambda point: point.total)
        kept.append(replace(fullest, most_bytes=max(map(_most, own))))
        if fullest is not own[-1]:
            kept.append(own[-1])
    return kept


def _present(lanes: list[Lane]) -> list[str]:
    """The known purposes in their order, then any others; those that nothing was for left out."""
    points = [point for lane in lanes for point in lane.measured]
    held = dict.fromkeys(name for point in points for name, own in point.held.items() if own > 0.0)
    known = [name for name in _PURPOSES if name in held]
    return known + [name for name in held if name not in _PURPOSES]


def _areas(
    purpose: str, below: list[str], lanes: list[tuple[Lane, list[MemoryPoint], int]], scale: Scale
) -> list[marks.Datum]:
    """Where the purpose's area stands in each lane, on the purposes `below`.

    The first of a lane has the words of its area: the mark that a reader's keyboard reaches.
    """
    found = []
    for place, (lane, points, base) in enumerate(lanes):
        most = max(point.held.get(purpose, 0.0) for point in lane.measured)
        if most <= 0.0:
            continue
        rows: list[marks.Datum] = []
        for point in points:
            low = sum(point.held.get(name, 0.0) for name in below)
            high = low + point.held.get(purpose, 0.0)
            ends = {"y": _height(base, high, scale), "y2": _height(base, low, scale)}
            rows.append({"x": scale.time(point.ms), **ends, "lane": place})
        at_peak = f"{_text(lane.peak.held.get(purpose, 0.0))} at the peak"
        words = f"{sentence(purpose)}: at most {_text(most)}, {at_peak}"
        rows[0] |= {"words": marks.lines(lane.name, words)}
        found += _changing(rows)
    return found


def _told(purpose: str, lanes: list[Lane], scale: Scale) -> str:
    """The expression for what is told of a point: its words, or else its own bytes and time."""
    names = json.dumps([lane.name for lane in lanes])
    held = f"format((datum.y - datum.y2) / {scale.pixels(scale.divisor):.9g}, ',.3r')"
    when = f"' {scale.unit} at ' + format(datum.x, ',') + ' ms'"
    name = json.dumps(f"\n{sentence(purpose)} ")
    return f"datum.words || ({names}[datum.lane] + {name} + {held} + {when})"


def _lines(
    curves: list[list[MemoryPoint]],
    bases: list[int],
    held: Callable[[MemoryPoint], float],
    scale: Scale,
) -> list[marks.Datum]:
    found = []
    for place, (points, base) in enumerate(zip(curves, bases, strict=True)):
        found += _changing(
            [
                {"x": scale.time(point.ms), "y": _height(base, held(point), scale), "lane": place}
                for point in points
            ]
        )
    return found


def _total(point: MemoryPoint) -> float:
    return point.total


def _height(base: int, held: float, scale: Scale) -> float:
    return round(base + scale.pixels(held), 2)


def _changing(rows: list[marks.Datum]) -> list[marks.Datum]:
    """The rows without those that stand as high as the one before; the last stays."""

    def ends(row: marks.Datum) -> tuple:
        return row["y"], row.get("y2")

    inner = [row for before, row in pairwise(rows[:-1]) if ends(row) != ends(before)]
    return rows[:1] + inner + rows[1:][-1:]


def _words(lanes: list[Lane], bases: list[int], scale: Scale) -> list[marks.Layer]:
    """The lanes' names, and their peaks with what was predicted."""
    names, peaks = [], []
    for lane, base in zip(lanes, bases, strict=True):
        name_at = base + scale.lane - _NAME_BELOW
        names.append({"y": name_at, "text": lane.name})
        peak, text = lane.peak, lane.words(scale)
        at = _height(base, lane.highest, scale)
        beside = name_at - at < _APART
        parts = [f"{sentence(name)} {_text(own)}" for name, own in peak.held.items() if own > 0.0]
        temporary = _most(peak) - peak.total
        parts += [f"Temporary {_text(temporary)}"] if temporary > 0.0 else []
        words = marks.lines(f"{lane.name}, peak", f"{text}, after {time_text(peak.ms)}", *parts)
        row = {"x": scale.time(peak.ms), "y": _height(base, _most(peak), scale), "words": words}
        row |= {"at": at, "text": text, "room": round(_LETTER * len(text))}
        peaks.append(row | {"least": round(_LETTER * len(lane.name)) + 14 if beside else 4})
    return [
        marks.texts(names, x=marks.fixed(0), align="left", dx=4, fontWeight="bold"),
        marks.texts(peaks, y="at", align="left", dx={"expr": _SHIFT}, dy=-12),
        marks.dots(peaks, size=44, fill=TEXT, stroke=BACKGROUND),
    ]


def _entries(lanes: list[Lane], predicted: bool) -> list[marks.Entry]:
    entries = [
        marks.Entry(sentence(name), marks.BOX, memory_color(name)) for name in _present(lanes)
    ]
    entries.append(marks.Entry("Temporary peak", marks.LINE, stroke=TEXT))
    if predicted:
        entries.append(marks.Entry("Predicted total", marks.DASHES, stroke=TEXT))
    return [*entries, marks.Entry("Peak", marks.CIRCLE, TEXT)]


CHARTS = (Registered(f"{_PREFIX}*", 73, draw, known=tuple(_PREFIX + name for name in STRATEGIES)),)
