"""Draws chart data with matplotlib: one file a kind of chart, bytes out, none written."""

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
from .style import encode
from .theme import DARK, LIGHT, Theme

_DRAW = {
    BarChart: bars.draw,
    SplitSizeTradeoff: split_size_tradeoff.draw,
    Gantt: gantt.draw,
    Breakdown: breakdown.draw,
    Scaling: scaling.draw,
    MemoryChart: memory.draw,
    Bandwidth: bandwidth.draw,
    Schedules: schedules.draw,
    TrendChart: trend.draw,
}

__all__ = ["DARK", "LIGHT", "Theme", "pictures", "render"]


def pictures(chart: Any) -> dict[str, bytes]:
    """The chart as a page holds it, an SVG a theme: {"light": bytes, "dark": bytes}."""
    themes = {"light": LIGHT, "dark": DARK}
    return {name: render(chart, ("svg",), theme)["svg"] for name, theme in themes.items()}


def render(chart: Any, extensions: tuple[str, ...], theme: Theme = LIGHT) -> dict[str, bytes]:
    """The chart as image files: {extension: bytes} for each of "png" (200 dpi) and "svg"."""
    return encode(lambda: _DRAW[type(chart)](chart, theme), extensions)
