"""Deterministic metrics, compared by equality: these gate on any machine, however noisy.

Calls and bytes of collectives, FLOPs, live micro-batches and operator counts follow from the
configuration and the code alone, so one more is a change of the code. Peak memory depends a little
on timing: it has a tolerance of 1%, and the lowest of one side is held against the highest of the
other.

Between machines two metrics may differ though the code does the same (`bound_to_hardware`).
"""

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
        one, two = _values(base, metric), _values(head, metric)
        if one != two or len(one) > 1:
            kind, unit = _kind(one, two), _unit(metric, units)
            changes.append(MetricChange(metric, unit, _only(one), _only(two), kind))
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


def _values(row: Launches, metric: str) -> set[float]:
    values = set(row.counts.get(metric, []))
    absent = not values and row.counts and metric.startswith("communication.")
    return {0.0} if absent else values


def _kind(base: set[float], head: set[float]) -> Kind:
    """Of the values of a metric on both sides, which are not one and the same."""
    if len(base) > 1 or len(head) > 1:
        return Kind.UNSTEADY
    if not base or not head:
        return Kind.GONE if base else Kind.NEW
    return Kind.MORE if max(head) > max(base) else Kind.FEWER


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
