"""A result set, one side of a comparison: every row's launches, from one or several files.

The launch, a fresh set of processes, is the unit of inference: steps of one launch share its memory
layout and its neighbours, so many steps of few launches would claim more than they know. A launch
speaks through the median of its steps.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.statistics import outlying, timed_steps_ms
from ..results.errors import InputError
from ..results.launch import Repetition
from ..results.load import Results, Row, load_results
from ..results.row_summary import may_be_one_workload


@dataclass(frozen=True)
class Launches:
    """The launches of one row: step times in ms, and by metric what each launch counted.

    `samples_ms` are all timed steps of all launches; under the tutorial's protocol, all its calls.
    `workload` is None where the files do not say it.
    """

    name: str
    step_ms: list[float] = field(default_factory=list)
    samples_ms: list[float] = field(default_factory=list)
    counts: dict[str, list[float]] = field(default_factory=dict)
    peak_memory_bytes: list[float] = field(default_factory=list)
    error: str | None = None
    marks: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    workload: str | None = None
    unreliable: set[str] = field(default_factory=set)  # see Row.unreliable
    canaries_ms: list[float] = field(default_factory=list)
    steps: set[int] = field(default_factory=set)  # timed steps of a launch

    @property
    def sample(self) -> str:
        """What one of `samples_ms` is."""
        return "training call" if self.config.get("protocol") == "tutorial" else "step"

    @property
    def canary_ms(self) -> float | None:
        """The median of the launches' canaries; None where one had none."""
        return float(np.median(self.canaries_ms)) if self.canaries_ms else None

    @property
    def outliers(self) -> dict[str, int]:
        """How many samples, and how many launches, lie far off the others; none is dropped."""
        return {"samples": len(outlying(self.samples_ms)), "launches": len(outlying(self.step_ms))}


@dataclass(frozen=True)
class ResultSet:
    """All rows of one side of a comparison, and what they were measured on and with.

    `software` is that of the first file; `mixed_software` has the fields that differ between files.
    """

    label: str
    sources: list[str]
    rows: dict[str, Launches]
    hardware: dict[str, Any]
    software: dict[str, Any]
    units: dict[str, str]
    commits: list[str]
    mixed_software: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)


def read_result_set(label: str, paths: list[Path]) -> ResultSet:
    """Reads and joins files; InputError when one is not a results file."""
    results = [load_results(path) for path in paths]
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError(f"{label}: a file is named twice; its launches would count double")
    return join(label, results)


def join(label: str, results: list[Results]) -> ResultSet:
    """The set that several results make; they must come from machines of one fingerprint."""
    first = results[0]
    hardware = _fingerprint(first, "hardware")
    for other in results[1:]:
        for name, (one, two) in differences(hardware, _fingerprint(other, "hardware")).items():
            raise InputError(
                f"{other.path}: hardware field {name} is {two}, in {first.path} it is {one}; the "
                f"files of one side must come from one kind of machine"
            )
    rows: dict[str, Launches] = {}
    for result in results:
        deterministic = {
            name for name, item in result.stratagem.metrics.items() if item.deterministic
        }
        for row in result.rows:
            rows[row.name] = _add(rows.get(row.name), row, deterministic, str(result.path))
    return ResultSet(
        label=label,
        sources=[str(result.path) for result in results],
        rows=rows,
        hardware=hardware,
        software=_fingerprint(first, "software"),
        units=_one_unit_each([(str(result.path), _units(result)) for result in results]),
        commits=sorted({item.stratagem.git_commit or "unknown" for item in results}),
        mixed_software=_mixed_software(results),
    )


def common_units(base: ResultSet, head: ResultSet) -> dict[str, str]:
    """The units of both sets' metrics; InputError when they give a metric different ones."""
    return _one_unit_each([(", ".join(own.sources), own.units) for own in (base, head)])


def differences(one: dict[str, Any], two: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The fields that differ, with both values; one that is absent counts as None."""
    keys = list(dict.fromkeys([*one, *two]))
    return {key: (one.get(key), two.get(key)) for key in keys if one.get(key) != two.get(key)}


def _fingerprint(results: Results, part: str) -> dict[str, Any]:
    found = getattr(results.stratagem.fingerprint, part)
    if found is None:
        raise InputError(
            f"{results.path}: context.stratagem.fingerprint.{part}: missing; expected the facts of "
            "the machine that `stratagem run` writes"
        )
    return found


def _mixed_software(results: list[Results]) -> dict[str, list[tuple[str, Any]]]:
    """Software fields that differ between files: each value with the first file that has it."""
    by_source = [(str(result.path), _fingerprint(result, "software")) for result in results]
    found: dict[str, list[tuple[str, Any]]] = {}
    for name in dict.fromkeys(name for _, fields in by_source for name in fields):
        values = found.setdefault(name, [])
        for source, fields in by_source:
            if fields.get(name) not in [value for _, value in values]:
                values.append((source, fields.get(name)))
    return {name: values for name, values in found.items() if len(values) > 1}


def _units(results: Results) -> dict[str, str]:
    """The units that the file gives its metrics."""
    return {name: item.unit for name, item in results.stratagem.metrics.items() if item.unit}


def _one_unit_each(by_source: list[tuple[str, dict[str, str]]]) -> dict[str, str]:
    """The units of all sources together; InputError when two give a metric different ones."""
    given: dict[str, tuple[str, str]] = {}
    for source, units in by_source:
        for name, unit in units.items():
            known, first = given.setdefault(name, (unit, source))
            if unit != known:
                raise InputError(
                    f"{source}: context.stratagem.metrics.{name}: its unit is {unit!r}, in {first} "
                    f"it is {known!r}; what is compared must have one unit"
                )
    return {name: unit for name, (unit, _) in given.items()}


def check_workload(name: str, one: str | None, two: str | None, source: str) -> None:
    """InputError where the row `name` is of workload `two` in the source and of `one` elsewhere."""
    if one is not None and two is not None and not may_be_one_workload(one, two):
        raise InputError(
            f"{source}: {name}: its workload is {two}, on the other side or in a file before it is "
            f"{one}; times of different work are not compared"
        )


def _add(known: Launches | None, row: Row, deterministic: set[str], source: str) -> Launches:
    joined = known or Launches(row.name)
    workload = row.summary.workload if row.summary else None
    check_workload(row.name, joined.workload, workload, source)
    counts = {name: list(values) for name, values in joined.counts.items()}
    for repetition in row.repetitions:
        for name, value in deterministic_values(repetition).items():
            if name.split(".")[0] in deterministic or name in deterministic:
                counts.setdefault(name, []).append(value)
    return Launches(
        name=row.name,
        step_ms=joined.step_ms + launch_values(row),
        samples_ms=joined.samples_ms + timed_steps_ms(row),
        counts=counts,
        peak_memory_bytes=joined.peak_memory_bytes + _peaks(row),
        error=joined.error or row.error,
        marks=list(dict.fromkeys(joined.marks + row.marks)),
        config=joined.config | row.config,
        workload=joined.workload or workload,
        unreliable=joined.unreliable | set(row.unreliable),
        canaries_ms=joined.canaries_ms + [item.canary_ms for item in row.calm if item.canary_ms],
        steps=joined.steps | {len(item.step_ms) for item in row.repetitions},
    )


def launch_values(row: Row) -> list[float]:
    """A step time in ms for each launch that counts; all repeats of the tutorial's are one."""
    if not row.repetitions:
        return []
    if row.tutorial:
        return [float(np.median([sum(item.step_ms) for item in row.calm]))]
    return [float(np.median(item.step_ms)) for item in row.calm]


def deterministic_values(repetition: Repetition) -> dict[str, float]:
    """What a launch counted, by the name of the metric."""
    values = dict(repetition.counters)
    if repetition.flops_per_step is not None:
        values["flops_per_step"] = repetition.flops_per_step
    return values | repetition.communication_counts


def _peaks(row: Row) -> list[float]:
    """The peak of each launch's fullest device, of the launches that have one."""
    peaks = (repetition.peak_memory_bytes for repetition in row.repetitions)
    return [peak for peak in peaks if peak]
