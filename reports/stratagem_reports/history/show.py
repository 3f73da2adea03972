"""The table of rows: how often each was run, its last value, and what that is against earlier."""

import numpy as np

from ..analysis.labels import counted, figure
from .points import Run
from .series import Series, kept_apart

RECENT = 10
_HEADER = ["row", "hardware", "runs", "first", "last", "median ms", "previous"]
_HEADER += [f"median of {RECENT} before"]


def table(series: list[Series], last: int) -> str:
    """The rows, with the latest `last` runs of each below it."""
    lines = [_HEADER]
    for item in series:
        lines.append(_row(item))
        for index in range(max(0, len(item.runs) - last), len(item.runs)):
            lines.append(_run(item.runs, index))
    return "\n".join(_aligned(lines) + kept_apart(series))


def percent_change(before: float, after: float) -> str:
    """A change in per cent with its sign; a dash where it would be without meaning."""
    return f"{100.0 * (after / before - 1.0):+.1f}%" if before else "-"


def _row(item: Series) -> list[str]:
    runs = item.runs
    days = [f"{run.time:%Y-%m-%d}" for run in (runs[0], runs[-1])]
    start = [item.name, item.hardware.digest, str(len(runs)), *days]
    return start + _against(runs, len(runs) - 1)


def _run(runs: list[Run], index: int) -> list[str]:
    run = runs[index]
    launches = counted(len(run.launches), "launch")
    start = f"  {run.time:%Y-%m-%d %H:%M:%S} {run.commit[:20]}, {launches}"
    return [start, "", "", "", "", *_against(runs, index)]


def _against(runs: list[Run], index: int) -> list[str]:
    """The run's median, and its change against the run before and the median of those before."""
    before = [run.median for run in runs[max(0, index - RECENT) : index]]
    value = runs[index].median
    if not before:
        return [figure(value), "-", "-"]
    recent = float(np.median(before))
    return [figure(value), percent_change(before[-1], value), percent_change(recent, value)]


def _aligned(lines: list[list[str]]) -> list[str]:
    """Columns of equal width: the first two to the left, numbers to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
