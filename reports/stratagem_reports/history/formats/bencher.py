"""Bencher Metric Format: {benchmark: {measure: {value, lower_value, upper_value}}}.

The median is the built-in measure `latency`, in nanoseconds; lower_value and upper_value are the
fastest and the slowest launch, or the interval that an import brought. Other metrics are measures
of their own names. Lost: the single launches, of which an import knows only the median and the
interval, commit and time, which an import takes from --commit and --date, units and directions of
metrics that are not known by name, hardware, software, marks, and every run but one.

Of a file without `latency`, the one measure whose name ends in a unit of time (build-time-ms) is
read, or that of --metric, in --unit.
"""

from __future__ import annotations

from typing import Any

from ...errors import InputError
from ..add import describe
from ..points import Run, finite, parse_commit, parse_time
from .common import Source, Target, milliseconds, one_run, parse_json, read_text, to_json, unit_in

_LATENCY = "latency"


def read(source: Source) -> list[Run]:
    """Every benchmark of the file as a run of the commit and date given."""
    document = parse_json(read_text(source.path), str(source.path))
    if not source.commit or not source.date:
        raise InputError(f"{source.path}: the format has no commit and date; give --commit, --date")
    if not document:
        raise InputError(f"{source.path}: no benchmark to import")
    return [_run(source, name, measures) for name, measures in document.items()]


def write(runs: list[Run], target: Target) -> bytes:
    """One run, the newest or that of --commit."""
    document: dict[str, Any] = {}
    for run in one_run(runs, target):
        low, high = run.interval or (min(run.launches), max(run.launches))
        latency = {"value": run.median * 1e6}
        if low < high:
            latency |= {"lower_value": low * 1e6, "upper_value": high * 1e6}
        others = {name: {"value": metric.value} for name, metric in run.metrics.items()}
        document[run.name] = others | {_LATENCY: latency}
    return (to_json(document) + "\n").encode()


def _run(source: Source, name: str, measures: Any) -> Run:
    where = f"{source.path}: {name}"
    if not name or not isinstance(measures, dict):
        raise InputError(f"{where}: expected an object of measures under a benchmark's name")
    for measure, entry in measures.items():
        if not isinstance(entry, dict) or "value" not in entry:
            raise InputError(f"{where}: {measure}: expected an object with `value`")
    main, unit = _main(source, measures, where)
    entry = measures[main]
    place = f"{where}: {main}"
    median = milliseconds(entry["value"], unit, f"{place}.value")
    interval = None
    if entry.get("lower_value") is not None and entry.get("upper_value") is not None:
        interval = tuple(
            milliseconds(entry[key], unit, f"{place}.{key}")
            for key in ("lower_value", "upper_value")
        )
    metrics = {
        measure: describe(measure, finite(entry["value"], f"{where}: {measure}.value"))
        for measure, entry in measures.items()
        if measure != main
    }
    time, commit = parse_time(source.date, "--date"), parse_commit(source.commit, "--commit")
    return Run(time, commit, name, [median], median, metrics, interval=interval)


def _main(source: Source, measures: dict[str, Any], where: str) -> tuple[str, str]:
    """The measure that is the run's time, and its unit."""
    if source.metric:
        if source.metric not in measures:
            raise InputError(f"{where}: no measure {source.metric!r}; --metric: {_names(measures)}")
        return source.metric, source.unit or unit_in(source.metric) or _no_unit(source.metric)
    if _LATENCY in measures:
        return _LATENCY, source.unit or "ns"
    times = [measure for measure in measures if unit_in(measure)]
    if len(times) != 1:
        raise InputError(
            f"{where}: expected `latency` or one measure whose name ends in ns, us, ms or s, found "
            f"{_names(measures)}; name one with --metric and --unit"
        )
    return times[0], source.unit or unit_in(times[0])


def _no_unit(measure: str) -> str:
    raise InputError(f"--metric {measure}: its unit is not known; give --unit ns, us, ms or s")


def _names(measures: dict[str, Any]) -> str:
    return ", ".join(measures) or "none"
