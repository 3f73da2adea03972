"""Dots on bars: the most memory that each device of a row held."""

from __future__ import annotations

from ..chart_types import MemoryChart
from ..charts.theme import Theme
from .style import bold, layout, pixels, sample_marker, text, title

_BAR = 26
_GIBIBYTE = 2.0**30


def figure(chart: MemoryChart, theme: Theme) -> dict:
    """One horizontal bar a row, as long as its fullest device; every device a dot."""
    longest = max(max(bar.peak_bytes) for bar in chart.bars)
    divisor, unit = (_GIBIBYTE, "GiB") if longest >= 0.1 * _GIBIBYTE else (2.0**20, "MiB")
    places = list(range(len(chart.bars)))
    most = [max(bar.peak_bytes) / divisor for bar in chart.bars]
    bars = {
        "type": "bar",
        "orientation": "h",
        "showlegend": False,
        "y": places,
        "x": most,
        "width": 0.62,
        "marker": {"color": [theme.strategy(bar.strategy) for bar in chart.bars]},
        "hovertext": [
            bold(bar.label, f"{value:.3g} {unit} on the fullest device")
            for bar, value in zip(chart.bars, most, strict=True)
        ],
        "hoverinfo": "text",
    }
    return {
        "data": [bars, _devices(chart, divisor, unit, theme), _values(most, unit, theme)],
        "layout": layout(
            theme,
            pixels(len(places), _BAR, 240),
            {
                "title": title(f"Peak memory ({unit})"),
                "range": [0.0, longest / divisor * 1.14],
                "showgrid": True,
            },
            {
                "tickmode": "array",
                "tickvals": places,
                "ticktext": [text(bar.label) for bar in chart.bars],
                "range": [len(places) - 0.4, -0.6],
                "fixedrange": True,
            },
            meta={"room_at_right": 1.25},
        ),
    }


def _devices(chart: MemoryChart, divisor: float, unit: str, theme: Theme) -> dict:
    dots = [
        (place, bar.label, index, value / divisor)
        for place, bar in enumerate(chart.bars)
        if len(bar.peak_bytes) > 1
        for index, value in enumerate(bar.peak_bytes)
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "one device",
        "showlegend": bool(dots),
        "y": [place for place, *_ in dots],
        "x": [value for *_, value in dots],
        "marker": sample_marker(theme, 7.0),
        "hovertext": [
            bold(label, f"device {index}: {value:.3g} {unit}") for _, label, index, value in dots
        ],
        "hoverinfo": "text",
    }


def _values(most: list[float], unit: str, theme: Theme) -> dict:
    return {
        "type": "scatter",
        "mode": "text",
        "x": most,
        "y": list(range(len(most))),
        "text": [f"  {value:.3g} {unit}" for value in most],
        "textposition": "middle right",
        "textfont": {"color": theme.text, "size": 11},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
    }
