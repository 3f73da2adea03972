"""Strategies as bars: mp_vs_rn and mp_vs_rn_vs_pp."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..chart_types import Bar, BarChart
from ..labels import time_text
from .style import Frame, backed, framed, interval_handle, jitter, unit_of
from .theme import Theme


def draw(chart: BarChart, theme: Theme) -> Figure:
    """Bars with error bars, the value and the relative speed above, every sample a dot."""
    longest = max(max(bar.point.high_ms, *bar.point.samples_ms) for bar in chart.bars)
    divisor, unit = unit_of(longest)
    lines = max(bar.label.count("\n") for bar in chart.bars) + 1
    figure, axes = framed(
        theme,
        Frame(width=max(6.0, 1.3 * len(chart.bars) + 0.8), height=3.2, bottom=0.2 + 0.15 * lines),
        chart.title,
        chart.subtitle,
        footnote="The factor under a time is the speed relative to the single device.",
        handles=_legend(chart, theme),
        columns=1,
    )
    for position, bar in enumerate(chart.bars):
        _draw_bar(axes, position, bar, divisor, theme)
    axes.set_xticks(range(len(chart.bars)), [bar.label for bar in chart.bars])
    axes.set_xlim(-0.55, len(chart.bars) - 0.45)
    axes.set_ylim(0.0, longest / divisor * 1.2)
    axes.set_ylabel(f"{chart.axis} ({unit})")
    axes.yaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure


def _draw_bar(axes, position: int, bar: Bar, divisor: float, theme: Theme) -> None:
    point = bar.point
    height = point.time_ms / divisor
    axes.bar(position, height, width=0.62, color=theme.strategy(bar.strategy), zorder=2)
    samples = [sample / divisor for sample in point.samples_ms]
    offsets = jitter(len(samples), 0.22)
    axes.plot(
        [position + 0.17 + offset for offset in offsets],
        samples,
        "o",
        markersize=3.6,
        markerfacecolor=theme.background,
        markeredgecolor=theme.text,
        markeredgewidth=0.7,
        zorder=4,
    )
    axes.errorbar(
        position - 0.12,
        height,
        yerr=[[height - point.low_ms / divisor], [point.high_ms / divisor - height]],
        color=theme.text,
        capsize=4,
        elinewidth=1.3,
        capthick=1.3,
        zorder=5,
    )
    top = max(point.high_ms / divisor, *samples, height)
    axes.annotate(
        time_text(point.time_ms),
        (position, top),
        xytext=(0, 17 if bar.speed else 6),
        textcoords="offset points",
        ha="center",
        weight="bold",
        color=theme.text,
        bbox=backed(theme),
        zorder=3,
    )
    if bar.speed:
        axes.annotate(
            f"{bar.speed:.2f}\u00d7",
            (position, top),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            size=8.0,
            color=theme.muted,
            bbox=backed(theme),
            zorder=3,
        )


def _legend(chart: BarChart, theme: Theme) -> list[Line2D]:
    return [
        interval_handle(theme, chart.error_label),
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markersize=3.6,
            markeredgecolor=theme.text,
            markerfacecolor=theme.background,
            markeredgewidth=0.7,
            label="one sample",
        ),
    ]
