"""Describes chart data as plotly figures: one file a kind of chart, plain dictionaries out.

A figure is what plotly.js takes, {"data": [...], "layout": {...}}; nothing of plotly is needed to
make one. Title, subtitle and caption are the page's: text there wraps on a narrow screen.
"""

from __future__ import annotations

from typing import Any

from ..chart_types import (
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
from ..charts.theme import Theme
from . import (
    bandwidth,
    bars,
    breakdown,
    gantt,
    memory,
    scaling,
    schedules,
    split_size_tradeoff,
    trend,
)

_FIGURE = {
    BarChart: bars.figure,
    SplitSizeTradeoff: split_size_tradeoff.figure,
    Gantt: gantt.figure,
    Breakdown: breakdown.figure,
    Scaling: scaling.figure,
    MemoryChart: memory.figure,
    Bandwidth: bandwidth.figure,
    Schedules: schedules.figure,
    TrendChart: trend.figure,
}

__all__ = ["figure"]


def figure(chart: Any, theme: Theme) -> dict:
    """The chart as a plotly figure in the theme's colours."""
    return _FIGURE[type(chart)](chart, theme)
