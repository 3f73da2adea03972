"""Google Benchmark's JSON (--benchmark_format=json): one entry a launch, real_time in ms.

Kept: name, launches, commit, time, and values of metrics as counters; hardware and software in
the context, where Google Benchmark's own tools pass over them. Lost: units and directions of
metrics that are not known by name, marks, an imported interval, and every run but one, as a file
is one run.

A file of other programs has its commit in `context.git_commit` (--benchmark_context) or gets one by
--commit. Of its aggregates only the median is read, and only where there are no repetitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...load import repetition_index
from ..add import describe
from ..points import STEP, Hardware, Metric, Run, finite, hardware_of, time_text
from .common import Source, Target, milliseconds, one_run, one_unit, parse_json, read_text, to_json

_OWN = {"family_index", "per_family_instance_index", "repetitions", "repetition_index"}
_OWN |= {"threads", "iterations", "real_time", "cpu_time"}


def read(source: Source) -> list[Run]:
    """The file's benchmarks as runs; a failed one is passed over with a warning."""
    document = parse_json(read_text(source.path), str(source.path))
    context, entries = document.get("context"), document.get("benchmarks")
    if not isinstance(context, dict) or not isinstance(entries, list):
        raise InputError(f"{source.path}: expected Google Benchmark's `context` and `benchmarks`")
    if isinstance(context.get("stratagem"), dict):
        raise InputError(f"{source.path}: results of stratagem; use `stratagem history add`")
    place = f"{source.path}: context"
    time = source.run_time(context.get("date"), f"{place}.date")
    commit = source.run_commit(context.get("git_commit"), f"{place}.git_commit")
    hardware, software = _machine(context)
    runs = []
    for name, items in _by_name(entries, source).items():
        launches = [time for time, _ in items]
        metrics = _metrics([entry for _, entry in items])
        median = float(np.median(launches))
        runs.append(Run(time, commit, name, launches, median, metrics, hardware, software))
    if not runs:
        raise InputError(f"{source.path}: no benchmark to import in `benchmarks`")
    return runs


def write(runs: list[Run], target: Target) -> bytes:
    """One run, the newest or that of --commit, as a file of Google Benchmark."""
    chosen = one_run(runs, target)
    first = chosen[0]
    context = {"date": time_text(first.time).replace("Z", "+00:00"), "executable": "stratagem"}
    context |= {"git_commit": first.commit, "library_build_type": "release"}
    context |= {"hardware": vars(first.hardware), "software": first.software}
    entries = []
    for family, run in enumerate(chosen):
        for index, launch in enumerate(run.launches):
            entry = {name: metric.value for name, metric in run.metrics.items()}
            entry |= {"name": run.name, "family_index": family, "per_family_instance_index": 0}
            entry |= {"run_name": run.name, "run_type": "iteration", "threads": 1}
            entry |= {"repetitions": len(run.launches), "repetition_index": index}
            entry |= {"iterations": 1, "real_time": launch, "cpu_time": launch, "time_unit": "ms"}
            entries.append(entry)
    return (to_json({"context": context, "benchmarks": entries}) + "\n").encode()


def _by_name(entries: list[Any], source: Source) -> dict[str, list[tuple[float, dict]]]:
    """Each benchmark's times and entries, one a repetition."""
    single: dict[str, list[tuple[float, dict]]] = {}
    medians: dict[str, list[tuple[float, dict]]] = {}
    units: dict[str, str] = {}
    seen: set[tuple] = set()
    for index, entry in enumerate(entries):
        where = f"{source.path}: benchmarks[{index}]"
        if not isinstance(entry, dict):
            raise InputError(f"{where}: expected an object")
        name = entry.get("run_name") or entry.get("name")
        if not isinstance(name, str) or not name:
            raise InputError(f"{where}.name: expected a string, found {name!r}")
        aggregate = entry.get("run_type") == "aggregate"
        if aggregate and entry.get("aggregate_name") != "median":
            continue
        if entry.get("error_occurred") or entry.get("skipped"):
            source.warn(f"not imported: {name}: {entry.get('error_message') or 'failed'}")
            continue
        key = (name, aggregate, repetition_index(entry, where))
        if key in seen:
            raise InputError(f"{where}: {name} is there twice, with the same repetition_index")
        seen.add(key)
        unit = entry.get("time_unit", "ns")
        one_unit(units, name, unit, where)
        time = milliseconds(entry.get("real_time"), unit, f"{where}.real_time")
        (medians if aggregate else single).setdefault(name, []).append((time, entry))
    return {name: single.get(name) or medians[name] for name in {**medians, **single}}


def _metrics(entries: list[dict[str, Any]]) -> dict[str, Metric]:
    """The counters: numbers beside what Google Benchmark itself writes, as medians."""
    columns: dict[str, list[float]] = {}
    for entry in entries:
        for name, value in entry.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if number and name not in _OWN and name != STEP:
                columns.setdefault(name, []).append(finite(value, name))
    return {name: describe(name, float(np.median(values))) for name, values in columns.items()}


def _machine(context: dict[str, Any]) -> tuple[Hardware, dict[str, Any]]:
    """The hardware and software that an export put there, or else the host and its processors."""
    ours, software = context.get("hardware"), context.get("software")
    fields = {key: context[key] for key in ("host_name", "num_cpus") if key in context}
    hardware = hardware_of(fields)
    if isinstance(ours, dict) and isinstance(ours.get("fields"), dict):
        hardware = Hardware(str(ours.get("digest")), ours["fields"])
    return hardware, software if isinstance(software, dict) else {}
