"""The data of github-action-benchmark: data.js (`window.BENCHMARK_DATA = ...`) or its JSON.

An entry is a commit with its benches, a bench one value with a unit. Kept: every run with commit,
time (to the millisecond), name and median; the launches and the hardware's digest in `extra`, text
that the tool shows and does not read; of a single value with an interval, the interval is lost.
Lost: other metrics, the hardware's fields, software, marks.

Of a file of other programs `range` is not read: it has no fixed meaning from tool to tool. The
entry's `date` is the run's time. Benches without a unit of time are refused. Suites other than
"Stratagem" name the row: suite/bench.
"""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import groupby
from typing import Any

import numpy as np

from ...errors import InputError
from ..points import Hardware, Run, as_utc, finite, parse_commit, time_text
from .common import Source, Target, milliseconds, one_unit, parse_json, read_text, to_json

_PREFIX = "window.BENCHMARK_DATA"
_SUITE = "Stratagem"
_LAUNCHES, _HARDWARE = "launches_ms: ", "hardware: "


def read(source: Source) -> list[Run]:
    """Every bench of every entry of every suite as a run."""
    where = str(source.path)
    text = read_text(source.path).strip()
    if text.startswith(_PREFIX):
        text = text.removeprefix(_PREFIX).lstrip().removeprefix("=").rstrip().removesuffix(";")
    entries = parse_json(text, where).get("entries")
    if not isinstance(entries, dict) or not entries:
        raise InputError(f"{where}: entries: expected github-action-benchmark's suites")
    runs: list[Run] = []
    units: dict[str, str] = {}
    for suite, commits in entries.items():
        if not isinstance(commits, list):
            raise InputError(f"{where}: entries.{suite}: expected a list of commits")
        for index, entry in enumerate(commits):
            runs += _entry(suite, entry, f"{where}: entries.{suite}[{index}]", units)
    if not runs:
        raise InputError(f"{where}: no benchmark to import in `entries`")
    return runs


def write(runs: list[Run], target: Target) -> bytes:
    """All runs, an entry for each commit and time; data.js when the file's name ends in .js."""
    ordered = sorted(runs, key=lambda run: (run.time, run.commit))
    entries = [
        _commit(list(group)) for _, group in groupby(ordered, lambda run: (run.time, run.commit))
    ]
    document = {"lastUpdate": entries[-1]["date"], "repoUrl": "", "entries": {_SUITE: entries}}
    text = to_json(document)
    return (f"{_PREFIX} = {text}" if target.suffix == ".js" else text + "\n").encode()


def _commit(runs: list[Run]) -> dict[str, Any]:
    run = runs[0]
    time = time_text(run.time)
    person = {"email": "", "name": "", "username": ""}
    return {
        "commit": {
            "author": person,
            "committer": person,
            "id": run.commit,
            "message": "",
            "timestamp": time,
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
    bench["extra"] = f"{_LAUNCHES}{launches}\n{_HARDWARE}{run.hardware.digest}"
    return bench


def _entry(suite: str, entry: Any, where: str, units: dict[str, str]) -> list[Run]:
    if not isinstance(entry, dict) or not isinstance(entry.get("commit"), dict):
        raise InputError(f"{where}: commit: expected an object with the commit's `id`")
    commit = parse_commit(entry["commit"].get("id"), f"{where}.commit.id")
    time = _time(entry.get("date"), f"{where}.date")
    benches = entry.get("benches")
    if not isinstance(benches, list):
        raise InputError(f"{where}.benches: expected a list")
    runs: dict[str, Run] = {}
    for index, bench in enumerate(benches):
        place = f"{where}.benches[{index}]"
        if not isinstance(bench, dict) or not isinstance(bench.get("name"), str):
            raise InputError(f"{place}.name: expected a string")
        name = bench["name"] if suite == _SUITE else f"{suite}/{bench['name']}"
        if name in runs:
            raise InputError(f"{place}: {name} is there twice in one entry; expected it once")
        unit = bench.get("unit")
        median = milliseconds(bench.get("value"), unit, f"{place} ({name})")
        one_unit(units, name, unit, place)
        launches, hardware = _extra(bench.get("extra"), median)
        runs[name] = Run(time, commit, name, launches, median, hardware=hardware)
    return list(runs.values())


def _extra(text: Any, median: float) -> tuple[list[float], Hardware]:
    """Launches and hardware from an export's `extra`; any other text says nothing about them."""
    launches, hardware = [median], Hardware()
    for line in text.splitlines() if isinstance(text, str) else ():
        try:
            if line.startswith(_LAUNCHES):
                times = [float(word) for word in line.removeprefix(_LAUNCHES).split()]
                launches = times if times and np.median(times) == median else launches
            elif line.startswith(_HARDWARE):
                hardware = Hardware(line.removeprefix(_HARDWARE).strip())
        except ValueError:
            continue
    return launches, hardware


def _time(value: Any, where: str) -> datetime:
    """The entry's date, milliseconds since 1970."""
    try:
        return as_utc(datetime.fromtimestamp(finite(value, where) / 1e3, timezone.utc))
    except (OverflowError, OSError, ValueError):
        raise InputError(f"{where}: expected milliseconds since 1970, found {value}") from None
