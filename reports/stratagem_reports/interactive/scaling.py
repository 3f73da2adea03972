"""Throughput against the number of devices, with the line that perfect scaling would follow."""

from __future__ import annotations

from ..chart_types import Scaling, ScalingPoint, ScalingSeries
from ..charts.theme import Theme
from .style import bold, error_bars, layout, text, title


def figure(chart: Scaling, theme: Theme) -> dict:
    """One line a strategy from the single device on; error bars as measured."""
    points = [point for line in chart.series for point in line.points]
    most = max(point.devices for point in points)
    highest = max(chart.single * most, *(point.high for point in points))
    ideal = {
        "type": "scatter",
        "mode": "lines",
        "name": "ideal",
        "x": [0, most],
        "y": [0.0, chart.single * most],
        "line": {"color": theme.muted, "width": 1.5, "dash": "dash"},
        "hoverinfo": "skip",
    }
    return {
        "data": [ideal, *(trace for line in chart.series for trace in _traces(chart, line, theme))],
        "layout": layout(
            theme,
            420,
            {
                "title": title("Devices"),
                "tickmode": "array",
                "tickvals": sorted({point.devices for point in points}),
                "range": [0.0, most * 1.06],
            },
            {
                "title": title("Samples a second"),
                "range": [0.0, highest * 1.08],
                "showgrid": True,
            },
        ),
    }


def _traces(chart: Scaling, line: ScalingSeries, theme: Theme) -> list[dict]:
    """What was measured, and what was simulated, hollow, from its last point on."""
    color = theme.strategy(line.strategy)
    measured = [point for point in line.points if not point.simulated]
    simulated = [measured[-1], *(point for point in line.points if point.simulated)]
    solid = _trace(chart, line, measured) | {
        "name": text(line.label),
        "line": {"color": color, "width": 2.5},
        "marker": {"size": 9, "line": {"color": theme.background, "width": 1}},
        "error_y": error_bars(
            theme,
            [point.rate for point in measured],
            [point.low for point in measured],
            [point.high for point in measured],
        ),
    }
    if len(simulated) == 1:
        return [solid]
    hollow = _trace(chart, line, simulated) | {
        "name": text(f"{line.label}, simulated"),
        "line": {"color": color, "width": 2, "dash": "dot"},
        "marker": {"size": [0, *(9 for _ in simulated[1:])], "symbol": "circle-open"},
    }
    hollow["hovertext"][0] = ""
    return [solid, hollow]


def _trace(chart: Scaling, line: ScalingSeries, points: list[ScalingPoint]) -> dict:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [point.devices for point in points],
        "y": [point.rate for point in points],
        "hovertext": [_hover(chart, line, point) for point in points],
        "hoverinfo": "text",
    }


def _hover(chart: Scaling, line: ScalingSeries, point: ScalingPoint) -> str:
    noun = "device" if point.devices == 1 else "devices"
    share = 100.0 * point.rate / (chart.single * point.devices)
    return bold(
        f"{line.label}, {point.devices} {noun}",
        f"{point.rate:.3g} samples a second, "
        + ("simulated" if point.simulated else f"{point.low:.3g} to {point.high:.3g}"),
        f"{share:.0f}% of ideal",
    )
