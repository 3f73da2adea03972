"""Stacked bars: where each row's step goes."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..chart_types import HIDDEN, Breakdown, BreakdownBar
from ..labels import sentence, time_text
from .style import Frame, backed, framed, text_width, unit_of
from .theme import Theme


def draw(chart: Breakdown, theme: Theme) -> Figure:
    """One horizontal bar a row; its parts add up to the step."""
    totals = [sum(bar.parts_ms.get(part, 0.0) for part in chart.parts) for bar in chart.bars]
    divisor, unit = unit_of(max(totals))
    widest = max(text_width(bar.label, 8.5) for bar in chart.bars)
    figure, axes = framed(
        theme,
        Frame(
            width=max(7.2, widest + 5.0),
            height=0.26 * len(chart.bars) + 0.15,
            left=widest + 0.25,
            right=0.7,
        ),
        chart.title,
        chart.subtitle,
        handles=_legend(chart, theme),
        columns=4,
    )
    for position, (bar, total) in enumerate(zip(chart.bars, totals, strict=True)):
        _draw_bar(axes, position, bar, chart.parts, divisor, theme)
        axes.annotate(
            time_text(total),
            (total / divisor, position),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            size=8.0,
            color=theme.text,
            bbox=backed(theme),
        )
    axes.set_yticks(range(len(chart.bars)), [bar.label for bar in chart.bars])
    axes.set_ylim(len(chart.bars) - 0.4, -0.6)
    axes.set_xlim(0.0, max(totals) / divisor * 1.02)
    axes.set_xlabel(f"Step time ({unit})")
    axes.xaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure


def _draw_bar(
    axes: Axes, position: int, bar: BreakdownBar, parts: list[str], divisor: float, theme: Theme
) -> None:
    start = 0.0
    for part in parts:
        width = bar.parts_ms.get(part, 0.0) / divisor
        if width <= 0.0:
            continue
        axes.barh(position, width, left=start, height=0.72, zorder=2, **_fill(part, theme))
        hidden = bar.parts_ms.get(HIDDEN, 0.0) / divisor if part == "compute" else 0.0
        if hidden > 0.0:
            axes.barh(
                position,
                min(hidden, width),
                left=start + width - min(hidden, width),
                height=0.72,
                zorder=3,
                **_fill(HIDDEN, theme),
            )
        start += width


def _fill(part: str, theme: Theme) -> dict:
    if part == "bubble":
        return {
            "facecolor": theme.empty,
            "edgecolor": theme.hatch,
            "hatch": "////",
            "linewidth": 0.5,
        }
    if part == HIDDEN:
        return {
            "facecolor": "none",
            "edgecolor": theme.background,
            "hatch": "\\\\\\\\",
            "linewidth": 0.0,
        }
    return {"color": theme.part(part), "linewidth": 0.0}


def _legend(chart: Breakdown, theme: Theme) -> list[Patch]:
    handles = [Patch(label=sentence(part), **_fill(part, theme)) for part in chart.parts]
    if any(bar.parts_ms.get(HIDDEN, 0.0) > 0.0 for bar in chart.bars):
        style = _fill(HIDDEN, theme) | {"facecolor": theme.part("compute")}
        handles.append(Patch(label="Communication hidden", **style))
    return handles
