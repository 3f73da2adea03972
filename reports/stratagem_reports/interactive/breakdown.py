"""Stacked bars: where each row's step goes."""

from __future__ import annotations

from ..chart_types import HIDDEN, Breakdown
from ..charts.style import unit_of
from ..charts.theme import Theme
from ..labels import percent, sentence, time_text
from .style import bold, layout, pixels, text, title

_BAR = 26


def figure(chart: Breakdown, theme: Theme) -> dict:
    """One horizontal bar a row; its parts add up to the step."""
    totals = [sum(bar.parts_ms.get(part, 0.0) for part in chart.parts) for bar in chart.bars]
    divisor, unit = unit_of(max(totals))
    places = list(range(len(chart.bars)))
    traces = [_part(chart, part, totals, divisor, theme) for part in chart.parts]
    if any(bar.parts_ms.get(HIDDEN, 0.0) > 0.0 for bar in chart.bars):
        traces.append(_hidden(chart, divisor, theme))
    traces.append(_totals(totals, divisor, theme))
    return {
        "data": traces,
        "layout": layout(
            theme,
            pixels(len(places), _BAR, 260),
            {
                "title": title(f"Step time ({unit})"),
                "range": [0.0, max(totals) / divisor * 1.12],
                "showgrid": True,
            },
            {
                "tickmode": "array",
                "tickvals": places,
                "ticktext": [text(bar.label) for bar in chart.bars],
                "range": [len(places) - 0.4, -0.6],
                "fixedrange": True,
            },
            barmode="overlay",
            meta={"room_at_right": 1.2},
        ),
    }


def _part(chart: Breakdown, part: str, totals: list[float], divisor: float, theme: Theme) -> dict:
    before = chart.parts[: chart.parts.index(part)]
    marker = {"color": theme.part(part), "line": {"width": 0}}
    if part == "bubble":
        marker = {
            "color": theme.empty,
            "line": {"color": theme.hatch, "width": 0.5},
            "pattern": {"shape": "/", "size": 6, "solidity": 0.2, "fgcolor": theme.hatch},
        }
    return {
        "type": "bar",
        "orientation": "h",
        "name": sentence(part),
        "y": list(range(len(chart.bars))),
        "x": [bar.parts_ms.get(part, 0.0) / divisor for bar in chart.bars],
        "base": [
            sum(bar.parts_ms.get(other, 0.0) for other in before) / divisor for bar in chart.bars
        ],
        "width": 0.72,
        "marker": marker,
        "hovertext": [
            bold(bar.label, f"{sentence(part)}: {_share(bar.parts_ms.get(part, 0.0), total)}")
            for bar, total in zip(chart.bars, totals, strict=True)
        ],
        "hoverinfo": "text",
    }


def _hidden(chart: Breakdown, divisor: float, theme: Theme) -> dict:
    """Hidden communication as stripes at the end of compute, inside of which it lies."""
    widths, ends = [], []
    before = chart.parts[: chart.parts.index("compute")] if "compute" in chart.parts else []
    for bar in chart.bars:
        compute = bar.parts_ms.get("compute", 0.0)
        widths.append(min(bar.parts_ms.get(HIDDEN, 0.0), compute))
        ends.append(sum(bar.parts_ms.get(other, 0.0) for other in before) + compute)
    return {
        "type": "bar",
        "orientation": "h",
        "name": "Communication hidden",
        "y": list(range(len(chart.bars))),
        "x": [width / divisor for width in widths],
        "base": [(end - width) / divisor for end, width in zip(ends, widths, strict=True)],
        "width": 0.72,
        "marker": {
            "color": theme.part("compute"),
            "line": {"width": 0},
            "pattern": {
                "shape": "\\",
                "size": 6,
                "solidity": 0.3,
                "fgcolor": theme.background,
                "bgcolor": theme.part("compute"),
            },
        },
        "hovertext": [
            bold(bar.label, f"Communication hidden: {time_text(bar.parts_ms.get(HIDDEN, 0.0))}")
            for bar in chart.bars
        ],
        "hoverinfo": "text",
    }


def _totals(totals: list[float], divisor: float, theme: Theme) -> dict:
    return {
        "type": "scatter",
        "mode": "text",
        "x": [total / divisor for total in totals],
        "y": list(range(len(totals))),
        "text": [f" {time_text(total)}" for total in totals],
        "textposition": "middle right",
        "textfont": {"color": theme.text, "size": 11},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
    }


def _share(value: float, total: float) -> str:
    return f"{time_text(value)}, {percent(value / total)} of the step" if total else "0 ms"
