"""A row over time: every launch, the median of each run, and where the level changed."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..history.points import STEP, counted
from ..history.trend import Change, Trend
from ..history.trend_text import commits
from .style import Frame, backed, encode, framed
from .theme import DARK, LIGHT, Theme

_MOST_TICKS = 8


def render_trend(trend: Trend, extensions: tuple[str, ...]) -> dict[str, bytes]:
    """The chart of a trend as image files: {extension: bytes}."""
    return encode(lambda: draw(trend, LIGHT), extensions)


def render_pair(trend: Trend) -> dict[str, bytes]:
    """The chart as SVG in both renderings: {"light": bytes, "dark": bytes}."""
    themes = {"light": LIGHT, "dark": DARK}
    return {
        name: encode(lambda theme=theme: draw(trend, theme), ("svg",))["svg"]
        for name, theme in themes.items()
    }


def draw(trend: Trend, theme: Theme) -> Figure:
    """Runs evenly spaced, oldest at the left; change points stand between two runs."""
    divisor, unit = 1.0, trend.unit
    if trend.unit == "ms" and max(trend.values) >= 1e3:
        divisor, unit = 1e3, "s"
    figure, axes = framed(
        theme,
        Frame(width=9.0, height=3.4, right=0.5, bottom=0.35),
        f"{trend.series.name}",
        f"{trend.metric} over {counted(len(trend.runs), 'run')} on {trend.series.machine}",
        footnote=_footnote(trend),
        handles=_handles(trend, theme),
        columns=5,
    )
    positions = range(len(trend.runs))
    for position, run in zip(positions, trend.runs, strict=True):
        _draw_run(axes, theme, position, _launches(trend, run, divisor), run.interval, divisor)
    axes.plot(positions, [value / divisor for value in trend.values], **_median(theme), zorder=3)
    _draw_levels(axes, theme, trend, divisor)
    for number, change in enumerate(trend.changes):
        _draw_change(axes, theme, change, number, len(trend.runs))
    step = max(1, -(-len(trend.runs) // _MOST_TICKS))
    axes.set_xticks(
        list(positions)[::step], [f"{run.time:%Y-%m-%d}" for run in trend.runs[::step]]
    )
    axes.set_xlim(-0.7, len(trend.runs) - 0.3)
    axes.margins(y=0.22)
    label = "Step time" if trend.metric == STEP else trend.metric
    axes.set_ylabel(f"{label} ({unit})" if unit else label)
    axes.yaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure


def _draw_run(axes: Axes, theme: Theme, position, launches, interval, divisor) -> None:
    if launches:
        axes.plot([position] * len(launches), launches, **_launch(theme), zorder=2)
    if interval and launches:
        low, high = (value / divisor for value in interval)
        axes.plot([position, position], [low, high], color=theme.muted, linewidth=0.8, zorder=2)


def _draw_levels(axes: Axes, theme: Theme, trend: Trend, divisor: float) -> None:
    """The mean of each piece between change points."""
    if not trend.changes:
        return
    edges = [0, *(change.index for change in trend.changes), len(trend.runs)]
    means = [change.mean_before for change in trend.changes] + [trend.changes[-1].mean_after]
    for start, end, mean in zip(edges, edges[1:], means, strict=False):
        axes.plot(
            [start - 0.5, end - 0.5], [mean / divisor] * 2, **_level(theme), zorder=4
        )


def _draw_change(axes: Axes, theme: Theme, change: Change, number: int, runs: int) -> None:
    color = _color(change, theme)
    late = change.index > 0.7 * runs
    axes.axvline(change.index - 0.5, color=color, linestyle="--", linewidth=1.4, zorder=5)
    axes.annotate(
        f"{change.size} {change.direction}\n{commits(change)}",
        (change.index - 0.5, 0.97 if number % 2 == 0 else 0.12),
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


def _launches(trend: Trend, run, divisor: float) -> list[float]:
    """Times have one value a launch; other metrics have none."""
    return [value / divisor for value in run.launches] if trend.metric == STEP else []


def _footnote(trend: Trend) -> str:
    words = counted(len(trend.changes), "change point") if trend.changes else "No change point"
    return (
        f"{words}, by Apache Otava; one value a run, the median of its launches. "
        "The axis does not start at zero."
    )


def _handles(trend: Trend, theme: Theme) -> list[Line2D]:
    handles = [Line2D([], [], label="median of a run", **_median(theme))]
    if trend.metric == STEP:
        handles.append(Line2D([], [], label="launch", **_launch(theme)))
    if trend.changes:
        handles.append(Line2D([], [], label="mean between change points", **_level(theme)))
    for worse, color in {change.worse: _color(change, theme) for change in trend.changes}.items():
        label = "change for the worse" if worse else "other change"
        handles.append(Line2D([], [], color=color, linestyle="--", linewidth=1.4, label=label))
    return handles


def _color(change: Change, theme: Theme) -> str:
    return theme.part("communication_exposed") if change.worse else theme.strategy("ddp")


def _launch(theme: Theme) -> dict:
    return {"linestyle": "", "marker": "o", "markersize": 3.2, "color": theme.muted, "alpha": 0.5}


def _median(theme: Theme) -> dict:
    return {"color": theme.strategy("pipeline"), "linewidth": 1.6, "marker": "o", "markersize": 2.6}


def _level(theme: Theme) -> dict:
    return {"color": theme.text, "linewidth": 1.2, "alpha": 0.75}
