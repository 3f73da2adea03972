"""Throughput against the number of devices, with the line that perfect scaling would follow."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..chart_types import Scaling, ScalingSeries
from .style import Frame, framed, spread
from .theme import Theme

_HEIGHT = 3.4


def draw(chart: Scaling, theme: Theme) -> Figure:
    """One line a strategy from the single device on; error bars as measured."""
    highest = max(point.high for line in chart.series for point in line.points)
    most = max(point.devices for line in chart.series for point in line.points)
    figure, axes = framed(
        theme,
        Frame(width=7.2, height=_HEIGHT, right=2.0),
        chart.title,
        chart.subtitle,
        footnote=chart.footnote,
        handles=_legend(chart, theme),
        columns=2,
    )
    ideal_end = chart.single * most
    axes.plot(
        [0, most], [0, ideal_end], color=theme.muted, linewidth=1.2, linestyle="--", zorder=2
    )
    top = max(highest, ideal_end) * 1.08
    ends = [line.points[-1].rate for line in chart.series]
    texts = spread(ends, top * 0.34 / _HEIGHT)
    for line, text_at in zip(chart.series, texts, strict=True):
        color = theme.strategy(line.strategy)
        _draw_line(axes, line, color, theme)
        last = line.points[-1]
        efficiency = last.rate / (chart.single * last.devices)
        source = ", simulated" if last.simulated else ""
        axes.annotate(
            f"{line.label}\n{last.rate:.3g}/s, {100.0 * efficiency:.0f}% of ideal{source}",
            (last.devices, last.rate),
            xytext=(1.03, text_at / top),
            textcoords="axes fraction",
            va="center",
            size=8.0,
            color=theme.text,
            linespacing=1.15,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 1.0, "shrinkB": 4},
        )
    axes.set_xticks(sorted({point.devices for line in chart.series for point in line.points}))
    axes.set_xlim(0.0, most * 1.04)
    axes.set_ylim(0.0, top)
    axes.set_xlabel("Devices")
    axes.set_ylabel("Samples a second")
    axes.yaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure


def _legend(chart: Scaling, theme: Theme) -> list[Line2D]:
    handles = [Line2D([], [], color=theme.muted, linewidth=1.2, linestyle="--", label="ideal")]
    if any(point.simulated for line in chart.series for point in line.points):
        handles.append(
            Line2D([], [], color=theme.muted, linestyle=":", label="simulated", **_hollow(theme))
        )
    return handles


def _hollow(theme: Theme) -> dict:
    return {"marker": "o", "markersize": 5.5, "markerfacecolor": theme.background}


def _draw_line(axes: Axes, line: ScalingSeries, color: str, theme: Theme) -> None:
    measured = [point for point in line.points if not point.simulated]
    # From the last measured point on, so that the line goes on.
    simulated = [measured[-1], *(point for point in line.points if point.simulated)]
    axes.errorbar(
        [point.devices for point in measured],
        [point.rate for point in measured],
        yerr=[
            [point.rate - point.low for point in measured],
            [point.high - point.rate for point in measured],
        ],
        fmt="o-",
        color=color,
        linewidth=2.0,
        markersize=5.5,
        markeredgecolor=theme.background,
        markeredgewidth=0.8,
        ecolor=theme.text,
        elinewidth=1.1,
        capsize=4,
        zorder=4,
    )
    if len(simulated) > 1:
        axes.plot(
            [point.devices for point in simulated],
            [point.rate for point in simulated],
            color=color,
            linewidth=1.6,
            linestyle=":",
            markevery=range(1, len(simulated)),
            zorder=3,
            **_hollow(theme),
        )
