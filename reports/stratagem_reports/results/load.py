"""Reads results.json (Google Benchmark's JSON with Stratagem's fields) into rows of repetitions.

What is missing but optional is None or empty; what is of the wrong kind is an InputError that names
the place, so that nothing downstream has to check again. Times are in milliseconds throughout.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import field

from .errors import InputError
from .launch import UNRELIABLE_MARKS, Entry, Repetition, Verification
from .row_summary import Summary, read_summary
from .timeline import Action
from .typed_json import Better, decode, read_text

SCHEMA = "stratagem/1"
# An entry of `benchmarks`, and where it stands for the words of an error.
Place = tuple[Entry, str]


class Versioned(msgspec.Struct):
    """The schema that a file names: others are refused before anything else of them is read."""

    schema: Any = None

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            found = "none" if self.schema is None else repr(self.schema)
            raise ValueError(f'expected schema "{SCHEMA}", found {found:.60}')


class Fingerprint(msgspec.Struct, frozen=True):
    """What was measured on and with; None where the file does not say it."""

    hardware: dict[str, Any] | None = None
    software: dict[str, Any] | None = None


class DescribedMetric(msgspec.Struct, frozen=True):
    """What can be compared between two files; `better` is empty where neither way is."""

    unit: str = ""
    better: Better = ""
    deterministic: bool = False


class Run(Versioned):
    """Stratagem's own context."""

    version: str = ""
    git_commit: str = ""
    command_line: str = ""
    fingerprint: Fingerprint = Fingerprint()
    calibration: dict[str, Any] = {}
    disturbances: list[str] = []
    metrics: dict[str, DescribedMetric] = {}


class Context(msgspec.Struct):
    """Google Benchmark's context."""

    stratagem: Run
    date: str = ""
    host_name: str = ""


class _VersionedContext(msgspec.Struct):
    stratagem: Versioned


class _VersionedDocument(msgspec.Struct):
    context: _VersionedContext


class _Document(msgspec.Struct):
    context: Context
    benchmarks: list[Entry]


@dataclass(frozen=True, eq=False)
class Row:
    """One configuration with all its repetitions; `error` is None unless one of them failed.

    `summary` is None in files that were not written by `stratagem run` or a benchmark program of
    this version; `mesh` is the arrangement of the job's devices, "" for one device.
    """

    name: str
    strategy: str
    model: str
    config: dict[str, Any]
    repetitions: list[Repetition]
    error: str | None = None
    summary: Summary | None = None
    mesh: str = ""

    def option(self, key: str) -> Any:
        """An option of the row's configuration; None where the row does not use it."""
        return self.config.get(key)

    @property
    def split_size(self) -> int | None:
        """The micro-batch size in samples, or None for a row without one."""
        value = self.option("split_size")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def tutorial(self) -> bool:
        """True when the row was measured as the tutorial measures: whole training calls."""
        return self.option("protocol") == "tutorial"

    @property
    def calm(self) -> list[Repetition]:
        """The launches whose times count: those that were not disturbed, or all where all were."""
        return [item for item in self.repetitions if not item.disturbed] or self.repetitions

    @property
    def disturbed(self) -> bool:
        """True where every launch was disturbed, so that the row's times say nothing."""
        return "disturbed" in self.unreliable

    @property
    def unreliable(self) -> list[str]:
        """The marks for which the row's times are not to be compared with another run's."""
        counts = {
            mark: sum(mark in item.marks for item in self.repetitions) for mark in UNRELIABLE_MARKS
        }
        return [
            mark
            for mark, share in UNRELIABLE_MARKS.items()
            if counts[mark] and counts[mark] >= share * len(self.repetitions)
        ]

    @property
    def time_ms(self) -> float:
        """What a working row is ranked by: its median, the mean under the tutorial's protocol."""
        return self.summary.mean if self.tutorial else self.summary.median

    @property
    def verification(self) -> Verification:
        """The record of a failed verification, or else of the first one; empty without one."""
        checked = [item.verification for item in self.repetitions if item.verification is not None]
        failed = [record for record in checked if not record.passed]
        return next(iter(failed + checked), Verification())

    @property
    def left_to_aten(self) -> str:
        """The row's kernels where ATen's stood in for some that were asked for; else ""."""
        marked = [item.kernels for item in self.repetitions if "aten_kernels" in item.marks]
        return next(filter(None, marked), "")

    @property
    def marks(self) -> list[str]:
        """What sets the row apart ("shared", "oversubscribed", ...), each once, in order."""
        return list(dict.fromkeys(mark for item in self.repetitions for mark in item.marks))


@dataclass(frozen=True)
class Results:
    """A results file: Google Benchmark's context, Stratagem's own, and the rows in file order."""

    path: Path
    context: Context
    rows: list[Row]

    @property
    def stratagem(self) -> Run:
        """Stratagem's own context."""
        return self.context.stratagem


class Simulation(msgspec.Struct, frozen=True):
    """A simulated schedule; `exposed_ms` is the communication of replicas that nothing hides."""

    timeline: list[Action]
    title: str = "Simulated schedule"
    makespan_ms: float | None = None
    bubble: float | None = None
    exposed_ms: float | None = field(name="communication_exposed_ms", default=None)

    def __post_init__(self) -> None:
        if not self.timeline:
            raise ValueError("timeline is empty: nothing to draw")


class _SimulationFile(msgspec.Struct):
    simulation: Simulation


def load_simulation(path: Path) -> Simulation:
    """Reads and checks a simulation file; InputError when it is not one."""
    text = read_text(path)
    decode(text, Versioned, str(path))
    return decode(text, _SimulationFile, str(path)).simulation


def load_results(path: Path) -> Results:
    """Reads and checks a results file; InputError when it is not one."""
    text = read_text(path)
    try:
        decode(text, _VersionedDocument, str(path))
    except InputError as error:
        raise InputError(f"{error}; expected a results file") from None
    document = decode(text, _Document, str(path))
    by_name = _by_name(document.benchmarks, path)
    _refuse_duplicates(by_name)
    rows = [_row(name, items) for name, items in by_name.items()]
    return Results(path=path, context=document.context, rows=rows)


def require_summaries(results: Results) -> None:
    """InputError where a row has no summary, which is what reports and charts are made of."""
    for row in results.rows:
        if row.summary is None:
            raise InputError(
                f"{results.path}: {row.name} has no stratagem.summary, so that nothing is known of "
                "its workload and baseline; measure it again with this version of `stratagem run` "
                "or of the benchmark program"
            )


def _by_name(entries: list[Entry], path: Path) -> dict[str, list[Place]]:
    """Each row's launches with their places; InputError for a row that has aggregates alone."""
    by_name: dict[str, list[Place]] = {}
    aggregated: dict[str, str] = {}
    for index, entry in enumerate(entries):
        where = f"{path}: benchmarks[{index}]"
        if not entry.aggregate:
            by_name.setdefault(entry.row, []).append((entry, where))
        elif entry.run_name:
            aggregated.setdefault(entry.run_name, where)
    if not by_name and not aggregated:
        raise InputError(f"{path}: no rows: `benchmarks` holds no repetition to report")
    for name, where in aggregated.items():
        if name not in by_name:
            raise InputError(
                f"{where}: {name} has only aggregates; its repetitions are needed: write the file "
                "without --benchmark_report_aggregates_only"
            )
    return by_name


def _refuse_duplicates(by_name: dict[str, list[Place]]) -> None:
    """A launch may stand in a file once: two with one name and number would count double."""
    for name, items in by_name.items():
        seen = set()
        for entry, where in items:
            index = entry.repetition_index
            if index is None and len(items) > 1:
                raise InputError(
                    f"{where}: has no repetition_index, and {name} is there {len(items)} "
                    "times; each launch of a row has a number of its own"
                )
            if index in seen:
                raise InputError(
                    f"{where}: repetition_index {index} of {name} stands there twice; "
                    "each launch of a row has a number of its own"
                )
            seen.add(index)


def _row(name: str, items: list[Place]) -> Row:
    strategy, model = [*name.split("/"), ""][:2]
    config: dict[str, Any] = {}
    mesh, error, summary = "", None, None
    repetitions = []
    for index, (entry, where) in enumerate(items):
        own = entry.stratagem
        strategy, model = own.strategy or strategy, own.model or model
        config, mesh = own.config or config, own.mesh or mesh
        if summary is None and own.summary is not None:
            summary = read_summary(own.summary, name, f"{where}.stratagem.summary")
        if entry.failure:
            error = error or entry.failure
        else:
            repetitions.append(entry.repetition(index))
    error = (summary and summary.error) or error
    return Row(name, strategy, model, config, repetitions, error, summary, mesh)
