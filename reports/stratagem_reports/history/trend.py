"""Where a series changed for good: change points, found by Apache Otava's library.

The method is E-divisive with the changes of Fleming and Kołaczkowski's Hunter (2023): candidates
from a sliding window, kept when a t-test tells the pieces on both sides apart. One value a run goes
in, the median of its launches, because launches of one run are not independent runs.
"""

import sys
from dataclasses import dataclass

from ..analysis.labels import counted
from ..results.errors import InputError
from .points import STEP, Run
from .series import NoMatchError, Series


@dataclass(frozen=True)
class Change:
    """A change between run `index - 1` and run `index`, by the means of the pieces around it."""

    index: int
    before: Run
    after: Run
    mean_before: float
    mean_after: float
    p_value: float
    direction: str

    @property
    def percent(self) -> float | None:
        """The size in per cent of the mean before; None when that was zero."""
        if self.mean_before == 0.0:
            return None
        return 100.0 * (self.mean_after / self.mean_before - 1.0)

    @property
    def size(self) -> str:
        """The size for people, e.g. "+5.1%"."""
        return "from 0" if self.percent is None else f"{self.percent:+.1f}%"

    @property
    def worse(self) -> bool:
        """True for a slowdown or another change in the wrong direction."""
        return self.direction in ("slower", "worse")


@dataclass(frozen=True)
class Trend:
    """A series' values of one metric, one a run, and where they changed."""

    series: Series
    metric: str
    unit: str
    runs: list[Run]
    values: list[float]
    changes: list[Change]


def trend_of(series: Series, metric: str, max_p: float, min_change: float) -> Trend | None:
    """The trend of a metric over the runs that have it; None when none has.

    Runs under unreliable conditions count only where chance has no part in the metric.
    """
    runs = [
        run
        for run in series.runs
        if run.value(metric) is not None and not run.unreliable(metric)
    ]
    if not runs:
        return None
    values = [run.value(metric) for run in runs]
    last = runs[-1].metrics.get(metric)
    unit, better = ("ms", "lower") if metric == STEP else (last.unit, last.better)
    changes = [
        Change(
            index=int(point.index),
            before=runs[point.index - 1],
            after=runs[point.index],
            mean_before=float(point.stats.mean_before()),
            mean_after=float(point.stats.mean_after()),
            p_value=float(point.stats.pvalue),
            direction=_direction(metric, better, point.stats),
        )
        for point in _change_points(values, max_p, min_change)
    ]
    return Trend(series, metric, unit, runs, values, changes)


def trends_of(series: list[Series], metric: str, max_p: float, min_change: float) -> list[Trend]:
    """The trends of every series; NoMatchError when no run has the metric."""
    trends = [trend_of(item, metric, max_p, min_change) for item in series]
    found = [trend for trend in trends if trend is not None]
    if not found and any(run.value(metric) is not None for item in series for run in item.runs):
        marks = {mark for item in series for run in item.runs for mark in run.unreliable(metric)}
        raise NoMatchError(
            f"every run with the metric {metric!r} was marked ({', '.join(sorted(marks))}); measure "
            "again"
        )
    if not found:
        known = sorted({name for item in series for run in item.runs for name in run.metrics})
        names = ", ".join([STEP, *known])
        raise NoMatchError(f"no run has the metric {metric!r}; there are {names}")
    return found


def left_out(series: list[Series], metric: str) -> list[str]:
    """A line for each series that has runs under unreliable conditions, without which it does."""
    notes = []
    for item in series:
        marks = [found for run in item.runs if (found := run.unreliable(metric))]
        if marks:
            words = ", ".join(sorted({mark for found in marks for mark in found}))
            notes.append(f"{item.name}: left out {counted(len(marks), 'run')}: {words}")
    return notes


def changed_steps(series: list[Series], metric: str) -> list[str]:
    """A line for each series whose runs timed different numbers of steps a launch.

    A step has its share of what begins and ends a launch, so its time depends on the number.
    """
    notes = []
    for item in series:
        counts = sorted({run.steps for run in item.runs if run.steps and run.value(metric)})
        if len(counts) > 1:
            words = " and ".join(map(str, counts))
            notes.append(f"{item.name}: launches of {words} steps, whose times may differ by that")
    return notes


def regressed(trend: Trend, window: int) -> bool:
    """Whether the newest change point is for the worse and within the last `window` runs."""
    if not trend.changes:
        return False
    newest = trend.changes[-1]
    return newest.worse and newest.index >= len(trend.runs) - window


def _change_points(values: list[float], max_p: float, min_change: float) -> list:
    """Otava's change points in order; a series too short for a test has none."""
    try:
        from otava.analysis import compute_change_points
    except ModuleNotFoundError as error:
        raise InputError(
            f"the Python package apache-otava is missing ({error.name}) from {sys.executable}; "
            "tools/run installs it into .venv, or pip install --no-deps apache-otava==0.8.0"
        ) from None
    points, _ = compute_change_points(
        list(values), max_pvalue=max_p, min_magnitude=min_change / 100.0
    )
    return sorted(points, key=lambda point: point.index)


def _direction(metric: str, better: str, stats: object) -> str:
    """In words: slower or faster for a time, worse or better, or just higher or lower."""
    rises = stats.mean_after() > stats.mean_before()
    if not better:
        return "higher" if rises else "lower"
    worse = rises == (better == "lower")
    if metric == STEP:
        return "slower" if worse else "faster"
    return "worse" if worse else "better"
