"""Step time over the pipeline's split size, with predictions and the other strategies' levels."""

from __future__ import annotations

from ..chart_types import Point, SplitSeries, SplitSizeTradeoff
from ..charts.split_size_tradeoff import heights, series_color
from ..charts.style import jitter, unit_of
from ..charts.theme import Theme
from ..labels import time_text
from .style import between, bold, error_bars, layout, text, title

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")


def figure(chart: SplitSizeTradeoff, theme: Theme) -> dict:
    """Splits evenly spaced and all ticked, because 1 to 60 would crowd on a linear axis."""
    splits = sorted({split for line in chart.series for split in line.splits})
    place = {split: index for index, split in enumerate(splits)}
    values = [value for _, _, value in heights(chart)]
    divisor, unit = unit_of(max(values))
    low, high = min(values) / divisor, max(values) / divisor
    data = [_level(chart, index, len(splits), divisor, theme) for index in range(len(chart.levels))]
    for index, line in enumerate(chart.series):
        color = series_color(chart, index, theme)
        ink = color if len(chart.series) > 1 else theme.text
        data += _predictions(line, place, divisor, ink, index == chart.best_series)
        data.append(_samples(line, place, divisor, color, index == chart.best_series))
        data.append(_line(chart, index, place, divisor, theme))
    return {
        "data": [*data, _ring(chart, place, divisor, theme)],
        "layout": layout(
            theme,
            480,
            {
                "title": title("Split size (samples in a micro-batch)"),
                "tickmode": "array",
                "tickvals": list(range(len(splits))),
                "ticktext": [str(split) for split in splits],
                "range": [-0.5, len(splits) - 0.5],
            },
            {
                "title": title(f"{chart.axis} ({unit})"),
                "range": [max(0.0, low - 0.3 * (high - low)), high + 0.06 * (high - low)],
                "showgrid": True,
            },
            annotations=[_note(chart, place, divisor, theme)],
        ),
    }


def _line(
    chart: SplitSizeTradeoff, index: int, place: dict[int, int], divisor: float, theme: Theme
) -> dict:
    line = chart.series[index]
    times = [point.time_ms / divisor for point in line.points]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": text(line.label),
        "x": [place[split] for split in line.splits],
        "y": times,
        "line": {"color": series_color(chart, index, theme), "width": 2.5},
        "marker": {
            "symbol": _SYMBOLS[index % len(_SYMBOLS)],
            "size": 9,
            "line": {"color": theme.background, "width": 1},
        },
        "error_y": error_bars(
            theme,
            times,
            [point.low_ms / divisor for point in line.points],
            [point.high_ms / divisor for point in line.points],
        ),
        "hovertext": [
            _hover(line, split, point, chart.error_label)
            for split, point in zip(line.splits, line.points, strict=True)
        ],
        "hoverinfo": "text",
    }


def _hover(line: SplitSeries, split: int, point: Point, error_label: str) -> str:
    at = line.splits.index(split)
    predicted, two_splits = line.predicted_ms[at], line.predicted_from_two_splits_ms[at]
    return bold(
        f"{line.label}, split {split}",
        time_text(point.time_ms),
        f"{between(point.low_ms, point.high_ms)}: {error_label}",
        "" if predicted is None else f"predicted {time_text(predicted)}",
        "" if two_splits is None else f"predicted from two splits {time_text(two_splits)}",
    )


def _samples(
    line: SplitSeries, place: dict[int, int], divisor: float, color: str, named: bool
) -> dict:
    across, up, hover = [], [], []
    for split, point in zip(line.splits, line.points, strict=True):
        offsets = jitter(len(point.samples_ms), 0.16)
        across += [place[split] + 0.24 + offset for offset in offsets]
        up += [value / divisor for value in point.samples_ms]
        hover += [bold(f"Split {split}", f"sample: {time_text(v)}") for v in point.samples_ms]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "one sample",
        "showlegend": named,
        "x": across,
        "y": up,
        "marker": {"size": 5, "color": color, "opacity": 0.7},
        "hovertext": hover,
        "hoverinfo": "text",
    }


def _predictions(
    line: SplitSeries, place: dict[int, int], divisor: float, color: str, named: bool
) -> list[dict]:
    found = []
    for name, dash, values in (
        ("simulator's prediction", "solid", line.predicted_ms),
        ("predicted from two splits", "dash", line.predicted_from_two_splits_ms),
    ):
        known = [
            (place[split], value / divisor)
            for split, value in zip(line.splits, values, strict=True)
            if value is not None
        ]
        if known:
            found.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": name,
                    "showlegend": named,
                    "x": [across for across, _ in known],
                    "y": [up for _, up in known],
                    "line": {"color": color, "width": 1.2, "dash": dash},
                    "hovertext": [bold(name, time_text(up * divisor)) for _, up in known],
                    "hoverinfo": "text",
                }
            )
    return found


def _level(
    chart: SplitSizeTradeoff, index: int, count: int, divisor: float, theme: Theme
) -> dict:
    label, strategy, value = chart.levels[index]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{text(label)}, {time_text(value)}",
        "x": [-0.5, count - 0.5],
        "y": [value / divisor] * 2,
        "line": {"color": theme.strategy(strategy), "width": 2},
        "hovertext": [bold(label, time_text(value))] * 2,
        "hoverinfo": "text",
    }


def _ring(chart: SplitSizeTradeoff, place: dict[int, int], divisor: float, theme: Theme) -> dict:
    line = chart.series[chart.best_series]
    point = line.points[chart.best_index]
    return {
        "type": "scatter",
        "mode": "markers",
        "showlegend": False,
        "x": [place[line.splits[chart.best_index]]],
        "y": [point.time_ms / divisor],
        "marker": {
            "symbol": "circle-open",
            "size": 20,
            "line": {"width": 2.5, "color": theme.strategy("pipeline")},
            "color": theme.strategy("pipeline"),
        },
        "hoverinfo": "skip",
    }


def _note(chart: SplitSizeTradeoff, place: dict[int, int], divisor: float, theme: Theme) -> dict:
    """What there is to say about the best split, below its point."""
    line = chart.series[chart.best_series]
    point, at = line.points[chart.best_index], place[line.splits[chart.best_index]]
    first, *rest = chart.best_note.split("\n")
    side = "left" if at < 1 else "right" if at > len(place) - 2 else "center"
    return {
        "x": at,
        "y": min(point.time_ms, point.low_ms) / divisor,
        "text": text("\n".join([f"{first}, {time_text(point.time_ms)}", *rest])),
        "showarrow": True,
        "arrowhead": 0,
        "arrowwidth": 1,
        "arrowcolor": theme.strategy("pipeline"),
        "ax": 0,
        "ay": 44,
        "xanchor": side,
        "standoff": 12,
        "bgcolor": theme.background,
        "font": {"size": 11, "color": theme.text},
    }
