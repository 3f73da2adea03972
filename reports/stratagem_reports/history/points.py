"""One run of one row: what a line of the history holds, and the line itself.

The launch is the unit: `launches` has one time a launch, in milliseconds, and `median` is theirs.
"""

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ..results.errors import InputError
from ..results.json_members import member, parse_object

SCHEMA = "stratagem-history/1"
STEP = "step_ms"
CPU_TIME = "cpu_time"
STEP_IN_CANARIES = "step_in_canaries"
UNKNOWN_HARDWARE = "unknown"
ANY_HARDWARE = "any"
_DISTURBED = {"shared_cores", "disturbed"}
_SCHEMA_NAME = re.compile(r"stratagem-history/\d+")
_COMMIT = re.compile(r"[0-9A-Za-z][0-9A-Za-z._/+-]{0,99}")
_BETTER = ("lower", "higher", "")


@dataclass(frozen=True)
class Metric:
    """A value of a run; `better` is "lower", "higher" or empty where neither is said."""

    value: float
    unit: str = ""
    better: str = ""
    deterministic: bool = False


@dataclass(frozen=True)
class Hardware:
    """The machine of a run: a digest that is equal for equal fields, and the fields."""

    digest: str = UNKNOWN_HARDWARE
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One row measured once, in one or more launches; `workload` is None where nobody said it."""

    time: datetime
    commit: str
    name: str
    launches: list[float]
    median: float
    metrics: dict[str, Metric] = field(default_factory=dict)
    hardware: Hardware = field(default_factory=Hardware)
    software: dict[str, Any] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)
    workload: str | None = None

    @property
    def key(self) -> tuple[str, datetime, str]:
        """What makes a run the same run."""
        return (self.commit, self.time, self.name)

    @property
    def identity(self) -> str:
        """The same in words."""
        return f"{self.name} of commit {self.commit} at {self.time:%Y-%m-%dT%H:%M:%SZ}"

    @property
    def disturbed(self) -> bool:
        """True where something else ran beside every launch, so that no time is to be trusted."""
        return bool(_DISTURBED & set(self.marks))

    def value(self, metric: str) -> float | None:
        """The run's value of a metric, or None where it has none."""
        if metric == STEP:
            return self.median
        return self.metrics[metric].value if metric in self.metrics else None


def hardware_of(fields: dict[str, Any]) -> Hardware:
    """The fields with the digest that tells machines apart."""
    if not fields:
        return Hardware()
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return Hardware(hashlib.sha256(text.encode()).hexdigest()[:12], fields)


def time_text(time: datetime) -> str:
    """A time as ISO 8601 in UTC, e.g. 2026-01-15T10:20:30Z."""
    return time.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def parse_time(text: Any, where: str) -> datetime:
    """Reads ISO 8601; without an offset the time is UTC."""
    try:
        time = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (AttributeError, OverflowError, ValueError):
        raise InputError(
            f"{where}: expected a date such as 2026-01-15T10:20:30Z, found {text!r}"
        ) from None


def parse_commit(text: Any, where: str) -> str:
    """Reads the name of a commit; what the build writes without one, "unknown", is none."""
    if not isinstance(text, str) or not _COMMIT.fullmatch(text) or text == "unknown":
        found = "nothing" if text in (None, "") else repr(text)
        raise InputError(f"{where}: expected a git commit, found {found}; give one with --commit")
    return text


def to_line(run: Run) -> str:
    """The run as one line of JSON, without the line's end."""
    step = {"value": run.median, "unit": "ms", "better": "lower", "deterministic": False}
    document = {
        "schema": SCHEMA,
        "time": time_text(run.time),
        "commit": run.commit,
        "name": run.name,
        "workload": run.workload,
        "launches": run.launches,
        "median": run.median,
        "metrics": {STEP: step} | {name: vars(metric) for name, metric in run.metrics.items()},
        "hardware": {"digest": run.hardware.digest, "fields": run.hardware.fields},
        "software": run.software,
        "marks": run.marks,
    }
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def from_line(text: str, where: str) -> Run:
    """Reads and checks a line; InputError says what is wrong with it."""
    document = parse_object(text, where)
    _check_schema(document.get("schema"), where)
    launches = member(document, "launches", list, where)
    if not launches:
        raise InputError(f"{where}: launches: expected one time or more, found none")
    hardware = member(document, "hardware", dict, where)
    return Run(
        time=parse_time(document.get("time"), f"{where}: time"),
        commit=parse_commit(document.get("commit"), f"{where}: commit"),
        name=member(document, "name", str, where),
        launches=[time_ms(value, f"{where}: launches") for value in launches],
        median=time_ms(document.get("median"), f"{where}: median"),
        metrics=_metrics(member(document, "metrics", dict, where), where),
        hardware=Hardware(
            str(hardware.get("digest") or UNKNOWN_HARDWARE),
            member(hardware, "fields", dict, f"{where}: hardware"),
        ),
        software=member(document, "software", dict, where),
        marks=[str(mark) for mark in member(document, "marks", list, where)],
        workload=member(document, "workload", str, where, optional=True),
    )


def time_ms(value: Any, where: str) -> float:
    """A time: a finite positive number."""
    number = finite(value, where)
    if number <= 0.0:
        raise InputError(f"{where}: expected a positive time, found {value}")
    return number


def finite(value: Any, where: str) -> float:
    """A number that is neither NaN nor infinite."""
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: expected a finite number, found {str(value)[:40]}")
    return number


def _check_schema(schema: Any, where: str) -> None:
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and _SCHEMA_NAME.fullmatch(schema):
        raise InputError(
            f"{where}: schema {schema!r} is of another version of stratagem; this one reads "
            f'"{SCHEMA}"'
        )
    raise InputError(f'{where}: expected schema "{SCHEMA}", found {schema!r}')


def _metrics(holder: dict[str, Any], where: str) -> dict[str, Metric]:
    metrics = {}
    for name, entry in holder.items():
        if name == STEP:
            continue
        place = f"{where}: metrics.{name}"
        if not isinstance(entry, dict) or entry.get("better", "") not in _BETTER:
            raise InputError(f"{place}: expected an object whose `better` is lower or higher")
        metrics[name] = Metric(
            finite(entry.get("value"), f"{place}.value"),
            str(entry.get("unit", "")),
            entry.get("better", ""),
            bool(entry.get("deterministic")),
        )
    return metrics
