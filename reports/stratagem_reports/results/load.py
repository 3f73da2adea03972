"""Reads results.json (Google Benchmark's JSON with Stratagem's fields) into rows of repetitions.

Whatever is missing but optional becomes None or empty; whatever is present but of the wrong kind is
an InputError that names the place, so that nothing downstream has to check again. Times are in
milliseconds throughout.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import InputError
from .json_members import is_number, kind_of, member, number, numbers, read_json, whole_number
from .row_summary import Summary, read_summary
from .timeline import Action, device_name, read_timeline

SCHEMA = "stratagem/1"
# An entry of `benchmarks`, and where it stands for the words of an error.
Place = tuple[dict, str]


@dataclass(frozen=True)
class CategoryMemory:
    """What a device held for one purpose, in bytes; `formula` is None where nothing says it."""

    peak: float
    at_peak: float
    formula: float | None = None


@dataclass(frozen=True)
class DeviceUse:
    """What one device did in a step, on average over the timed steps of a repetition."""

    device: str
    breakdown_ms: dict[str, float]
    bubble_measured: float | None
    bubble_ideal: float | None
    peak_memory_bytes: float | None
    rank: int | None = None
    memory: dict[str, CategoryMemory] = field(default_factory=dict)  # by purpose; {}: not known


@dataclass(frozen=True)
class Repetition:
    """One launch of a row: its timed steps and what was recorded with them."""

    index: int
    step_ms: list[float]
    items_per_second: float | None = None
    devices: list[DeviceUse] = field(default_factory=list)
    timeline: list[Action] = field(default_factory=list)
    mfu: float | None = None
    verification: dict[str, Any] | None = None
    marks: list[str] = field(default_factory=list)
    counters: dict[str, float] = field(default_factory=dict)
    cpu_ms: float | None = None  # processor time of a step, all ranks together
    flops_per_step: float | None = None
    communication: dict[str, dict[str, float]] = field(default_factory=dict)
    loss: list[float] = field(default_factory=list)
    predicted_from: dict[str, Any] | None = None
    canary_ms: float | None = None  # of the slowest device, the mean of before and after
    kernels: str | None = None  # that computed, "own" or "reference"; None on GPUs

    @property
    def disturbed(self) -> bool:
        """True where something else on the machine fell on the launch."""
        return "disturbed" in self.marks

    @property
    def peak_memory_bytes(self) -> float | None:
        """The most memory that a device held; None where no device says it."""
        return max((use.peak_memory_bytes or 0.0 for use in self.devices), default=0.0) or None

    @property
    def communication_counts(self) -> dict[str, float]:
        """`communication` by the names of metrics: communication.all_reduce.calls, ..."""
        return {
            f"communication.{collective}.{name}": value
            for collective, counts in self.communication.items()
            for name, value in counts.items()
        }


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
        return bool(self.repetitions) and all(item.disturbed for item in self.repetitions)

    @property
    def time_ms(self) -> float:
        """What a working row is ranked by: its median, the mean under the tutorial's protocol."""
        return self.summary.mean if self.tutorial else self.summary.median

    @property
    def verification(self) -> dict[str, Any]:
        """The record of a failed verification, or else of the first one; {} where none was made."""
        checked = [item.verification for item in self.repetitions if item.verification is not None]
        failed = [record for record in checked if not record.get("passed")]
        return next(iter(failed + checked), {})

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
    context: dict[str, Any]
    stratagem: dict[str, Any]
    rows: list[Row]

    def section(self, *keys: str) -> dict[str, Any]:
        """An object inside `stratagem`, by the keys that lead to it; {} where there is none."""
        found: Any = self.stratagem
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}


def load_results(path: Path) -> Results:
    """Reads and checks a results file; InputError when it is not one."""
    document = read_json(path)
    context = member(document, "context", dict, str(path))
    stratagem = member(context, "stratagem", dict, f"{path}: context")
    _check_schema(stratagem, f"{path}: context.stratagem")
    by_name = _by_name(member(document, "benchmarks", list, str(path)), path)
    _refuse_duplicates(by_name)
    rows = [_row(name, items) for name, items in by_name.items()]
    return Results(path=path, context=context, stratagem=stratagem, rows=rows)


def require_summaries(results: Results) -> None:
    """InputError where a row has no summary, which is what reports and charts are made of."""
    for row in results.rows:
        if row.summary is None:
            raise InputError(
                f"{results.path}: {row.name} has no stratagem.summary, so that nothing is known of "
                "its workload and baseline; measure it again with this version of `stratagem run` "
                "or of the benchmark program"
            )


def repetition_index(entry: dict, where: str) -> int | None:
    """The number of an entry's launch, None where it has none; InputError for anything else."""
    index = entry.get("repetition_index")
    if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
        raise InputError(
            f"{where}.repetition_index: expected a whole number or null, found {index!r:.40}"
        )
    return index


def _by_name(entries: list, path: Path) -> dict[str, list[Place]]:
    """Each row's launches with their places; InputError for a row that has aggregates alone."""
    by_name: dict[str, list[Place]] = {}
    aggregated: dict[str, str] = {}
    for index, entry in enumerate(entries):
        where = f"{path}: benchmarks[{index}]"
        if not isinstance(entry, dict):
            raise InputError(f"{where}: expected an object, found {kind_of(entry)}")
        if entry.get("run_type") == "aggregate":
            if isinstance(entry.get("run_name"), str):
                aggregated.setdefault(entry["run_name"], where)
            continue
        name = entry.get("run_name") or entry.get("name")
        if not isinstance(name, str) or not name:
            raise InputError(f"{where}.name: expected a row's name, found {kind_of(name or None)}")
        by_name.setdefault(name, []).append((entry, where))
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
            index = repetition_index(entry, where)
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


def load_simulation(path: Path) -> dict[str, Any]:
    """Reads a simulation file: {"title", "makespan_ms", "bubble", "exposed_ms", "timeline"}.

    `timeline` is a list of Action; `exposed_ms` the communication of replicas that nothing hides,
    else None.
    """
    document = read_json(path)
    _check_schema(document, str(path))
    simulation = member(document, "simulation", dict, str(path))
    where = f"{path}: simulation"
    timeline = read_timeline(simulation, where)
    if not timeline:
        raise InputError(f"{where}.timeline: empty: nothing to draw")
    title = simulation.get("title") or "Simulated schedule"
    return {
        "title": str(title),
        "makespan_ms": number(simulation, "makespan_ms", where),
        "bubble": number(simulation, "bubble", where),
        "exposed_ms": number(simulation, "communication_exposed_ms", where),
        "timeline": timeline,
    }


def _check_schema(holder: dict, where: str) -> None:
    schema = holder.get("schema")
    if schema != SCHEMA:
        found = "none" if schema is None else repr(schema)
        raise InputError(f'{where}.schema: expected "{SCHEMA}", found {found}')


def _row(name: str, items: list[Place]) -> Row:
    parts = name.split("/")
    strategy, model = parts[0], parts[1] if len(parts) > 1 else ""
    config: dict[str, Any] = {}
    mesh, error, summary = "", None, None
    repetitions = []
    for index, (entry, where) in enumerate(items):
        own = member(entry, "stratagem", dict, where, optional=True) or {}
        where = f"{where}.stratagem"
        strategy = member(own, "strategy", str, where, optional=True) or strategy
        model = member(own, "model", str, where, optional=True) or model
        config = member(own, "config", dict, where, optional=True) or config
        mesh = member(own, "mesh", str, where, optional=True) or mesh
        summary = summary or read_summary(own, name, where)
        failure = _failure(entry, own)
        if failure:
            error = error or failure
        else:
            repetitions.append(_repetition(index, entry, own, where))
    if summary and summary.error:
        error = summary.error
    return Row(name, strategy, model, config, repetitions, error, summary, mesh)


def _failure(entry: dict, own: dict) -> str | None:
    """The failed repetition's message, or None for one that worked."""
    details = own.get("error")
    if not entry.get("error_occurred") and not details:
        return None
    message = details.get("message") if isinstance(details, dict) else details
    return str(message or entry.get("error_message") or "failed")


def _repetition(index: int, entry: dict, own: dict, where: str) -> Repetition:
    steps = member(own, "step_ms", list, where, optional=True) or []
    if not all(is_number(step) and step > 0 for step in steps):
        raise InputError(f"{where}.step_ms: expected a list of positive numbers")
    if not steps:
        raise InputError(f"{where}.step_ms: missing; expected the times of the timed steps")
    marks = member(own, "marks", list, where, optional=True) or []
    counters = member(own, "counters", dict, where, optional=True) or {}
    return Repetition(
        index=index,
        step_ms=[float(step) for step in steps],
        items_per_second=number(entry, "items_per_second", where),
        devices=_devices(own, where),
        timeline=read_timeline(own, where),
        mfu=number(own, "mfu", where),
        verification=member(own, "verification", dict, where, optional=True),
        marks=[str(mark) for mark in marks],
        counters=numbers(counters, f"{where}.counters"),
        cpu_ms=number(entry, "cpu_time", where),
        flops_per_step=number(own, "flops_per_step", where),
        communication=_communication(own, where),
        loss=_loss(own, where),
        predicted_from=member(own, "predicted_from", dict, where, optional=True),
        canary_ms=_canary(own, where),
        kernels=member(own, "kernels", str, where, optional=True),
    )


def _canary(own: dict, where: str) -> float | None:
    """The canary of a launch; None where it was not run before and after."""
    conditions = member(own, "conditions", dict, where, optional=True) or {}
    place = f"{where}.conditions"
    canaries = [
        member(conditions, f"canary_{when}_ms", list, place, optional=True) or []
        for when in ("before", "after")
    ]
    if not all(own and all(map(is_number, own)) for own in canaries):
        return None
    return sum(map(max, canaries)) / 2


def _loss(own: dict, where: str) -> list[float]:
    """The loss of every timed step; [] where a step has none."""
    losses = member(own, "loss", list, where, optional=True) or []
    return [float(loss) for loss in losses] if all(map(is_number, losses)) else []


def _communication(own: dict, where: str) -> dict[str, dict[str, float]]:
    by_collective = member(own, "communication", dict, where, optional=True) or {}
    return {
        name: numbers(
            member(by_collective, name, dict, f"{where}.communication"),
            f"{where}.communication.{name}",
        )
        for name in by_collective
    }


def _devices(own: dict, where: str) -> list[DeviceUse]:
    devices = []
    for index, entry in enumerate(member(own, "devices", list, where, optional=True) or []):
        place = f"{where}.devices[{index}]"
        if not isinstance(entry, dict):
            raise InputError(f"{place}: expected an object, found {kind_of(entry)}")
        parts = member(entry, "breakdown_ms", dict, place, optional=True) or {}
        bubble = member(entry, "bubble", dict, place, optional=True) or {}
        devices.append(
            DeviceUse(
                device=device_name(entry, str(index)),
                breakdown_ms=numbers(parts, f"{place}.breakdown_ms"),
                bubble_measured=number(bubble, "measured", f"{place}.bubble"),
                bubble_ideal=number(bubble, "ideal", f"{place}.bubble"),
                peak_memory_bytes=number(entry, "peak_memory_bytes", place),
                rank=whole_number(entry, "rank", place),
                memory=_memory(entry, place),
            )
        )
    return devices


def _memory(entry: dict, where: str) -> dict[str, CategoryMemory]:
    by_category = member(entry, "memory_bytes", dict, where, optional=True) or {}
    found = {}
    for name in by_category:
        place = f"{where}.memory_bytes.{name}"
        own = member(by_category, name, dict, f"{where}.memory_bytes")
        peak, at_peak = (number(own, key, place) or 0.0 for key in ("peak", "at_peak"))
        found[name] = CategoryMemory(peak, at_peak, number(own, "formula", place))
    return found
