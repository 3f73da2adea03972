"""Strategies as bars: mp_vs_rn and mp_vs_rn_vs_pp."""

from __future__ import annotations

from ..chart_types import Bar, BarChart
from ..charts.style import jitter, unit_of
from ..charts.theme import Theme
from ..labels import time_text
from .style import between, bold, error_bars, layout, sample_marker, text, title


def figure(chart: BarChart, theme: Theme) -> dict:
    """Bars with error bars and every sample; the factor is relative to the single device."""
    points = [bar.point for bar in chart.bars]
    longest = max(max(point.high_ms, *point.samples_ms) for point in points)
    divisor, unit = unit_of(longest)
    heights = [point.time_ms / divisor for point in points]
    places = list(range(len(chart.bars)))
    bars = {
        "type": "bar",
        "name": text(chart.error_label),
        "showlegend": False,
        "x": places,
        "y": heights,
        "width": 0.62,
        "marker": {"color": [theme.strategy(bar.strategy) for bar in chart.bars]},
        "error_y": error_bars(
            theme,
            heights,
            [point.low_ms / divisor for point in points],
            [point.high_ms / divisor for point in points],
        ),
        "hovertext": [_hover(bar, chart.error_label) for bar in chart.bars],
        "hoverinfo": "text",
    }
    return {
        "data": [bars, _samples(chart, divisor, theme), _values(chart, divisor, theme)],
        "layout": layout(
            theme,
            400,
            {
                "tickmode": "array",
                "tickvals": places,
                "ticktext": [text(bar.label) for bar in chart.bars],
                "range": [-0.55, len(places) - 0.45],
                "fixedrange": True,
                "tickangle": 0,
            },
            {
                "title": title(f"{chart.axis} ({unit})"),
                "range": [0.0, longest / divisor * 1.25],
                "showgrid": True,
            },
            meta={"stacked_names": True},
        ),
    }


def _hover(bar: Bar, error_label: str) -> str:
    speed = f"{bar.speed:.2f}\u00d7 as fast as the single device" if bar.speed else ""
    point = bar.point
    return bold(
        bar.label.replace("\n", " "),
        time_text(point.time_ms),
        f"{between(point.low_ms, point.high_ms)}: {error_label}",
        f"{len(point.samples_ms)} samples",
        speed,
    )


def _samples(chart: BarChart, divisor: float, theme: Theme) -> dict:
    across, up, hover = [], [], []
    for place, bar in enumerate(chart.bars):
        samples = bar.point.samples_ms
        across += [place + 0.19 + offset for offset in jitter(len(samples), 0.22)]
        up += [sample / divisor for sample in samples]
        hover += [bold(bar.label.replace("\n", " "), f"sample: {time_text(s)}") for s in samples]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "one sample",
        "x": across,
        "y": up,
        "marker": sample_marker(theme),
        "hovertext": hover,
        "hoverinfo": "text",
    }


def _values(chart: BarChart, divisor: float, theme: Theme) -> dict:
    words, tops = [], []
    longest = max(bar.point.high_ms for bar in chart.bars)
    for bar in chart.bars:
        speed = f"<br>{bar.speed:.2f}\u00d7" if bar.speed else ""
        words.append(f"<b>{time_text(bar.point.time_ms)}</b>{speed}")
        tops.append((max(bar.point.high_ms, *bar.point.samples_ms) + 0.02 * longest) / divisor)
    return {
        "type": "scatter",
        "mode": "text",
        "x": list(range(len(tops))),
        "y": tops,
        "text": words,
        "textposition": "top center",
        "textfont": {"color": theme.text},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
    }
