"""Bus bandwidth over message size, both axes logarithmic."""

from __future__ import annotations

import math

from ..chart_types import Bandwidth, BandwidthSeries
from ..charts.bandwidth import COLORS
from ..charts.theme import Theme
from ..labels import size_text
from .style import bold, error_bars, layout, text, title

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")


def figure(chart: Bandwidth, theme: Theme) -> dict:
    """One line a collective; bars from the slowest to the fastest round."""
    sizes = sorted({point.size for line in chart.series for point in line.points})
    shown = sizes[:: max(1, -(-len(sizes) // 10))]
    return {
        "data": [_line(line, index, theme) for index, line in enumerate(chart.series)],
        "layout": layout(
            theme,
            440,
            {
                "title": title("Message size"),
                "type": "log",
                "tickmode": "array",
                "tickvals": shown,
                "ticktext": [size_text(size) for size in shown],
                "range": [math.log10(sizes[0]) - 0.15, math.log10(sizes[-1]) + 0.15],
            },
            {
                "title": title("Bus bandwidth (GB/s)"),
                "type": "log",
                "dtick": 1,
                "showgrid": True,
            },
        ),
    }


def _line(line: BandwidthSeries, index: int, theme: Theme) -> dict:
    rates = [point.rate for point in line.points]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": text(line.label),
        "x": [point.size for point in line.points],
        "y": rates,
        "line": {"color": COLORS[index % len(COLORS)], "width": 2.5},
        "marker": {"symbol": _SYMBOLS[index % len(_SYMBOLS)], "size": 8},
        "error_y": error_bars(
            theme,
            rates,
            [point.low for point in line.points],
            [point.high for point in line.points],
        ),
        "hovertext": [
            bold(
                f"{line.label}, {size_text(point.size)}",
                f"{point.rate:.3g} GB/s, {point.low:.3g} to {point.high:.3g}",
            )
            for point in line.points
        ],
        "hoverinfo": "text",
    }
