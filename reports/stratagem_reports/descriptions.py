"""Charts in words, for readers who do not see them."""

from __future__ import annotations

from typing import Any

from .chart_types import (
    Bandwidth,
    BarChart,
    Breakdown,
    Gantt,
    MemoryChart,
    Scaling,
    Schedules,
    SplitSizeTradeoff,
    TrendChart,
)
from .gantt_lanes import lanes
from .labels import sentence, size_text, time_text


def describe(chart: Any) -> str:
    """An alternative text that gives what the chart shows."""
    body = {
        BarChart: _bars,
        SplitSizeTradeoff: _splits,
        Gantt: _gantt,
        Breakdown: _breakdown,
        Scaling: _scaling,
        MemoryChart: _memory,
        Schedules: _schedules,
        Bandwidth: _bandwidth,
        TrendChart: _trend,
    }[type(chart)](chart)
    return f"{chart.title}. {body}"


def _bars(chart: BarChart) -> str:
    bars = [
        f"{bar.label.replace(chr(10), ' ')} {time_text(bar.point.time_ms)}" for bar in chart.bars
    ]
    return f"Bars: {'; '.join(bars)}."


def _splits(chart: SplitSizeTradeoff) -> str:
    lines = []
    for series in chart.series:
        points = zip(series.splits, series.points, strict=True)
        values = [f"{split}: {time_text(point.time_ms)}" for split, point in points]
        lines.append(f"{series.label}, time by split size: {'; '.join(values)}.")
    levels = [f"{label} {time_text(value)}" for label, _, value in chart.levels]
    return " ".join(lines) + (f" For comparison: {'; '.join(levels)}." if levels else "")


def _gantt(chart: Gantt) -> str:
    devices, count = lanes(chart.actions), sum(action.count for action in chart.actions)
    span = max(a.end_ms for a in chart.actions) - min(a.start_ms for a in chart.actions)
    return f"Timeline of {count} actions on {', '.join(devices)} over {time_text(span)}."


def _breakdown(chart: Breakdown) -> str:
    rows = []
    for bar in chart.bars:
        parts = [
            f"{sentence(part).lower()} {time_text(value)}"
            for part, value in bar.parts_ms.items()
            if value > 0.0
        ]
        rows.append(f"{bar.label}: {', '.join(parts)}")
    return f"Stacked bars. {'; '.join(rows)}."


def _scaling(chart: Scaling) -> str:
    lines = []
    for series in chart.series:
        points = [f"{point.rate:.3g} on {point.devices}" for point in series.points]
        lines.append(f"{series.label}: {', '.join(points)}")
    return f"Samples a second by devices. {'; '.join(lines)}."


def _schedules(chart: Schedules) -> str:
    points = []
    for point in chart.points:
        parts = [f"measured {time_text(point.measured.time_ms)}"]
        if point.simulated_ms is not None:
            parts.append(f"simulated {time_text(point.simulated_ms)}")
        if point.closed_form_ms is not None:
            parts.append(f"closed form {time_text(point.closed_form_ms)}")
        points.append(f"{point.label}: {', '.join(parts)}")
    return f"Bars. {'; '.join(points)}."


def _bandwidth(chart: Bandwidth) -> str:
    lines = []
    for line in chart.series:
        first, last = line.points[0], line.points[-1]
        lines.append(
            f"{line.label} from {first.rate:.3g} GB/s at {size_text(first.size)} to "
            f"{last.rate:.3g} GB/s at {size_text(last.size)}"
        )
    return f"Bus bandwidth by message size. {'; '.join(lines)}."


def _trend(chart: TrendChart) -> str:
    changes = [
        f"{change.words}, {change.before} to {change.after}, at {change.commits}"
        for change in chart.changes
    ]
    return f"{chart.subtitle}: {'; '.join(changes) or 'no change point'}."


def _memory(chart: MemoryChart) -> str:
    bars = [f"{bar.label} {max(bar.peak_bytes) / 2.0**30:.3g} GiB" for bar in chart.bars]
    return f"Most memory of a device. {'; '.join(bars)}."
