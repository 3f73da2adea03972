"""Bars with marks: pipeline schedules, measured beside simulated and closed form."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..chart_types import SchedulePoint, Schedules
from .style import Frame, backed, framed, text_width
from .theme import Theme

_SIMULATED = {"linestyle": "", "marker": "D", "markersize": 5.6, "markeredgewidth": 1.2}
_CLOSED_FORM = {"linestyle": "", "marker": "|", "markersize": 15.0, "markeredgewidth": 2.0}


def draw(chart: Schedules, theme: Theme) -> Figure:
    """One horizontal bar a schedule, slowest first, with its samples and both expectations."""
    divisor, unit = 1e3, "s"
    if max(point.measured.time_ms for point in chart.points) < 1e3:
        divisor, unit = 1.0, "ms"
    widest = max(text_width(point.label, 9.0) for point in chart.points)
    figure, axes = framed(
        theme,
        Frame(
            width=8.2,
            height=0.5 * len(chart.points) + 0.2,
            left=widest + 0.3,
            right=1.5,
            bottom=0.52,
        ),
        chart.title,
        chart.subtitle,
        handles=_handles(theme, chart),
        columns=4,
    )
    for position, point in enumerate(chart.points):
        _draw_point(axes, theme, position, point, divisor, unit)
    ends = [value for point in chart.points for value in _values(point)]
    axes.set_yticks(range(len(chart.points)), [point.label for point in chart.points])
    axes.set_ylim(len(chart.points) - 0.4, -0.6)
    axes.set_xlim(0.0, max(ends) / divisor * 1.03)
    axes.set_xlabel(f"Step time ({unit})")
    axes.xaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure


def _draw_point(axes, theme: Theme, position: int, point: SchedulePoint, divisor, unit) -> None:
    measured = point.measured
    color = theme.strategy("pipeline")
    time = measured.time_ms / divisor
    axes.barh(position, time, height=0.56, color=color, alpha=0.45, linewidth=0.0, zorder=2)
    error = [[time - measured.low_ms / divisor], [measured.high_ms / divisor - time]]
    axes.errorbar(time, position, xerr=error, color=theme.text, capsize=3.0, zorder=4)
    samples = [value / divisor for value in measured.samples_ms]
    axes.plot(samples, [position] * len(samples), **_sample(theme), zorder=3)
    if point.simulated_ms is not None:
        axes.plot(point.simulated_ms / divisor, position, **_simulated(theme), zorder=5)
    if point.closed_form_ms is not None:
        axes.plot(point.closed_form_ms / divisor, position, **_closed_form(theme), zorder=5)
    text = f"{time:.3g} {unit}"
    if point.live_micro_batches is not None:
        text += f", {point.live_micro_batches:.0f} live"
    axes.annotate(
        text,
        (max(_values(point)) / divisor, position),
        xytext=(9, 0),
        textcoords="offset points",
        va="center",
        size=8.5,
        color=theme.text,
        bbox=backed(theme),
        annotation_clip=False,
    )


def _values(point: SchedulePoint) -> list[float]:
    known = [point.simulated_ms, point.closed_form_ms, point.measured.high_ms]
    return [value for value in [*known, *point.measured.samples_ms] if value is not None]


def _sample(theme: Theme) -> dict:
    return {"linestyle": "", "marker": "o", "markersize": 3.6, "color": theme.text, "alpha": 0.55}


def _simulated(theme: Theme) -> dict:
    return {
        **_SIMULATED,
        "markerfacecolor": theme.background,
        "markeredgecolor": theme.part("communication_exposed"),
    }


def _closed_form(theme: Theme) -> dict:
    return {**_CLOSED_FORM, "color": theme.part("optimizer")}


def _handles(theme: Theme, chart: Schedules) -> list[Line2D]:
    return [
        Line2D([], [], color=theme.text, label=chart.error_label),
        Line2D([], [], label="sample", **_sample(theme)),
        Line2D([], [], label="simulated", **_simulated(theme)),
        Line2D([], [], label="closed form", **_closed_form(theme)),
    ]
