"""A row over time: every launch, the median of each run, and where the level changed."""

from itertools import pairwise
from typing import Any

from ..analysis.labels import counted, figure
from . import marks
from .chart import Chart
from .registry import Registered
from .theme import MUTED, TEXT, part_color, strategy_color

_LONG_MS = 1e3
_MOST_TICKS = 8
_LINE = strategy_color("pipeline")
_RULE = {"type": "rule", "strokeWidth": 1.5}


def draw(trend: Any, changes: list[tuple[Any, tuple[str, ...]]], timed: bool) -> Chart:
    """Runs evenly spaced, oldest at the left; change points stand between two runs.

    `trend` is the history's Trend and `changes` its change points, each with words: its size, the
    means before and after, the commits and the p-value. A `timed` one is of step times, which
    have launches; its milliseconds become seconds where a run takes one or more.
    """
    divisor, unit = 1.0, trend.unit
    if unit == "ms" and max(trend.values) >= _LONG_MS:
        divisor, unit = 1e3, "s"
    found = list(zip(trend.runs, trend.values, strict=True))
    runs = [_run(at, run, value, divisor, unit, timed) for at, (run, value) in enumerate(found)]
    launches = [
        {"x": at, "y": marks.short(launch / divisor)}
        for at, run in enumerate(trend.runs)
        for launch in (run.launches if timed else [])
    ]
    levels = _levels(trend, divisor)
    label = "Step time" if timed else trend.metric
    y = marks.quantity(f"{label} ({unit})" if unit else label, *_reach(runs, launches), grid=True)
    where = f"{trend.metric} over {counted(len(runs), 'run')} on {trend.series.machine}"
    points = [
        _change(number, change, words, levels) | {"late": 2 * change.index > len(runs)}
        for number, (change, words) in enumerate(changes)
    ]
    count = counted(len(points), "change point") if points else "No change point"
    told = "; ".join(row["words"].replace("\n", ", ") for row in points)
    circle = {"type": "circle", "size": 18, "color": MUTED, "opacity": 0.45}
    layers = [
        marks.layer(launches, circle, x="x", y="y"),
        marks.line(runs, _LINE, 1.8),
        marks.dots(runs, size=22, fill=_LINE, strokeWidth=0),
        marks.layer(levels, _RULE | {"color": TEXT}, x="start", x2="end", y="y"),
        *_change_layers(points),
    ]
    return Chart(
        trend.series.name,
        where,
        f"{count}{': ' if points else ''}"
        f"{'; '.join(row['told'] for row in points)}. By Apache Otava; "
        "one value a run, the median of its launches. The axis does not start at zero.",
        f"{where}: {told or 'no change point'}.",
        marks.view(760, 330, _dates(trend.runs), y, layers),
        _entries(trend, bool(launches)),
    )


def change_color(worse: bool) -> str:
    """The colour of a change point: one for the worse stands out."""
    return part_color("communication_exposed") if worse else strategy_color("ddp")


def _run(at: int, run: Any, value: float, divisor: float, unit: str, timed: bool) -> marks.Datum:
    """Times have one value a launch; other metrics have none."""

    def told(*values: float) -> str:
        return " to ".join(f"{figure(value / divisor)} {unit}".rstrip() for value in values)

    launches = ""
    if timed and len(run.launches) > 1:
        ends = told(min(run.launches), max(run.launches))
        launches = f"{len(run.launches)} launches, {ends}"
    words = marks.lines(f"{run.time:%Y-%m-%d}, {told(value)}", f"commit {run.commit}", launches)
    return {"x": at, "y": marks.short(value / divisor), "words": words}


def _dates(runs: list[Any]) -> dict:
    shown = range(0, len(runs), -(-len(runs) // _MOST_TICKS))
    names = " : ".join(f"datum.value == {at} ? ['{runs[at].time:%Y', '%m-%d}']" for at in shown)
    return marks.quantity(
        None, -0.7, len(runs) - 0.3, values=list(shown), labelExpr=f"{names} : ''"
    )


def _reach(runs: list[marks.Datum], launches: list[marks.Datum]) -> tuple[float, float]:
    """All that is drawn, with room for the words at the top and the bottom."""
    values = [row["y"] for row in runs + launches]
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    return marks.short(low - 0.22 * span), marks.short(high + 0.22 * span)


def _levels(trend: Any, divisor: float) -> list[marks.Datum]:
    """The mean of each piece between change points; none where nothing changed."""
    if not trend.changes:
        return []
    edges = [0, *(change.index for change in trend.changes), len(trend.runs)]
    means = [change.mean_before for change in trend.changes] + [trend.changes[-1].mean_after]
    return [
        {"start": start - 0.5, "end": end - 0.5, "y": marks.short(mean / divisor)}
        for (start, end), mean in zip(pairwise(edges), means, strict=True)
    ]


def _change(
    number: int, change: Any, words: tuple[str, ...], levels: list[marks.Datum]
) -> marks.Datum:
    """A change point half way between the means, with what changed in words at its side."""
    size, before, after, where, p_value = words
    return {
        "x": change.index - 0.5,
        "y": marks.short((levels[number]["y"] + levels[number + 1]["y"]) / 2.0),
        "color": change_color(change.worse),
        "text": f"{size}\n{where.replace('..', '..' + chr(10))}",
        "told": f"{size} at {where}",
        "upper": number % 2 == 0,
        "words": marks.lines(size, f"{before} to {after}", f"commits {where}", f"p {p_value}"),
    }


def _change_layers(rows: list[marks.Datum]) -> list[marks.Layer]:
    """A dashed line at each change point, a mark on it, and words in turns above and below."""
    ends = {"x": "x", "y": marks.fixed(0), "y2": marks.fixed("height")}
    layers = [marks.layer(rows, _RULE | {"strokeDash": [5, 4]}, **ends, stroke="color")]
    for upper, late in sorted({(row["upper"], row["late"]) for row in rows}):
        beside = [row for row in rows if (row["upper"], row["late"]) == (upper, late)]
        side = {"align": "right", "dx": -6} if late else {"align": "left", "dx": 6}
        level = {"baseline": "line-top", "dy": 4 if upper else -48}
        layers.append(marks.texts(beside, y=marks.fixed(0 if upper else "height"), **side, **level))
    diamonds = marks.dots(rows, shape="diamond", size=110)
    diamonds["encoding"]["fill"] = {"field": "color", "type": "nominal", "scale": None}
    return [*layers, diamonds]


def _entries(trend: Any, launches: bool) -> list[marks.Entry]:
    entries = [marks.Entry("median of a run", marks.LINE + marks.CIRCLE, _LINE, _LINE)]
    if launches:
        entries.append(marks.Entry("launch", marks.CIRCLE, MUTED))
    if trend.changes:
        entries.append(marks.Entry("mean between change points", marks.LINE, stroke=TEXT))
    for worse in dict.fromkeys(change.worse for change in trend.changes):
        label = "change for the worse" if worse else "other change"
        entries.append(marks.Entry(label, marks.DASHES, stroke=change_color(worse)))
    return entries


CHARTS = (Registered("trend", 1, draw, source="trend"),)
