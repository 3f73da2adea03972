"""A row over time: every launch, the median of each run, and where the level changed."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..chart_types import TrendChange, TrendChart
from .style import Frame, backed, framed
from .theme import Theme

_MOST_TICKS = 8


def draw(chart: TrendChart, theme: Theme) -> Figure:
    """Runs evenly spaced, oldest at the left; change points stand between two runs."""
    figure, axes = framed(
        theme,
        Frame(width=9.0, height=3.4, right=0.5, bottom=0.35),
        chart.title,
        chart.subtitle,
        footnote=chart.footnote,
        handles=_handles(chart, theme),
        columns=5,
    )
    _draw_launches(axes, chart, theme)
    axes.plot(range(len(chart.runs)), [run.value for run in chart.runs], **_median(theme), zorder=3)
    for level in chart.levels:
        axes.plot([level.start, level.end], [level.mean] * 2, **_level(theme), zorder=4)
    for number, change in enumerate(chart.changes):
        _draw_change(axes, theme, change, number, chart.late(change))
    ticks = chart.ticks(_MOST_TICKS)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xlim(-0.7, len(chart.runs) - 0.3)
    axes.margins(y=0.22)
    axes.set_ylabel(chart.axis)
    axes.yaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure


def change_color(change: TrendChange, theme: Theme) -> str:
    """The colour of a change point: one for the worse stands out."""
    return theme.part("communication_exposed") if change.worse else theme.strategy("ddp")


def change_label(change: TrendChange) -> str:
    """What the legend calls such a change point."""
    return "change for the worse" if change.worse else "other change"


def _draw_launches(axes: Axes, chart: TrendChart, theme: Theme) -> None:
    for position, run in enumerate(chart.runs):
        if run.launches:
            axes.plot([position] * len(run.launches), run.launches, **_launch(theme), zorder=2)
        if run.interval:
            axes.plot([position] * 2, run.interval, color=theme.muted, linewidth=0.8, zorder=2)


def _draw_change(axes: Axes, theme: Theme, change: TrendChange, number: int, late: bool) -> None:
    color = change_color(change, theme)
    axes.axvline(change.position, color=color, linestyle="--", linewidth=1.4, zorder=5)
    axes.annotate(
        f"{change.words}\n{change.commits}",
        (change.position, 0.97 if number % 2 == 0 else 0.12),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if late else 5, 0),
        textcoords="offset points",
        va="top",
        ha="right" if late else "left",
        size=7.5,
        color=theme.text,
        bbox=backed(theme),
        zorder=6,
    )


def _handles(chart: TrendChart, theme: Theme) -> list[Line2D]:
    handles = [Line2D([], [], label="median of a run", **_median(theme))]
    if any(run.launches for run in chart.runs):
        handles.append(Line2D([], [], label="launch", **_launch(theme)))
    if chart.levels:
        handles.append(Line2D([], [], label="mean between change points", **_level(theme)))
    for change in {change.worse: change for change in chart.changes}.values():
        look = {"color": change_color(change, theme), "linestyle": "--", "linewidth": 1.4}
        handles.append(Line2D([], [], label=change_label(change), **look))
    return handles


def _launch(theme: Theme) -> dict:
    return {"linestyle": "", "marker": "o", "markersize": 3.2, "color": theme.muted, "alpha": 0.5}


def _median(theme: Theme) -> dict:
    return {"color": theme.strategy("pipeline"), "linewidth": 1.6, "marker": "o", "markersize": 2.6}


def _level(theme: Theme) -> dict:
    return {"color": theme.text, "linewidth": 1.2, "alpha": 0.75}
