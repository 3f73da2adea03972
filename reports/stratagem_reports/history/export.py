"""Writes the history as files of other tools; docs/guide/regression_tracking.md says what each format holds.

Each writer takes runs and gives the bytes of a file. Times are milliseconds except where the format
has a unit of its own.
"""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from msgspec.structs import asdict

from ..analysis.labels import counted
from ..results.errors import InputError
from .points import CPU_TIME, STEP, Run, time_text

_JSON_SCRIPT = "window.BENCHMARK_DATA"
_SUITE = "Stratagem"


@dataclass(frozen=True)
class Target:
    """Where an export goes, as far as the format needs to know, and where to say what is lost."""

    suffix: str
    commit: str | None
    warn: Callable[[str], None]


def google_benchmark(runs: list[Run], target: Target) -> bytes:
    """One run, the newest or that of --commit: one entry a launch, metrics as counters.

    `cpu_time` is the median of the run's launches, 0 where the history does not have it.
    """
    chosen = _one_run(runs, target)
    first = chosen[0]
    context = {"date": time_text(first.time).replace("Z", "+00:00"), "executable": "stratagem"}
    context |= {"caches": [], "git_commit": first.commit, "library_build_type": "release"}
    context |= {"hardware": asdict(first.hardware), "software": first.software}
    entries = []
    for family, run in enumerate(chosen):
        for index, launch in enumerate(run.launches):
            entry = {name: metric.value for name, metric in run.metrics.items()}
            entry |= {"name": run.name, "family_index": family, "per_family_instance_index": 0}
            entry |= {"run_name": run.name, "run_type": "iteration", "threads": 1}
            entry |= {"repetitions": len(run.launches), "repetition_index": index}
            entry |= {"iterations": 1, "real_time": launch, "time_unit": "ms"}
            entry.setdefault(CPU_TIME, 0.0)
            entries.append(entry)
    unknown = sum(CPU_TIME not in run.metrics for run in chosen)
    if unknown:
        target.warn(f"cpu_time is 0 in {counted(unknown, 'row')} whose history does not have it")
    return _json({"context": context, "benchmarks": entries})


def github_action_benchmark(runs: list[Run], target: Target) -> bytes:
    """All runs, an entry for each commit and time; data.js when the file's name ends in .js.

    The launches and the hardware's digest stand in `extra`, text that the tool shows.
    """
    ordered = sorted(runs, key=lambda run: (run.time, run.commit))
    entries = [
        _commit(list(group)) for _, group in groupby(ordered, lambda run: (run.time, run.commit))
    ]
    document = {"lastUpdate": entries[-1]["date"], "repoUrl": "", "entries": {_SUITE: entries}}
    data = _json(document)
    return f"{_JSON_SCRIPT} = ".encode() + data if target.suffix == ".js" else data


def bencher(runs: list[Run], target: Target) -> bytes:
    """One run, the newest or that of --commit, in Bencher's Metric Format.

    The median is the built-in measure `latency` in nanoseconds, between the fastest and the slowest
    launch; other metrics are measures of their own names.
    """
    document: dict[str, Any] = {}
    for run in _one_run(runs, target):
        low, high = min(run.launches), max(run.launches)
        latency = {"value": run.median * 1e6}
        if low < high:
            latency |= {"lower_value": low * 1e6, "upper_value": high * 1e6}
        others = {name: {"value": metric.value} for name, metric in run.metrics.items()}
        document[run.name] = others | {"latency": latency}
    return _json(document)


def otava_csv(runs: list[Run], target: Target) -> bytes:
    """All runs of one row, oldest first, as Apache Otava reads them; an absent metric is empty."""
    names = sorted({run.name for run in runs})
    if len(names) > 1:
        raise InputError(
            f"--format otava-csv: the format holds one row, and {len(names)} match: "
            f"{', '.join(names[:2])}{', ...' if len(names) > 2 else ''}; "
            "give more of the row's name"
        )
    own = ("time", "commit", "hardware", STEP)
    metrics = list(dict.fromkeys(name for run in runs for name in run.metrics if name not in own))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*own, *metrics])
    for run in sorted(runs, key=lambda run: run.time):
        values = [run.value(name) for name in (STEP, *metrics)]
        cells = ["" if value is None else repr(value) for value in values]
        writer.writerow([time_text(run.time), run.commit, run.hardware.digest, *cells])
    return stream.getvalue().encode()


FORMATS: dict[str, Callable[[list[Run], Target], bytes]] = {
    "google-benchmark": google_benchmark,
    "github-action-benchmark": github_action_benchmark,
    "bencher": bencher,
    "otava-csv": otava_csv,
}


def _one_run(runs: list[Run], target: Target) -> list[Run]:
    """The rows of one commit and time, for formats that hold no more: the newest of them."""
    if target.commit:
        runs = [run for run in runs if run.commit.startswith(target.commit)]
        if not runs:
            raise InputError(f"--commit {target.commit}: no run of this commit in the history")
    newest = max(runs, key=lambda run: run.time)
    chosen = [run for run in runs if (run.commit, run.time) == (newest.commit, newest.time)]
    left_out = {run.name for run in runs} - {run.name for run in chosen}
    if left_out:
        target.warn(
            f"left out {counted(len(left_out), 'row')} without a run of {newest.commit} at "
            f"{newest.time:%Y-%m-%dT%H:%M:%SZ}, which the format cannot hold beside it"
        )
    return chosen


def _commit(runs: list[Run]) -> dict[str, Any]:
    run = runs[0]
    person = {"email": "", "name": "", "username": ""}
    return {
        "commit": {
            "author": person,
            "committer": person,
            "id": run.commit,
            "message": "",
            "timestamp": time_text(run.time),
            "url": "",
        },
        "date": round(run.time.timestamp() * 1e3),
        "tool": "customSmallerIsBetter",
        "benches": [_bench(run) for run in runs],
    }


def _bench(run: Run) -> dict[str, Any]:
    launches = " ".join(repr(launch) for launch in run.launches)
    bench: dict[str, Any] = {"name": run.name, "value": run.median, "unit": "ms"}
    if len(run.launches) > 1:
        bench["range"] = f"{min(run.launches):.6g} to {max(run.launches):.6g}"
    bench["extra"] = f"launches_ms: {launches}\nhardware: {run.hardware.digest}"
    return bench


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()
