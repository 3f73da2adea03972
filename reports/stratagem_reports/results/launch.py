"""What one launch of a row recorded: an entry of `benchmarks` and its object `stratagem`."""

from typing import Any

import msgspec
from msgspec import field
from msgspec.structs import force_setattr, replace

from .row_summary import Bubble
from .timeline import Action, device_name
from .typed_json import Milliseconds


# Marks for which a row's times are not to be compared with another run's: each with the share of
# the row's launches that must have it.
UNRELIABLE_MARKS = {
    "disturbed": 1.0,
    "not_stationary": 0.5,
    "shared_cores": 0.0,
    "slow_machine": 0.0,
    "test_fault": 0.0,
}


class CategoryMemory(msgspec.Struct, frozen=True):
    """What a device held for one purpose, in bytes; `formula` is None where nothing says it."""

    peak: float
    at_peak: float
    formula: float | None = None


class DeviceUse(msgspec.Struct, frozen=True):
    """What one device did in a step, on average over the timed steps of a repetition.

    `memory` is by purpose, and empty where that is not known.
    """

    device: int | str
    breakdown_ms: dict[str, float] = {}
    bubble: Bubble = Bubble()
    peak_memory_bytes: float | None = None
    rank: int | None = None
    memory: dict[str, CategoryMemory] = field(name="memory_bytes", default_factory=dict)

    def __post_init__(self) -> None:
        force_setattr(self, "device", device_name(self.device))


class MemoryPoint(msgspec.Struct, frozen=True):
    """What a device holds from `ms` of a step to the next point, in bytes by purpose.

    `most_bytes` is the highest total until the next point: an action's temporary memory counts
    there.
    """

    ms: float
    held: dict[str, float] = {}
    most_bytes: float = 0.0

    @property
    def total(self) -> float:
        """What the device holds for all purposes."""
        return sum(self.held.values())


class MemoryCurve(msgspec.Struct, frozen=True):
    """A device's memory over a step, a value of each list for each time.

    `device` is its number in the job.
    """

    rank: int
    device: int
    ms: list[float]
    most_bytes: list[float]
    held: dict[str, list[float]] = field(name="bytes", default_factory=dict)

    @property
    def points(self) -> list[MemoryPoint]:
        """The curve's points by time."""
        return [
            MemoryPoint(ms, {name: own[index] for name, own in self.held.items()}, most)
            for index, (ms, most) in enumerate(zip(self.ms, self.most_bytes, strict=True))
        ]


class Verification(msgspec.Struct, frozen=True):
    """How far a row's update was from the one it was compared with, and how far it may be."""

    passed: bool = False
    message: str = ""
    max_relative_error: float | None = None
    tolerance: float | None = None
    own_arithmetic: "Verification | None" = None


class Proof(msgspec.Struct, frozen=True):
    """Whether the launch's own steps agree with those of one device."""

    passed: bool = False
    message: str = ""


class PredictionBasis(msgspec.Struct, frozen=True):
    """The age of the costs that a prediction is made of, and why they are not to be trusted.

    `low_ms` and `high_ms` are the step with the lower and with the upper quartile of every cost.
    """

    age_s: float = 0.0
    doubt: str = ""
    low_ms: float | None = None
    high_ms: float | None = None


class Conditions(msgspec.Struct, frozen=True):
    """The canary's times of each device; empty where it was not run."""

    canary_before_ms: list[float] = []
    canary_after_ms: list[float] = []


class Failure(msgspec.Struct, frozen=True):
    """Why a launch failed."""

    message: str = ""


class Repetition(msgspec.Struct, frozen=True):
    """One launch of a row: its timed steps and what was recorded with them.

    `index`, `items_per_second` and `cpu_ms`, the processor time of a step on all ranks together,
    are the entry's. `kernels` is what computed, "own" or "reference"; None on GPUs. The curves of
    memory, measured in a step after the timed ones and predicted, are a row's first launch's.
    """

    index: int = 0
    step_ms: list[Milliseconds] = []
    strategy: str = ""
    model: str = ""
    mesh: str = ""
    config: dict[str, Any] = {}
    items_per_second: float | None = None
    devices: list[DeviceUse] = []
    timeline: list[Action] = []
    memory_curve: list[MemoryCurve] = []
    predicted_memory_curve: list[MemoryCurve] = []
    mfu: float | None = None
    verification: Verification | None = None
    proof: Proof | None = None
    marks: list[str] = []
    counters: dict[str, float] = {}
    cpu_ms: float | None = None
    flops_per_step: float | None = None
    communication: dict[str, dict[str, float]] = {}
    loss: list[float | None] = []
    predicted_from: PredictionBasis | None = None
    conditions: Conditions = Conditions()
    kernels: str | None = None
    error: Failure | None = None
    summary: dict[str, Any] | None = None

    @property
    def disturbed(self) -> bool:
        """True where something else on the machine fell on the launch."""
        return "disturbed" in self.marks

    @property
    def canary_ms(self) -> float | None:
        """The slowest device's canary, the mean of before and after; None where it was not run."""
        found = (self.conditions.canary_before_ms, self.conditions.canary_after_ms)
        return sum(map(max, found)) / 2 if all(found) else None

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


class Entry(msgspec.Struct, frozen=True):
    """A repetition of a row, or an aggregate over some, as Google Benchmark has it."""

    name: str = ""
    run_name: str = ""
    run_type: str = ""
    repetition_index: int | None = None
    error_occurred: bool = False
    error_message: str = ""
    items_per_second: float | None = None
    cpu_time: float | None = None
    stratagem: Repetition = Repetition()

    def __post_init__(self) -> None:
        if self.aggregate:
            return
        if not self.row:
            raise ValueError("expected a row's name in `run_name` or `name`")
        if not self.failure and not self.stratagem.step_ms:
            raise ValueError("no stratagem.step_ms; expected the times of the timed steps")

    @property
    def aggregate(self) -> bool:
        """True for a statistic over repetitions."""
        return self.run_type == "aggregate"

    @property
    def row(self) -> str:
        """The name of the row."""
        return self.run_name or self.name

    @property
    def failure(self) -> str | None:
        """The failed repetition's message, or None for one that worked."""
        error = self.stratagem.error
        if not self.error_occurred and error is None:
            return None
        return (error and error.message) or self.error_message or "failed"

    def repetition(self, index: int) -> Repetition:
        """The launch as the row's number `index`."""
        own = {"items_per_second": self.items_per_second, "cpu_ms": self.cpu_time}
        return replace(self.stratagem, index=index, **own)
