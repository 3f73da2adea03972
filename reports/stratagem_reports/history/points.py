"""One run of one row: what a line of the history holds, and the line itself.

The launch is the unit: `launches` has one time a launch, in milliseconds, and `median` is theirs.
"""

import hashlib
import json
import re
from datetime import datetime, timezone
from typing import Annotated, Any

import msgspec

from ..results.errors import InputError
from ..results.launch import UNRELIABLE_MARKS
from ..results.typed_json import Better, Milliseconds, decode

SCHEMA = "stratagem-history/1"
STEP = "step_ms"
CPU_TIME = "cpu_time"
STEP_IN_CANARIES = "step_in_canaries"
UNKNOWN_HARDWARE = "unknown"
ANY_HARDWARE = "any"
_SCHEMA_NAME = re.compile(r"stratagem-history/\d+")
# The build writes "unknown" if there is no commit.
_COMMIT = r"^(?!unknown\Z)[0-9A-Za-z][0-9A-Za-z._/+-]{0,99}\Z"


class Metric(msgspec.Struct, frozen=True):
    """A value of a run; `better` is "lower", "higher" or empty where neither is said."""

    value: float
    unit: str = ""
    better: Better = ""
    deterministic: bool = False


class Hardware(msgspec.Struct, frozen=True):
    """The machine of a run: a digest that is equal for equal fields, and the fields."""

    digest: str = UNKNOWN_HARDWARE
    fields: dict[str, Any] = {}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One row measured once, in one or more launches; `workload` is None where nobody said it.

    Its members are those of a line, in their order. `steps` are those of a launch. `time` is in UTC; read without an offset, too.
    """

    time: datetime
    commit: Annotated[str, msgspec.Meta(pattern=_COMMIT)]
    name: str
    workload: str | None = None
    launches: Annotated[list[Milliseconds], msgspec.Meta(min_length=1)]
    median: Milliseconds
    metrics: dict[str, Metric]
    hardware: Hardware
    software: dict[str, Any]
    marks: list[str]
    steps: int | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "time", _in_utc(self.time))

    @property
    def key(self) -> tuple[str, datetime, str]:
        """What makes a run the same run."""
        return (self.commit, self.time, self.name)

    @property
    def identity(self) -> str:
        """The same in words."""
        return f"{self.name} of commit {self.commit} at {self.time:%Y-%m-%dT%H:%M:%SZ}"

    def unreliable(self, metric: str) -> list[str]:
        """The marks for which the run's value of a metric is not to be trusted.

        A slow machine delays the canary as well as the step.
        """
        known = self.metrics.get(metric)
        if metric != STEP and (known is None or known.deterministic):
            return []
        allowed = {"slow_machine"} if metric == STEP_IN_CANARIES else set()
        return [mark for mark in UNRELIABLE_MARKS if mark in self.marks and mark not in allowed]

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


def parse_time(text: str, where: str) -> datetime:
    """Reads ISO 8601; without an offset the time is UTC."""
    try:
        return _in_utc(datetime.fromisoformat(text.strip().replace("Z", "+00:00")))
    except ValueError:
        raise InputError(
            f"{where}: expected a date such as 2026-01-15T10:20:30Z, found {text!r}"
        ) from None


def _in_utc(time: datetime) -> datetime:
    try:
        return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(f"time {time} is out of range") from None


def parse_commit(text: str, where: str) -> str:
    """Checks the name of a commit."""
    if not re.search(_COMMIT, text):
        found = repr(text) if text else "nothing"
        remedy = "" if where == "--commit" else "; give one with --commit"
        raise InputError(f"{where}: expected a git commit, found {found}{remedy}")
    return text


def to_line(run: Run) -> str:
    """The run as one line of JSON, without the line's end."""
    step = Metric(run.median, "ms", "lower")
    members = msgspec.to_builtins(msgspec.structs.replace(run, metrics={STEP: step} | run.metrics))
    return json.dumps({"schema": SCHEMA} | members, separators=(",", ":"), allow_nan=False)


class _Versioned(msgspec.Struct):
    schema: Any = None


def from_line(text: str, where: str) -> Run:
    """Reads and checks a line; InputError says what is wrong with it."""
    schema = decode(text, _Versioned, where).schema
    if schema != SCHEMA:
        if isinstance(schema, str) and _SCHEMA_NAME.fullmatch(schema):
            raise InputError(
                f"{where}: schema {schema!r} is of another version of stratagem; this one reads "
                f'"{SCHEMA}"'
            )
        found = "none" if schema is None else repr(schema)[:60]
        raise InputError(f'{where}: expected schema "{SCHEMA}", found {found}')
    run = decode(text, Run, where)
    run.metrics.pop(STEP, None)
    return run
