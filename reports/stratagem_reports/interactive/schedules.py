"""Bars with marks: pipeline schedules, measured beside simulated and closed form."""

from __future__ import annotations

from ..chart_types import SchedulePoint, Schedules
from ..charts.theme import Theme
from ..labels import time_text
from .style import between, bold, error_bars, layout, pixels, sample_marker, text, title

_BAR = 48


def figure(chart: Schedules, theme: Theme) -> dict:
    """One horizontal bar a schedule, slowest first, with its samples and both expectations."""
    longest = max(point.measured.time_ms for point in chart.points)
    divisor, unit = (1e3, "s") if longest >= 1e3 else (1.0, "ms")
    places = list(range(len(chart.points)))
    times = [point.measured.time_ms / divisor for point in chart.points]
    measured = {
        "type": "bar",
        "orientation": "h",
        "name": "measured",
        "y": places,
        "x": times,
        "width": 0.56,
        "marker": {"color": theme.strategy("pipeline"), "opacity": 0.55},
        "error_x": error_bars(
            theme,
            times,
            [point.measured.low_ms / divisor for point in chart.points],
            [point.measured.high_ms / divisor for point in chart.points],
        ),
        "hovertext": [_hover(point, chart.error_label) for point in chart.points],
        "hoverinfo": "text",
    }
    return {
        "data": [
            measured,
            _samples(chart, divisor, theme),
            _marks(chart, "simulated", divisor, theme),
            _marks(chart, "closed form", divisor, theme),
        ],
        "layout": layout(
            theme,
            pixels(len(places), _BAR, 260),
            {"title": title(f"Step time ({unit})"), "rangemode": "tozero", "showgrid": True},
            {
                "tickmode": "array",
                "tickvals": places,
                "ticktext": [text(point.label) for point in chart.points],
                "range": [len(places) - 0.4, -0.6],
                "fixedrange": True,
            },
        ),
    }


def _hover(point: SchedulePoint, error_label: str) -> str:
    measured, live = point.measured, point.live_micro_batches
    return bold(
        point.label,
        f"measured {time_text(measured.time_ms)}",
        f"{between(measured.low_ms, measured.high_ms)}: {error_label}",
        "" if live is None else f"{live:.0f} micro-batches alive at most",
    )


def _samples(chart: Schedules, divisor: float, theme: Theme) -> dict:
    found = [
        (place, point.label, value)
        for place, point in enumerate(chart.points)
        for value in point.measured.samples_ms
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "one sample",
        "y": [place for place, *_ in found],
        "x": [value / divisor for *_, value in found],
        "marker": sample_marker(theme),
        "hovertext": [bold(label, f"sample: {time_text(value)}") for _, label, value in found],
        "hoverinfo": "text",
    }


def _marks(chart: Schedules, name: str, divisor: float, theme: Theme) -> dict:
    """One of the two expectations, where it is known."""
    simulated = name == "simulated"
    known = [
        (place, point.label, value)
        for place, point in enumerate(chart.points)
        for value in [point.simulated_ms if simulated else point.closed_form_ms]
        if value is not None
    ]
    color = theme.part("communication_exposed" if simulated else "optimizer")
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "showlegend": bool(known),
        "y": [place for place, *_ in known],
        "x": [value / divisor for *_, value in known],
        "marker": {
            "symbol": "diamond-open" if simulated else "line-ns-open",
            "size": 10 if simulated else 20,
            "color": color,
            "line": {"color": color, "width": 2},
        },
        "hovertext": [bold(label, f"{name}: {time_text(value)}") for _, label, value in known],
        "hoverinfo": "text",
    }
