"""Deterministic metrics, compared by equality: these gate on any machine, however noisy.

Calls and bytes of collectives, FLOPs, live micro-batches and operator counts follow from the
configuration and the code alone, so one more is a change of the code. Peak memory depends a little
on timing: it has a tolerance of 1%, and the lowest of one side is held against the highest of the
other.

Between machines two metrics may differ though the code does the same (`bound_to_hardware`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from .result_set import Launches

MEMORY_TOLERANCE = 0.01
MEMORY = "peak_memory_bytes"
OPERATORS = "aten_operators"
_REDUCED = ("bfloat16", "float16")


class Kind(Enum):
    """What became of a metric; only the first is a regression."""

    MORE = "more"
    FEWER = "fewer"
    NEW = "only in head"
    GONE = "only in base"
    UNSTEADY = "differs between launches"


@dataclass(frozen=True)
class MetricChange:
    """A metric that is not the same on both sides."""

    metric: str
    unit: str
    base: float | None
    head: float | None
    kind: Kind
    accepted: bool = False

    @property
    def regression(self) -> bool:
        """True where the head does more than the base, and nobody said that it should."""
        return self.kind is Kind.MORE and not self.accepted


def compare_metrics(
    base: Launches, head: Launches, units: dict[str, str], left_out: Collection[str] = ()
) -> list[MetricChange]:
    """Every metric that changed, in order of name; what is equal or `left_out` is not listed.

    A collective that one side does not use counts as none there: it is an increase, or a decrease.
    A metric that one side did not count at all is only reported.
    """
    changes = []
    for metric in sorted({*base.counts, *head.counts} - {*left_out}):
        counted = metric.startswith("communication.")
        one = _value(base, metric, counted)
        two = _value(head, metric, counted)
        unit = _unit(metric, units)
        change = _change(metric, unit, one, two)
        if change is not None:
            changes.append(change)
    return changes if MEMORY in left_out else changes + _memory(base, head)


def bound_to_hardware(row: Launches, fields: Collection[str]) -> list[str]:
    """The row's metrics that may differ because these fields of the machines do.

    Peak memory follows the allocator, huge pages and the number of cores: any field will do. The
    number of operators follows the kernels that ATen chooses: on a GPU by its model (attention), in
    bfloat16 and float16 on a CPU by its instructions (convolutions). All else follows from code and
    configuration.
    """
    found = []
    if row.config.get("device", "cpu") != "cpu":
        chooses = "gpu_models"
    else:
        chooses = "cpu_model" if row.config.get("dtype") in _REDUCED else None
    if OPERATORS in row.counts and chooses in fields:
        found.append(OPERATORS)
    if row.peak_memory_bytes and fields:
        found.append(MEMORY)
    return found


def _unit(metric: str, units: dict[str, str]) -> str:
    if metric.startswith("communication."):
        return "bytes" if metric.endswith("_bytes") else "calls"
    return units.get(metric, "")


def count_compared(base: Launches, head: Launches, left_out: Collection[str] = ()) -> int:
    """How many metrics both sides have."""
    return len(({*base.counts} & {*head.counts}) - {*left_out})


def _value(row: Launches, metric: str, counted: bool) -> set[float]:
    values = set(row.counts.get(metric, []))
    return {0.0} if counted and not values and row.counts else values


def _change(metric: str, unit: str, base: set[float], head: set[float]) -> MetricChange | None:
    if len(base) > 1 or len(head) > 1:
        return MetricChange(metric, unit, _only(base), _only(head), Kind.UNSTEADY)
    one, two = _only(base), _only(head)
    if one == two:
        return None
    if one is None or two is None:
        return MetricChange(metric, unit, one, two, Kind.NEW if one is None else Kind.GONE)
    return MetricChange(metric, unit, one, two, Kind.MORE if two > one else Kind.FEWER)


def _only(values: set[float]) -> float | None:
    return next(iter(values)) if len(values) == 1 else None


def _memory(base: Launches, head: Launches) -> list[MetricChange]:
    if not base.peak_memory_bytes or not head.peak_memory_bytes:
        return []
    one, two = base.peak_memory_bytes, head.peak_memory_bytes
    if min(two) > max(one) * (1 + MEMORY_TOLERANCE):
        return [MetricChange(MEMORY, "bytes", max(one), min(two), Kind.MORE)]
    if max(two) * (1 + MEMORY_TOLERANCE) < min(one):
        return [MetricChange(MEMORY, "bytes", min(one), max(two), Kind.FEWER)]
    return []
