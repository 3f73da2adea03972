"""Speed-up over a single device by sequence length: a line for each way to share the work."""

from dataclasses import dataclass

from ..analysis.labels import counted, row_label, significant, time_text
from ..analysis.selection import Selection, working_rows
from ..results.load import Results, Row
from ..results.row_summary import Ratio
from . import marks
from .chart import Chart
from .chart_limits import without_shared
from .registry import Drawn, Registered
from .theme import MUTED, TEXT, series_color

_HEIGHT = 320
_MOST_LINES = 8
# A device that shares a core does not speed anything up.
_NOT_ALONE = {"oversubscribed", "shared", "shared_cores", "straggler"}


@dataclass(frozen=True)
class Line:
    """A row at several lengths, the shortest first, and its speed-ups."""

    label: str
    rows: list[Row]
    ratios: list[Ratio]


def draw(results: Results, _: Selection) -> Drawn:
    """The lines are of one model and batch."""
    found = _lines(working_rows(results))
    if not found:
        return None
    names, shared = without_shared([line.label for line in found])
    every = [
        [_point(line, name, index, number) for number in range(len(line.rows))]
        for index, (line, name) in enumerate(zip(found, names, strict=True))
    ]
    points = [point for line in every for point in line]
    lengths = sorted({point["x"] for point in points})
    devices = max(int(row.option("devices") or 1) for line in found for row in line.rows)
    top = 1.06 * max(devices, *(point["high"] for point in points))
    x = marks.quantity("Sequence length (tokens)", lengths[0] / 1.15, 1.15 * lengths[-1])
    x["scale"] |= {"type": "log", "base": 2}
    x["axis"] |= {"values": lengths, "format": "d"}
    y = marks.quantity("Speed-up over a single device", 0.0, top, grid=True, tickCount=6)
    rules = [
        {"y": 1, "words": "A single device\n1\u00d7"},
        {"y": devices, "words": f"{counted(devices, 'device')}\n{devices}\u00d7"},
    ]
    rule = {"type": "rule", "color": MUTED, "strokeWidth": 1.4, "strokeDash": [6, 4]}
    layers = [
        marks.layer(rules, rule, y="y", tooltip="words"),
        *(part for index, line in enumerate(every) for part in _layers(line, series_color(index))),
        *marks.names_at_right([line[-1] for line in every], top, _HEIGHT, "x"),
    ]
    entries = [
        marks.Entry(f"1 and {devices}: a single device, all devices", marks.DASHES, stroke=MUTED),
        marks.Entry("interval of the speed-up", marks.INTERVAL, stroke=TEXT),
    ]
    row = found[0].rows[0]
    return Chart(
        "Speed-up by sequence length",
        f"{row.model}, batch {row.option('global_batch_size')}, {counted(devices, 'device')}",
        "Step time of a single device over that of the row, at the same sequence length. "
        f"Error bar: interval of all pairs of launches.{shared}",
        marks.described(points),
        marks.view(470, _HEIGHT, x, y, layers),
        entries,
    )


def _lines(rows: list[Row]) -> list[Line]:
    """The lines with two lengths or more, of the work that most rows do."""
    by_work: dict[tuple, dict[tuple, list[Row]]] = {}
    for row in rows:
        if row.option("sequence_length") and _ratio(row) and not _NOT_ALONE & set(row.marks):
            work = (row.model, row.option("global_batch_size"))
            line = (row_label(row), row.option("devices"))
            by_work.setdefault(work, {}).setdefault(line, []).append(row)
    lines = max(by_work.values(), key=lambda lines: sum(map(len, lines.values())), default={})
    found = []
    labels = [label for label, _ in lines]
    for (label, devices), own in lines.items():
        if labels.count(label) > 1:
            label = f"{label}, {counted(int(devices or 1), 'device')}"
        own.sort(key=_length)
        if len({_length(row) for row in own}) == len(own) > 1:
            found.append(Line(label, own, [_ratio(row) for row in own]))
    found.sort(key=lambda line: line.ratios[-1].value, reverse=True)
    return found[:_MOST_LINES]


def _length(row: Row) -> int:
    return int(row.option("sequence_length"))


def _ratio(row: Row) -> Ratio | None:
    """The row's speed-up over the baseline of its length; None for the baseline itself."""
    summary = row.summary
    return summary.ratios.get(summary.baseline) if summary.ratios and summary.baseline else None


def _point(line: Line, name: str, index: int, number: int) -> marks.Datum:
    row, ratio = line.rows[number], line.ratios[number]
    speed = f"{significant(ratio.value)}\u00d7"
    return {
        "x": _length(row),
        "y": marks.short(ratio.value),
        "low": marks.short(ratio.low),
        "high": marks.short(ratio.high),
        "color": series_color(index),
        "text": f"{name}\n{speed}",
        "words": marks.lines(
            f"{name}, {_length(row):,} tokens",
            f"{speed} ({significant(ratio.low)} to {significant(ratio.high)})",
            time_text(row.time_ms),
        ),
    }


def _layers(rows: list[marks.Datum], color: str) -> list[marks.Layer]:
    return [marks.line(rows, color, 2.5), marks.intervals(rows), marks.dots(rows, fill=color)]


CHARTS = (Registered("sequence_length", 62, draw),)
