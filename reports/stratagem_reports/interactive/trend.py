"""A row over time: every launch, the median of each run, and where the level changed."""

from __future__ import annotations

from ..chart_types import TrendChange, TrendChart, TrendRun
from ..charts.theme import Theme
from ..charts.trend import change_color, change_label
from .style import bold, error_bars, layout, text, title

_MOST_TICKS = 8


def figure(chart: TrendChart, theme: Theme) -> dict:
    """Runs evenly spaced, oldest at the left; what lies between two change points has its mean."""
    low, high = _range(chart)
    ticks = chart.ticks(_MOST_TICKS)
    return {
        "data": [
            *_launches(chart, theme),
            _medians(chart, theme),
            *_levels(chart, theme),
            *_changes(chart, theme),
        ],
        "layout": layout(
            theme,
            400,
            {
                "tickmode": "array",
                "tickvals": list(ticks),
                "ticktext": list(ticks.values()),
                "range": [-0.7, len(chart.runs) - 0.3],
            },
            {"title": title(chart.axis), "range": [low, high], "showgrid": True},
            shapes=[_line(change, theme) for change in chart.changes],
            annotations=[
                _note(change, number, chart.late(change), theme)
                for number, change in enumerate(chart.changes)
            ],
            meta={"first_lines": True},
        ),
    }


def _range(chart: TrendChart) -> tuple[float, float]:
    """The axis: all that is drawn, with room for the words at the top and the bottom."""
    values = [
        value for run in chart.runs for value in (run.value, *run.launches, *(run.interval or ()))
    ]
    low, high = min(values), max(values)
    span = (high - low) or abs(high) or 1.0
    return _short(low - 0.22 * span), _short(high + 0.22 * span)


def _launches(chart: TrendChart, theme: Theme) -> list[dict]:
    """Every launch as a dot; the run's own hover text speaks of them."""
    dots = [(at, launch) for at, run in enumerate(chart.runs) for launch in run.launches]
    if not dots:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "launch",
            "x": [at for at, _ in dots],
            "y": [_short(launch) for _, launch in dots],
            "marker": {"size": 5, "color": theme.muted, "opacity": 0.5},
            "hoverinfo": "skip",
        }
    ]


def _medians(chart: TrendChart, theme: Theme) -> dict:
    values = [_short(run.value) for run in chart.runs]
    intervals = [run.interval or (run.value, run.value) for run in chart.runs]
    bars = {}
    if any(run.interval for run in chart.runs):
        lows, highs = ([_short(ends[side]) for ends in intervals] for side in (0, 1))
        bars = {"error_y": error_bars(theme, values, lows, highs, width=0)}
    return bars | {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "median of a run",
        "x": list(range(len(values))),
        "y": values,
        "line": {"color": theme.strategy("pipeline"), "width": 2},
        "marker": {"size": 6},
        "hovertext": [_hover(run, chart.unit) for run in chart.runs],
        "hoverinfo": "text",
    }


def _hover(run: TrendRun, unit: str) -> str:
    launches, interval = "", ""
    if len(run.launches) > 1:
        ends = f"{_value(min(run.launches), unit)} to {_value(max(run.launches), unit)}"
        launches = f"{len(run.launches)} launches, {ends}"
    if run.interval:
        low, high = run.interval
        interval = f"interval {_value(low, unit)} to {_value(high, unit)}"
    return bold(
        f"{run.date}, {_value(run.value, unit)}", f"commit {run.commit}", launches, interval
    )


def _levels(chart: TrendChart, theme: Theme) -> list[dict]:
    """One line a piece, broken at the change points."""
    if not chart.levels:
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "mean between change points",
            "x": [x for level in chart.levels for x in (level.start, level.end, None)],
            "y": [y for level in chart.levels for y in (level.mean, level.mean, None)],
            "line": {"color": theme.text, "width": 1.4},
            "hoverinfo": "skip",
        }
    ]


def _changes(chart: TrendChart, theme: Theme) -> list[dict]:
    """A mark at each change point, half way between the means before and after."""
    middles = [
        (before.mean + after.mean) / 2.0
        for before, after in zip(chart.levels, chart.levels[1:], strict=False)
    ]
    by_kind: dict[bool, list[tuple[TrendChange, float]]] = {}
    for change, middle in zip(chart.changes, middles, strict=True):
        by_kind.setdefault(change.worse, []).append((change, middle))
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": change_label(points[0][0]),
            "x": [change.position for change, _ in points],
            "y": [_short(middle) for _, middle in points],
            "marker": {
                "symbol": "diamond",
                "size": 11,
                "color": change_color(points[0][0], theme),
                "line": {"color": theme.background, "width": 1},
            },
            "hovertext": [_change_hover(change) for change, _ in points],
            "hoverinfo": "text",
        }
        for points in by_kind.values()
    ]


def _change_hover(change: TrendChange) -> str:
    return bold(
        change.words,
        f"{change.before} to {change.after}",
        f"commits {change.commits}",
        f"p {change.p_value}",
    )


def _line(change: TrendChange, theme: Theme) -> dict:
    return {
        "type": "line",
        "yref": "paper",
        "x0": change.position,
        "x1": change.position,
        "y0": 0,
        "y1": 1,
        "line": {"color": change_color(change, theme), "width": 1.5, "dash": "dash"},
    }


def _note(change: TrendChange, number: int, late: bool, theme: Theme) -> dict:
    """The change in words beside its line, in turns at the top and at the bottom."""
    return {
        "x": change.position,
        "yref": "paper",
        "y": 0.99 if number % 2 == 0 else 0.01,
        "yanchor": "top" if number % 2 == 0 else "bottom",
        "xanchor": "right" if late else "left",
        "xshift": -6 if late else 6,
        "align": "right" if late else "left",
        "text": f"<b>{text(change.words)}</b><br>{text(change.commits)}",
        "showarrow": False,
        "bgcolor": theme.background,
        "font": {"size": 11, "color": theme.text},
    }


def _value(value: float, unit: str) -> str:
    return f"{value:.4g} {unit}".rstrip()


def _short(value: float) -> float:
    """Six digits are more than any clock here is worth, and further ones would double the page."""
    return float(f"{value:.6g}")
