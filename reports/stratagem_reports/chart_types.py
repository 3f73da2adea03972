"""The values that charts are drawn from: plain, in milliseconds, free of any drawing.

`chart_data` fills them from results; a renderer needs to know nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .timeline import Action

PARTS = (
    "compute",
    "communication_exposed",
    "wait",
    "bubble",
    "optimizer",
    "input_copy",
    "other",
)
HIDDEN = "communication_hidden"


@dataclass(frozen=True)
class Point:
    """A measured time with its error bar and every sample."""

    time_ms: float
    low_ms: float
    high_ms: float
    samples_ms: list[float]


@dataclass(frozen=True)
class Bar:
    """One strategy's bar; `speed` is times faster than the single device, None for itself."""

    strategy: str
    label: str
    point: Point
    speed: float | None = None


@dataclass(frozen=True)
class BarChart:
    """Strategies side by side."""

    title: str
    subtitle: str
    axis: str
    error_label: str
    bars: list[Bar]
    caption: str


@dataclass(frozen=True)
class SplitSeries:
    """The splits of one pipeline; predictions are None where the simulator made none."""

    label: str
    splits: list[int]
    points: list[Point]
    predicted_ms: list[float | None]
    predicted_from_two_splits_ms: list[float | None]


@dataclass(frozen=True)
class SplitSizeTradeoff:
    """Step time over split size, with the other strategies as levels (label, strategy, time)."""

    title: str
    subtitle: str
    axis: str
    error_label: str
    series: list[SplitSeries]
    levels: list[tuple[str, str, float]]
    best_series: int
    best_index: int
    best_note: str
    caption: str


@dataclass(frozen=True)
class Gantt:
    """One step's actions by device."""

    title: str
    subtitle: str
    actions: list[Action]
    caption: str


@dataclass(frozen=True)
class BreakdownBar:
    """Parts of a row's step, means over its devices and repetitions."""

    label: str
    parts_ms: dict[str, float]


@dataclass(frozen=True)
class Breakdown:
    """Where the step goes, row by row."""

    title: str
    subtitle: str
    bars: list[BreakdownBar]
    caption: str

    @property
    def parts(self) -> list[str]:
        """The known parts in their order, then any others; hidden communication is no part."""
        present = dict.fromkeys(
            part for bar in self.bars for part, value in bar.parts_ms.items() if value > 0.0
        )
        known = [part for part in PARTS if part in present]
        return known + [part for part in present if part not in PARTS and part != HIDDEN]


@dataclass(frozen=True)
class ScalingPoint:
    """Throughput in samples a second, with its interval; a simulated one has none."""

    devices: int
    rate: float
    low: float
    high: float
    simulated: bool = False


@dataclass(frozen=True)
class ScalingSeries:
    """A strategy over the number of devices, the single device first."""

    strategy: str
    label: str
    points: list[ScalingPoint]


@dataclass(frozen=True)
class Scaling:
    """Throughput by devices; `single` is that of one device, which the ideal line multiplies."""

    title: str
    subtitle: str
    single: float
    series: list[ScalingSeries]
    footnote: str
    caption: str


@dataclass(frozen=True)
class MemoryBar:
    """The peaks of a row's devices, in bytes."""

    strategy: str
    label: str
    peak_bytes: list[float]


@dataclass(frozen=True)
class MemoryChart:
    """Memory by device, row by row."""

    title: str
    subtitle: str
    bars: list[MemoryBar]
    caption: str


@dataclass(frozen=True)
class SchedulePoint:
    """One schedule; `live_micro_batches` is the most whose activations a device held."""

    label: str
    measured: Point
    simulated_ms: float | None
    closed_form_ms: float | None
    live_micro_batches: float | None


@dataclass(frozen=True)
class Schedules:
    """Pipeline schedules of one workload, slowest first."""

    title: str
    subtitle: str
    error_label: str
    points: list[SchedulePoint]
    caption: str


@dataclass(frozen=True)
class BandwidthPoint:
    """Gigabytes a second at a message size in bytes."""

    size: float
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class BandwidthSeries:
    """One collective over the message size, ascending."""

    collective: str
    label: str
    points: list[BandwidthPoint]


@dataclass(frozen=True)
class Bandwidth:
    """Bus bandwidth by message size."""

    title: str
    subtitle: str
    series: list[BandwidthSeries]
    caption: str


@dataclass(frozen=True)
class TrendRun:
    """A run of a row over time: its value, and of times every launch and perhaps an interval."""

    date: str
    commit: str
    value: float
    launches: list[float]
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class TrendLevel:
    """The mean of the runs between two change points, at positions beside the outermost ones."""

    start: float
    end: float
    mean: float


@dataclass(frozen=True)
class TrendChange:
    """A change point: between which runs it stands, and in words what changed and where to look."""

    position: float
    worse: bool
    words: str
    commits: str
    before: str
    after: str
    p_value: str


@dataclass(frozen=True)
class TrendChart:
    """A row's metric over its runs, all in `unit`, oldest first; positions count the runs."""

    title: str
    subtitle: str
    axis: str
    unit: str
    runs: list[TrendRun]
    levels: list[TrendLevel]
    changes: list[TrendChange]
    footnote: str
    caption: str

    def ticks(self, most: int) -> dict[int, str]:
        """The dates at evenly spaced positions, at most so many."""
        step = max(1, -(-len(self.runs) // most))
        return {at: self.runs[at].date for at in range(0, len(self.runs), step)}

    def late(self, change: TrendChange) -> bool:
        """True where the words on a change point have their room at its left."""
        return change.position > 0.5 * len(self.runs)


Chart = (
    BarChart
    | SplitSizeTradeoff
    | Gantt
    | Breakdown
    | Scaling
    | MemoryChart
    | Schedules
    | Bandwidth
    | TrendChart
)


@dataclass
class ChartSet:
    """Charts by file name, in order, and those left out with the reason."""

    charts: dict[str, Chart] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, made: dict[str, Chart | str | None]) -> ChartSet:
        """From charts, the reasons of those left out, and None where there is none to speak of."""
        return cls(
            {name: chart for name, chart in made.items() if not isinstance(chart, str | None)},
            {name: reason for name, reason in made.items() if isinstance(reason, str)},
        )
