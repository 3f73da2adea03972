"""Reads results.json (Google Benchmark's JSON with Stratagem's fields) into rows of repetitions.

Whatever is missing but optional becomes None or empty; whatever is present but of the wrong kind is
an InputError that names the place, so that nothing downstream has to check again. Times are in
milliseconds throughout.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import InputError

SCHEMA = "stratagem/1"
_IN_NAMES = {
    "split_size": "split",
    "schedule": "schedule",
    "global_batch_size": "batch",
    "image_size": "image",
    "sequence_length": "sequence",
    "devices": "devices",
    "cores_per_device": "cores",
}
_MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True)
class Action:
    """One box of a timeline: what a device did from `start_ms` to `end_ms` of the step."""

    device: str
    kind: str
    stage: int | None
    micro_batch: int | None
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class DeviceUse:
    """What one device did in a step, on average over the timed steps of a repetition."""

    device: str
    breakdown_ms: dict[str, float]
    bubble_measured: float | None
    bubble_ideal: float | None
    peak_memory_bytes: float | None


@dataclass(frozen=True)
class Repetition:
    """One launch of a row: its timed steps and what was recorded with them."""

    index: int
    step_ms: list[float]
    items_per_second: float | None = None
    devices: list[DeviceUse] = field(default_factory=list)
    timeline: list[Action] = field(default_factory=list)
    predicted_ms: float | None = None
    predicted_from_two_splits_ms: float | None = None
    mfu: float | None = None
    verification: dict[str, Any] | None = None
    marks: list[str] = field(default_factory=list)
    counters: dict[str, float] = field(default_factory=dict)
    flops_per_step: float | None = None
    communication: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One configuration with all its repetitions; `error` is None unless one of them failed."""

    name: str
    strategy: str
    model: str
    config: dict[str, Any]
    repetitions: list[Repetition]
    error: str | None = None

    def option(self, key: str) -> Any:
        """An option from the row's configuration or else its name; None where it is not used."""
        value = self.config.get(key)
        if value is not None or key not in _IN_NAMES:
            return value
        token = name_tokens(self.name).get(_IN_NAMES[key])
        return int(token) if token and token.isdecimal() else token

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


def load_results(path: Path) -> Results:
    """Reads and checks a results file; InputError when it is not one."""
    document = read_json(path)
    context = _get(document, "context", dict, str(path))
    stratagem = _get(context, "stratagem", dict, f"{path}: context")
    _check_schema(stratagem, f"{path}: context.stratagem")
    by_name = _by_name(_get(document, "benchmarks", list, str(path)), path)
    _refuse_duplicates(by_name)
    rows = [_row(name, items) for name, items in by_name.items()]
    return Results(path=path, context=context, stratagem=stratagem, rows=rows)


def repetition_index(entry: dict, where: str) -> int | None:
    """The number of an entry's launch, None where it has none; InputError for anything else."""
    index = entry.get("repetition_index")
    if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
        raise InputError(
            f"{where}.repetition_index: expected a whole number or null, found {index!r:.40}"
        )
    return index


def _by_name(entries: list, path: Path) -> dict[str, list[dict]]:
    """Each row's launches with their places; InputError for a row that has aggregates alone."""
    by_name: dict[str, list[dict]] = {}
    aggregated: dict[str, str] = {}
    for index, entry in enumerate(entries):
        where = f"{path}: benchmarks[{index}]"
        if not isinstance(entry, dict):
            raise InputError(f"{where}: expected an object, found {_kind(entry)}")
        if entry.get("run_type") == "aggregate":
            if isinstance(entry.get("run_name"), str):
                aggregated.setdefault(entry["run_name"], where)
            continue
        name = entry.get("run_name") or entry.get("name")
        if not isinstance(name, str) or not name:
            raise InputError(f"{where}.name: expected a row's name, found {_kind(name or None)}")
        by_name.setdefault(name, []).append({"entry": entry, "where": where})
    if not by_name:
        raise InputError(f"{path}: no rows: `benchmarks` holds no repetition to report")
    for name, where in aggregated.items():
        if name not in by_name:
            raise InputError(
                f"{where}: {name} has only aggregates; its repetitions are needed: write the file "
                "without --benchmark_report_aggregates_only"
            )
    return by_name


def _refuse_duplicates(by_name: dict[str, list[dict]]) -> None:
    """A launch may stand in a file once: two with one name and number would count double."""
    for name, items in by_name.items():
        seen = set()
        for item in items:
            index = repetition_index(item["entry"], item["where"])
            if index is None and len(items) > 1:
                raise InputError(
                    f"{item['where']}: has no repetition_index, and {name} is there {len(items)} "
                    "times; each launch of a row has a number of its own"
                )
            if index in seen:
                raise InputError(
                    f"{item['where']}: repetition_index {index} of {name} stands there twice; "
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
    simulation = _get(document, "simulation", dict, str(path))
    where = f"{path}: simulation"
    timeline = _timeline(simulation, where)
    if not timeline:
        raise InputError(f"{where}.timeline: empty: nothing to draw")
    title = simulation.get("title") or "Simulated schedule"
    return {
        "title": str(title),
        "makespan_ms": _number(simulation, "makespan_ms", where),
        "bubble": _number(simulation, "bubble", where),
        "exposed_ms": _number(simulation, "communication_exposed_ms", where),
        "timeline": timeline,
    }


def name_tokens(name: str) -> dict[str, str]:
    """The `key:value` parts of a row's name, in order."""
    pairs = (part.split(":", 1) for part in name.split("/") if ":" in part)
    return dict(pairs)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; InputError when there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a results file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; expected JSON") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        detail = str(error).splitlines()[0]
        raise InputError(f"{path}: not valid JSON, perhaps cut short: {detail}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path}: expected a JSON object, found {_kind(document)}")
    return document


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _check_schema(holder: dict, where: str) -> None:
    schema = holder.get("schema")
    if schema != SCHEMA:
        found = "none" if schema is None else repr(schema)
        raise InputError(f'{where}.schema: expected "{SCHEMA}", found {found}')


def _row(name: str, items: list[dict]) -> Row:
    parts = name.split("/")
    strategy, model = parts[0], parts[1] if len(parts) > 1 else ""
    config: dict[str, Any] = {}
    error = None
    repetitions = []
    for index, item in enumerate(items):
        entry, where = item["entry"], item["where"]
        own = _get(entry, "stratagem", dict, where, optional=True) or {}
        where = f"{where}.stratagem"
        strategy = _get(own, "strategy", str, where, optional=True) or strategy
        model = _get(own, "model", str, where, optional=True) or model
        config = _get(own, "config", dict, where, optional=True) or config
        failure = _failure(entry, own)
        if failure:
            error = error or failure
        else:
            repetitions.append(_repetition(index, entry, own, where))
    return Row(name, strategy, model, config, repetitions, error)


def _failure(entry: dict, own: dict) -> str | None:
    """The failed repetition's message, or None for one that worked."""
    details = own.get("error")
    if not entry.get("error_occurred") and not details:
        return None
    details = details if isinstance(details, dict) else {"message": details}
    message = str(details.get("message") or entry.get("error_message") or "failed")
    rank = details.get("rank")
    if rank is not None and f"rank {rank}" not in message:
        message = f"rank {rank}: {message}"
    host, last = details.get("host"), details.get("last_action")
    where = [f"host {host}"] if host else []
    if last and str(last) not in message:
        where.append(f"last action: {last}")
    return f"{message} ({', '.join(where)})" if where else message


def _repetition(index: int, entry: dict, own: dict, where: str) -> Repetition:
    steps = _get(own, "step_ms", list, where, optional=True) or []
    if not all(_is_number(step) and step > 0 for step in steps):
        raise InputError(f"{where}.step_ms: expected a list of positive numbers")
    if not steps:
        steps = [_real_time_ms(entry, where)]
    marks = _get(own, "marks", list, where, optional=True) or []
    counters = _get(own, "counters", dict, where, optional=True) or {}
    return Repetition(
        index=index,
        step_ms=[float(step) for step in steps],
        items_per_second=_number(entry, "items_per_second", where),
        devices=_devices(own, where),
        timeline=_timeline(own, where),
        predicted_ms=_number(own, "predicted_ms", where),
        predicted_from_two_splits_ms=_number(own, "predicted_from_two_splits_ms", where),
        mfu=_number(own, "mfu", where),
        verification=_get(own, "verification", dict, where, optional=True),
        marks=[str(mark) for mark in marks],
        counters=_numbers(counters, f"{where}.counters"),
        flops_per_step=_number(own, "flops_per_step", where),
        communication=_communication(own, where),
    )


def _communication(own: dict, where: str) -> dict[str, dict[str, float]]:
    by_collective = _get(own, "communication", dict, where, optional=True) or {}
    return {
        name: _numbers(
            _get(by_collective, name, dict, f"{where}.communication"),
            f"{where}.communication.{name}",
        )
        for name in by_collective
    }


def _real_time_ms(entry: dict, where: str) -> float:
    value = _number(entry, "real_time", where) or 0.0
    unit = entry.get("time_unit", "ms")
    time = value * _MILLISECONDS.get(unit, 0.0) if isinstance(unit, str) else 0.0
    if not _is_number(time) or time <= 0:
        raise InputError(
            f"{where}.step_ms: missing, and there is no usable real_time instead: expected a "
            f"positive one in ns, us, ms or s, found {value:g} in {unit!r:.40}"
        )
    return time


def _devices(own: dict, where: str) -> list[DeviceUse]:
    devices = []
    for index, entry in enumerate(_get(own, "devices", list, where, optional=True) or []):
        place = f"{where}.devices[{index}]"
        if not isinstance(entry, dict):
            raise InputError(f"{place}: expected an object, found {_kind(entry)}")
        parts = _get(entry, "breakdown_ms", dict, place, optional=True) or {}
        bubble = _get(entry, "bubble", dict, place, optional=True) or {}
        devices.append(
            DeviceUse(
                device=_device(entry, str(index)),
                breakdown_ms=_numbers(parts, f"{place}.breakdown_ms"),
                bubble_measured=_number(bubble, "measured", f"{place}.bubble"),
                bubble_ideal=_number(bubble, "ideal", f"{place}.bubble"),
                peak_memory_bytes=_number(entry, "peak_memory_bytes", place),
            )
        )
    return devices


def _timeline(own: dict, where: str) -> list[Action]:
    actions = []
    for index, entry in enumerate(_get(own, "timeline", list, where, optional=True) or []):
        place = f"{where}.timeline[{index}]"
        if not isinstance(entry, dict):
            raise InputError(f"{place}: expected an object, found {_kind(entry)}")
        start, end = (_number(entry, key, place) for key in ("start_ms", "end_ms"))
        if start is None or end is None or end < start:
            raise InputError(f"{place}: expected start_ms and end_ms with start_ms <= end_ms")
        actions.append(
            Action(
                device=_device(entry, "0"),
                kind=str(entry.get("kind", "other")),
                stage=_whole(entry, "stage", place),
                micro_batch=_whole(entry, "micro_batch", place),
                start_ms=start,
                end_ms=end,
            )
        )
    return actions


def _device(entry: dict, otherwise: str) -> str:
    """A device's name; a bare number becomes "device 0"."""
    name = str(entry.get("device", otherwise))
    return f"device {name}" if name.isdigit() else name


def _get(holder: dict, key: str, kind: type, where: str, optional: bool = False) -> Any:
    value = holder.get(key)
    if value is None and optional:
        return None
    if not isinstance(value, kind):
        wanted = {dict: "an object", list: "a list", str: "a string"}[kind]
        raise InputError(f"{where}: `{key}`: expected {wanted}, found {_kind(value)}")
    return value


def _numbers(holder: dict, where: str) -> dict[str, float]:
    return {key: _number(holder, key, where) or 0.0 for key in holder}


def _number(holder: dict, key: str, where: str) -> float | None:
    value = holder.get(key)
    if value is None:
        return None
    if not _is_number(value):
        raise InputError(f"{where}.{key}: expected a number, found {_kind(value)}")
    return float(value)


def _whole(holder: dict, key: str, where: str) -> int | None:
    value = _number(holder, key, where)
    return None if value is None or value < 0 else int(value)


def _is_number(value: Any) -> bool:
    """True for a finite number that a float can hold."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    if value is None or type(value) in names:
        return names.get(type(value), "nothing")
    return "a number" if _is_number(value) else "a number out of range"
