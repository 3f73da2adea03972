"""Step time over the pipeline's split size, with predictions and the other strategies' levels."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..chart_types import SplitSeries, SplitSizeTradeoff
from ..labels import time_text
from .style import Frame, backed, framed, interval_handle, jitter, spread, unit_of
from .theme import Theme

_HEIGHT = 3.7
_MARKERS = ("o", "s", "D", "^", "v", "P")
_OTHER_SERIES = ("#44AA99", "#CC79A7", "#999933", "#D55E00", "#56B4E9")


def draw(chart: SplitSizeTradeoff, theme: Theme) -> Figure:
    """Splits evenly spaced and all ticked, because 1 to 60 would crowd on a linear axis."""
    splits = sorted({split for line in chart.series for split in line.splits})
    place = {split: index for index, split in enumerate(splits)}
    divisor, unit = unit_of(max(level for _, _, level in heights(chart)))
    figure, axes = framed(
        theme,
        Frame(width=max(7.2, 0.42 * len(splits) + 2.6), height=_HEIGHT, right=1.55),
        chart.title,
        chart.subtitle,
        handles=_legend(chart, theme),
        columns=2,
    )
    tops = [value for _, _, value in heights(chart)]
    low, high = min(tops) / divisor, max(tops) / divisor
    axes.set_ylim(max(0.0, low - 0.28 * (high - low)), high + 0.06 * (high - low))
    axes.set_xlim(-0.5, len(splits) - 0.5)
    for index, line in enumerate(chart.series):
        color = series_color(chart, index, theme)
        ink = color if len(chart.series) > 1 else theme.text
        _draw_predictions(axes, line, place, divisor, ink)
        _draw_series(axes, line, place, divisor, color, index, theme)
    _draw_levels(axes, chart, divisor, theme)
    _mark_best(axes, chart, place, divisor, theme)
    axes.set_xticks(range(len(splits)), [str(split) for split in splits])
    axes.set_xlabel("Split size (samples in a micro-batch)")
    axes.set_ylabel(f"{chart.axis} ({unit})")
    axes.yaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure


def heights(chart: SplitSizeTradeoff) -> list[tuple[str, str, float]]:
    """Everything that the vertical axis must hold, as (what, which, milliseconds)."""
    found = list(chart.levels)
    for line in chart.series:
        for point in line.points:
            found += [("sample", line.label, value) for value in point.samples_ms]
            found += [("bar", line.label, value) for value in (point.low_ms, point.high_ms)]
        predictions = line.predicted_ms + line.predicted_from_two_splits_ms
        found += [("predicted", line.label, value) for value in predictions if value is not None]
    return found


def series_color(chart: SplitSizeTradeoff, index: int, theme: Theme) -> str:
    """The pipeline's own colour for the series of the best split, others for the rest."""
    if index == chart.best_series:
        return theme.strategy("pipeline")
    others = [other for other in range(len(chart.series)) if other != chart.best_series]
    return _OTHER_SERIES[others.index(index) % len(_OTHER_SERIES)]


def _draw_series(
    axes: Axes,
    line: SplitSeries,
    place: dict[int, int],
    divisor: float,
    color: str,
    index: int,
    theme: Theme,
) -> None:
    positions = [place[split] for split in line.splits]
    tops = [point.time_ms / divisor for point in line.points]
    axes.plot(positions, tops, "-", color=color, linewidth=2.0, zorder=4)
    for x, point in zip(positions, line.points, strict=True):
        samples = [sample / divisor for sample in point.samples_ms]
        axes.plot(
            [x + 0.24 + offset for offset in jitter(len(samples), 0.16)],
            samples,
            "o",
            markersize=2.8,
            color=to_rgba(color, 0.75),
            markeredgewidth=0.0,
            zorder=5,
        )
        height = point.time_ms / divisor
        axes.errorbar(
            x,
            height,
            yerr=[[height - point.low_ms / divisor], [point.high_ms / divisor - height]],
            fmt=_MARKERS[index % len(_MARKERS)],
            markersize=5.0,
            color=color,
            ecolor=theme.text,
            markeredgecolor=theme.background,
            markeredgewidth=0.8,
            capsize=5,
            elinewidth=1.1,
            capthick=1.1,
            zorder=6,
        )


def _draw_predictions(
    axes: Axes, line: SplitSeries, place: dict[int, int], divisor: float, color: str
) -> None:
    for style, values in _predictions(line):
        known = [
            (place[split], value / divisor)
            for split, value in zip(line.splits, values, strict=True)
            if value is not None
        ]
        axes.plot(
            [x for x, _ in known],
            [y for _, y in known],
            style,
            color=color,
            linewidth=0.9,
            zorder=3,
        )


def _predictions(line: SplitSeries) -> list[tuple[str, list[float | None]]]:
    styles = (("-", line.predicted_ms), ("--", line.predicted_from_two_splits_ms))
    return [(style, values) for style, values in styles if any(v is not None for v in values)]


def _draw_levels(axes: Axes, chart: SplitSizeTradeoff, divisor: float, theme: Theme) -> None:
    """Horizontal lines, named at the right where labels are moved apart if lines are close."""
    if not chart.levels:
        return
    low, high = axes.get_ylim()
    gap = (high - low) * 0.34 / _HEIGHT
    values = [level / divisor for _, _, level in chart.levels]
    spots = zip(chart.levels, values, spread(values, gap), strict=True)
    for (label, strategy, level), value, text_at in spots:
        color = theme.strategy(strategy)
        axes.axhline(value, color=color, linewidth=1.2, zorder=2)
        axes.annotate(
            f"{label}\n{time_text(level)}",
            (1.0, value),
            xycoords=("axes fraction", "data"),
            xytext=(1.035, text_at),
            textcoords=("axes fraction", "data"),
            va="center",
            size=8.0,
            color=theme.text,
            linespacing=1.15,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "linewidth": 1.2,
                "shrinkA": 2,
                "shrinkB": 0,
            },
        )


def _mark_best(
    axes: Axes, chart: SplitSizeTradeoff, place: dict[int, int], divisor: float, theme: Theme
) -> None:
    line = chart.series[chart.best_series]
    point = line.points[chart.best_index]
    x, y = place[line.splits[chart.best_index]], point.time_ms / divisor
    color = theme.strategy("pipeline")
    axes.plot(
        x,
        y,
        "o",
        markersize=13,
        markerfacecolor="none",
        markeredgecolor=color,
        markeredgewidth=1.8,
        zorder=7,
    )
    low, high = axes.get_ylim()
    first, *rest = chart.best_note.split("\n")
    half = len(place) / 2.0
    axes.annotate(
        "\n".join([f"{first}, {time_text(point.time_ms)}", *rest]),
        (x, min(y, point.low_ms / divisor)),
        xytext=(x, low + 0.02 * (high - low)),
        ha="left" if x < 1 else "right" if x > 2 * half - 2 else "center",
        va="bottom",
        size=8.0,
        color=theme.text,
        linespacing=1.25,
        bbox=backed(theme),
        arrowprops={"arrowstyle": "-", "color": color, "linewidth": 1.0, "shrinkB": 8},
        zorder=8,
    )


def _legend(chart: SplitSizeTradeoff, theme: Theme) -> list[Line2D]:
    handles = []
    for index, line in enumerate(chart.series):
        handles.append(
            Line2D(
                [],
                [],
                color=series_color(chart, index, theme),
                linewidth=2.0,
                markersize=5.5,
                marker=_MARKERS[index % len(_MARKERS)],
                label=line.label,
            )
        )
    handles += [
        Line2D(
            [], [], linestyle="", marker="o", markersize=3.0, color=theme.muted, label="one sample"
        ),
        interval_handle(theme, chart.error_label),
    ]
    labels = {"-": "simulator's prediction", "--": "predicted from two splits"}
    drawn = dict.fromkeys(style for line in chart.series for style, _ in _predictions(line))
    handles += [
        Line2D([], [], color=theme.text, linewidth=0.9, linestyle=style, label=labels[style])
        for style in drawn
    ]
    return handles
