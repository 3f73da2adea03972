"""What the chart of a trend shows: every launch, the median of each run, and the change points."""

from __future__ import annotations

from .chart_types import TrendChange, TrendChart, TrendLevel, TrendRun
from .history.points import STEP, Run, counted
from .history.trend import Change, Trend
from .history.trend_text import change_cells

_LONG_MS = 1e3


def trend_chart(trend: Trend) -> TrendChart:
    """The trend as a chart's values: milliseconds become seconds where a run takes one or more."""
    divisor, unit = 1.0, trend.unit
    if trend.unit == "ms" and max(trend.values) >= _LONG_MS:
        divisor, unit = 1e3, "s"
    label = "Step time" if trend.metric == STEP else trend.metric
    changes = [_change(change, trend.unit) for change in trend.changes]
    found = counted(len(changes), "change point") if changes else "No change point"
    words = [f"{change.words} at {change.commits}" for change in changes]
    return TrendChart(
        title=trend.series.name,
        subtitle=f"{trend.metric} over {counted(len(trend.runs), 'run')} on {trend.series.machine}",
        axis=f"{label} ({unit})" if unit else label,
        unit=unit,
        runs=[
            _run(run, value, trend.metric, divisor)
            for run, value in zip(trend.runs, trend.values, strict=True)
        ],
        levels=_levels(trend, divisor),
        changes=changes,
        footnote=f"{found}, by Apache Otava; one value a run, the median of its launches. "
        "The axis does not start at zero.",
        caption=f"{found}{': ' if words else ''}{'; '.join(words)}. The axis does not start at "
        "zero.",
    )


def _run(run: Run, value: float, metric: str, divisor: float) -> TrendRun:
    """Times have one value a launch; other metrics have none."""
    launches, interval = (run.launches, run.interval) if metric == STEP else ([], None)
    return TrendRun(
        date=f"{run.time:%Y-%m-%d}",
        commit=run.commit,
        value=value / divisor,
        launches=[launch / divisor for launch in launches],
        interval=(interval[0] / divisor, interval[1] / divisor) if interval else None,
    )


def _levels(trend: Trend, divisor: float) -> list[TrendLevel]:
    """The mean of each piece between change points; none where nothing changed."""
    if not trend.changes:
        return []
    edges = [0, *(change.index for change in trend.changes), len(trend.runs)]
    means = [change.mean_before for change in trend.changes] + [trend.changes[-1].mean_after]
    return [
        TrendLevel(start - 0.5, end - 0.5, mean / divisor)
        for start, end, mean in zip(edges, edges[1:], means, strict=False)
    ]


def _change(change: Change, unit: str) -> TrendChange:
    _, words, before, after, where, p_value = change_cells(change, unit)
    return TrendChange(change.index - 0.5, change.worse, words, where, before, after, p_value)
