"""A row's summary: what the results file says follows from the row's samples.

The program that measured wrote it (`stratagem.summary` of a row's first repetition); nothing is
computed again here. Times are milliseconds, rates are per second, shares are fractions of the step.
"""

from dataclasses import dataclass, field
from typing import Any

from .errors import InputError
from .json_members import is_number, member, number, numbers

VERIFICATIONS = ("passed", "failed", "not verified")
_OPTIONAL = ("spread", "samples_per_second", "tokens_per_second", "mfu", "peak_memory_bytes")
_OPTIONAL += ("predicted_ms", "prediction_error")
_TIMES = ("mean", "median", "deviation")


@dataclass(frozen=True)
class Interval:
    """An interval of the median in milliseconds; `coverage` is its exact probability."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True)
class Ratio:
    """How a row's time stands to another's, with the interval of all launches' pairs.

    `coverage` is the interval's exact probability; each pair of rows has its share of the level.
    """

    value: float
    low: float
    high: float
    coverage: float


@dataclass(frozen=True)
class Summary:
    """Of the row `name`; a failed row has workload, verification, marks and error alone.

    A sample is a launch, the median of its timed steps; under the tutorial's protocol it is a whole
    training call, and `predicted_ms` is of one step. Rows of one `workload` may be ranked and
    charted together: `ratios` says how many times as fast this row is as each other one. `figures`
    has every number of the summary that has no name here.
    """

    name: str
    workload: str
    verification: str
    marks: list[str]
    error: str | None = None
    baseline: str | None = None
    samples: list[float] = field(default_factory=list)
    mean: float | None = None
    median: float | None = None
    deviation: float | None = None
    interval: Interval | None = None
    spread: float | None = None
    wide: bool = False
    outliers: list[int] = field(default_factory=list)
    bubble_measured: float | None = None
    bubble_ideal: float | None = None
    breakdown_ms: dict[str, float] = field(default_factory=dict)
    communication_exposed: float | None = None
    communication_hidden: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    mfu: float | None = None
    peak_memory_bytes: float | None = None
    predicted_ms: float | None = None
    prediction_error: float | None = None
    ratios: dict[str, Ratio] = field(default_factory=dict)
    cannot_tell: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.samples)


def read_summary(own: dict[str, Any], name: str, where: str) -> Summary | None:
    """The summary in the `stratagem` object of the row `name`, None where it has none."""
    holder = member(own, "summary", dict, where, optional=True)
    if holder is None:
        return None
    where = f"{where}.summary"
    verification = member(holder, "verification", str, where)
    if verification not in VERIFICATIONS:
        raise InputError(
            f"{where}.verification: expected {', '.join(VERIFICATIONS)}, found {verification!r:.40}"
        )
    known = {
        "name": name,
        "workload": member(holder, "workload", str, where),
        "verification": verification,
        "marks": _words(holder, "marks", where),
        "error": member(holder, "error", str, where, optional=True),
    }
    return Summary(**known) if known["error"] else Summary(**known, **_measured(holder, where))


def _measured(holder: dict[str, Any], where: str) -> dict[str, Any]:
    bubble = member(holder, "bubble", dict, where, optional=True) or {}
    shares = member(holder, "communication_share", dict, where, optional=True) or {}
    parts = member(holder, "breakdown_ms", dict, where, optional=True) or {}
    interval = _required(holder, "interval_ms", ("low", "high", "coverage"), where)
    ratios = member(holder, "ratios", dict, where)
    parts_of_ratio = ("value", "low", "high", "coverage")
    samples = _list(holder, "samples_ms", where)
    if not samples or min(samples) <= 0:
        raise InputError(f"{where}.samples_ms: expected one positive time or more")
    return {
        "baseline": member(holder, "baseline", str, where, optional=True),
        "samples": samples,
        **{key: _known(holder, f"{key}_ms", where) for key in _TIMES},
        "interval": Interval(**interval),
        "wide": holder.get("wide") is True,
        "outliers": [int(index) for index in _list(holder, "outliers", where)],
        "bubble_measured": number(bubble, "measured", f"{where}.bubble"),
        "bubble_ideal": number(bubble, "ideal", f"{where}.bubble"),
        "breakdown_ms": numbers(parts, f"{where}.breakdown_ms"),
        "communication_exposed": number(shares, "exposed", f"{where}.communication_share"),
        "communication_hidden": number(shares, "hidden", f"{where}.communication_share"),
        **{key: number(holder, key, where) for key in _OPTIONAL},
        "figures": {
            key: float(value)
            for key, value in holder.items()
            if is_number(value) and not {key, key.removesuffix("_ms")} & {*_OPTIONAL, *_TIMES}
        },
        "ratios": {
            other: Ratio(**_required(ratios, other, parts_of_ratio, f"{where}.ratios"))
            for other in ratios
        },
        "cannot_tell": _words(holder, "cannot_tell", where),
    }


def _list(holder: dict[str, Any], key: str, where: str) -> list[float]:
    values = member(holder, key, list, where)
    if not all(is_number(value) for value in values):
        raise InputError(f"{where}.{key}: expected a list of numbers")
    return [float(value) for value in values]


def _words(holder: dict[str, Any], key: str, where: str) -> list[str]:
    return [str(word) for word in member(holder, key, list, where, optional=True) or []]


def _known(holder: dict[str, Any], key: str, where: str) -> float:
    value = number(holder, key, where)
    if value is None:
        raise InputError(f"{where}.{key}: missing; expected a number")
    return value


def _required(
    holder: dict[str, Any], key: str, keys: tuple[str, ...], where: str
) -> dict[str, float]:
    inner = member(holder, key, dict, where)
    return {name: _known(inner, name, f"{where}.{key}") for name in keys}
