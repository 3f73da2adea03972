"""Dots on bars: the most memory that each device of a row held."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..chart_types import MemoryChart
from .style import Frame, backed, framed, text_width
from .theme import Theme

_GIBIBYTE = 2.0**30


def draw(chart: MemoryChart, theme: Theme) -> Figure:
    """One horizontal bar a row, as long as its fullest device; every device a dot."""
    longest = max(max(bar.peak_bytes) for bar in chart.bars)
    divisor, unit = (_GIBIBYTE, "GiB") if longest >= 0.1 * _GIBIBYTE else (2.0**20, "MiB")
    widest = max(text_width(bar.label, 8.5) for bar in chart.bars)
    several = any(len(bar.peak_bytes) > 1 for bar in chart.bars)
    figure, axes = framed(
        theme,
        Frame(
            width=max(7.2, widest + 5.0),
            height=0.26 * len(chart.bars) + 0.15,
            left=widest + 0.25,
            right=0.8,
        ),
        chart.title,
        chart.subtitle,
        handles=[_dot(theme)] if several else [],
        columns=1,
    )
    for position, bar in enumerate(chart.bars):
        values = [value / divisor for value in bar.peak_bytes]
        axes.barh(
            position,
            max(values),
            height=0.62,
            color=theme.strategy(bar.strategy),
            linewidth=0.0,
            zorder=2,
        )
        if len(values) > 1:
            axes.plot(values, [position] * len(values), **_dot_style(theme), zorder=3)
        axes.annotate(
            f"{max(values):.3g} {unit}",
            (max(values), position),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            size=8.0,
            color=theme.text,
            bbox=backed(theme),
        )
    axes.set_yticks(range(len(chart.bars)), [bar.label for bar in chart.bars])
    axes.set_ylim(len(chart.bars) - 0.4, -0.6)
    axes.set_xlim(0.0, longest / divisor * 1.02)
    axes.set_xlabel(f"Peak memory of a device ({unit})")
    axes.xaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure


def _dot_style(theme: Theme) -> dict:
    return {
        "linestyle": "",
        "marker": "o",
        "markersize": 4.4,
        "markerfacecolor": theme.background,
        "markeredgecolor": theme.text,
        "markeredgewidth": 0.8,
    }


def _dot(theme: Theme) -> Line2D:
    return Line2D([], [], label="one device", **_dot_style(theme))
