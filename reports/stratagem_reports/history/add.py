"""Turns results files into runs of the history."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from ..analysis.statistics import median_or_none
from ..results.launch import UNRELIABLE_MARKS, Repetition
from ..results.load import DescribedMetric, Results, Row, load_results
from .points import (
    CPU_TIME,
    STEP,
    STEP_IN_CANARIES,
    Metric,
    Run,
    hardware_of,
    parse_commit,
    parse_time,
)

# The units of what is counted of each collective; direction and kind are the file's.
_COMMUNICATION = {"calls": "count", "payload_bytes": "bytes", "wire_bytes": "bytes"}


@dataclass(frozen=True)
class Taken:
    """The runs of results files, and the rows left out with the reason."""

    runs: list[Run]
    failed: dict[str, str]


def take(paths: list[Path], commit: str | None, date: str | None) -> Taken:
    """The runs of every file; InputError when one of the files is bad."""
    given = parse_time(date, "--date") if date else None
    if commit:
        parse_commit(commit, "--commit")
    runs: list[Run] = []
    failed: dict[str, str] = {}
    for path in paths:
        results = load_results(path)
        place = f"{path}: context"
        time = given or parse_time(results.context.date, f"{place}.date")
        known = results.stratagem.git_commit
        name = commit or parse_commit(known, f"{place}.stratagem.git_commit")
        for row in results.rows:
            reason = _reason(row)
            if reason:
                failed[row.name] = reason
            else:
                runs.append(_run(row, results, time, name))
    return Taken(runs, failed)


def _run(row: Row, results: Results, time: datetime, commit: str) -> Run:
    launches = [float(np.median(repetition.step_ms)) for repetition in row.calm]
    described = results.stratagem.metrics
    values = _values(row.calm)
    return Run(
        time=time,
        commit=commit,
        name=row.name,
        launches=launches,
        median=float(np.median(launches)),
        metrics={name: _metric(described.get(name), value) for name, value in values.items()}
        | _communication(row.repetitions, described)
        | _prediction(row, described)
        | _canary(row.calm, launches),
        hardware=hardware_of(results.stratagem.fingerprint.hardware or {}),
        software=results.stratagem.fingerprint.software or {},
        marks=[mark for mark in row.marks if mark not in UNRELIABLE_MARKS] + row.unreliable,
        steps=len(row.repetitions[0].step_ms),
        workload=row.summary.workload if row.summary else None,
    )


def _metric(described: DescribedMetric | None, value: float, unit: str = "") -> Metric:
    """A metric with the unit, direction and kind that the file gives it, if it does."""
    entry = described or DescribedMetric()
    return Metric(value, unit or entry.unit, entry.better, entry.deterministic)


def _reason(row: Row) -> str | None:
    """Why a row does not belong into the history, or None."""
    if row.error:
        return row.error
    for repetition in row.repetitions:
        if repetition.verification and not repetition.verification.passed:
            return f"verification failed: {repetition.verification.message}"
    return None


def _values(repetitions: list[Repetition]) -> dict[str, float]:
    """Each metric's median over the launches; a device's peak is that of the fullest device."""
    columns: dict[str, list[float | None]] = {
        "items_per_second": [item.items_per_second for item in repetitions],
        "mfu": [item.mfu for item in repetitions],
        "peak_memory_bytes": [item.peak_memory_bytes for item in repetitions],
        CPU_TIME: [item.cpu_ms for item in repetitions],
        "flops_per_step": [item.flops_per_step or None for item in repetitions],
    }
    for name in ("measured", "ideal"):
        uses = [[getattr(use.bubble, name) for use in item.devices] for item in repetitions]
        columns[f"bubble_{name}"] = [float(np.mean(own)) if own and None not in own else None for own in uses]
    for name in {name: None for item in repetitions for name in item.counters}:
        columns[name] = [item.counters.get(name) for item in repetitions]
    medians = {name: median_or_none(values) for name, values in columns.items()}
    return {name: value for name, value in medians.items() if value is not None and name != STEP}


def _communication(repetitions: list[Repetition], described: dict[str, DescribedMetric]) -> dict[str, Metric]:
    """Calls and bytes of every collective, e.g. communication.all_reduce.wire_bytes."""
    counts: dict[str, list[float | None]] = {}
    for repetition in repetitions:
        for name, value in repetition.communication_counts.items():
            counts.setdefault(name, []).append(value)
    units = {name: _COMMUNICATION.get(name.rsplit(".", 1)[1]) for name in counts}
    return {
        name: _metric(described.get("communication"), median_or_none(values), units[name])
        for name, values in counts.items()
        if units[name]
    }


def _prediction(row: Row, described: dict[str, DescribedMetric]) -> dict[str, Metric]:
    """How far the prediction was off, without its sign."""
    error = row.summary.prediction_error if row.summary else None
    if error is None:
        return {}
    return {"prediction_error": _metric(described.get("prediction_error"), abs(error))}


def _canary(repetitions: list[Repetition], launches: list[float]) -> dict[str, Metric]:
    """The canary's time, and the step in canaries, which processors of unlike speed share."""
    pairs = [
        (step, item.canary_ms)
        for step, item in zip(launches, repetitions, strict=True)
        if item.canary_ms
    ]
    if len(pairs) < len(launches):
        return {}
    return {
        "canary_ms": Metric(float(np.median([canary for _, canary in pairs])), "ms", ""),
        STEP_IN_CANARIES: Metric(float(np.median([step / one for step, one in pairs])), "", "lower"),
    }
