"""Writes trends for people, as text or Markdown, and for programs, as JSON."""

import json

from ..analysis.labels import counted, figure
from .points import Run, time_text
from .trend import Change, Trend

SCHEMA = "stratagem-history-trend/1"
_COLUMNS = ("row", "hardware", "runs", "date", "change", "before", "after", "commits", "p")


def text(trends: list[Trend], notes: list[str], charts: list[str]) -> str:
    """A paragraph a series, a line a change point."""
    lines = []
    for trend in trends:
        span = f"{_date(trend.runs[0])} to {_date(trend.runs[-1])}"
        lines.append(
            f"{trend.series.name}: {trend.metric} on {trend.series.machine}, "
            f"{counted(len(trend.runs), 'run')}, {span}"
        )
        lines += [f"  {_sentence(change, trend.unit)}" for change in trend.changes]
        if not trend.changes:
            lines.append("  no change point")
    return "\n".join(lines + notes + charts)


def markdown(trends: list[Trend], notes: list[str], charts: list[str]) -> str:
    """One table of all change points, rows without one included, then the notes as a list."""
    lines = [_cells(_COLUMNS), _cells(("---",) * len(_COLUMNS))]
    for trend in trends:
        start = (f"`{trend.series.name}`", trend.series.hardware.digest, str(len(trend.runs)))
        for change in trend.changes:
            date, size, before, after, where, p = change_cells(change, trend.unit)
            lines.append(_cells((*start, date, size, before, after, f"`{where}`", p)))
        if not trend.changes:
            lines.append(_cells((*start, "", "none", "", "", "", "")))
    listed = [f"- {line}" for line in notes + charts]
    return "\n".join(lines + ([""] if listed else []) + listed)


def as_json(trends: list[Trend], notes: list[str], charts: list[str]) -> str:
    """One object: the series with their values and change points, notes and charts."""
    document = {
        "schema": SCHEMA,
        "series": [_series(trend) for trend in trends],
        "notes": notes,
        "charts": charts,
    }
    return json.dumps(document, indent=2, allow_nan=False)


def change_cells(change: Change, unit: str) -> tuple[str, ...]:
    """Date, size with direction, mean before and after, commits, and the test's p-value.

    The commits are the last before .. the first after. A p-value too small for a floating-point
    number underflows to zero.
    """
    return (
        _date(change.after),
        f"{change.size} {change.direction}",
        _value(change.mean_before, unit),
        _value(change.mean_after, unit),
        f"{_short(change.before.commit)}..{_short(change.after.commit)}",
        f"{change.p_value:.1g}" if change.p_value > 0.0 else "< 1e-300",
    )


def _series(trend: Trend) -> dict:
    return {
        "name": trend.series.name,
        "hardware": trend.series.hardware.digest,
        "metric": trend.metric,
        "unit": trend.unit,
        "runs": [
            {"time": time_text(run.time), "commit": run.commit, "value": value}
            for run, value in zip(trend.runs, trend.values, strict=True)
        ],
        "change_points": [
            {
                "index": change.index,
                "time": time_text(change.after.time),
                "last_commit_before": change.before.commit,
                "first_commit_after": change.after.commit,
                "mean_before": change.mean_before,
                "mean_after": change.mean_after,
                "percent": change.percent,
                "direction": change.direction,
                "p_value": change.p_value,
            }
            for change in trend.changes
        ],
    }


def _sentence(change: Change, unit: str) -> str:
    date, size, before, after, where, p_value = change_cells(change, unit)
    return f"{date}  {size}, {before} to {after}, commits {where}, p {p_value}"


def _cells(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _value(value: float, unit: str) -> str:
    return f"{figure(value)} {unit}".rstrip()


def _date(run: Run) -> str:
    return f"{run.time:%Y-%m-%d}"


def _short(commit: str) -> str:
    """A whole hash becomes its first twelve digits."""
    return commit[:12] if len(commit) == 40 else commit


WRITERS = {"text": text, "json": as_json, "markdown": markdown}
