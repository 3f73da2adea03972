"""The values that charts are drawn from: plain, in milliseconds, free of any drawing.

`chart_data` fills them from results; a renderer needs to know nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .load import Action

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


@dataclass
class ChartSet:
    """Charts by file name, in order, and those left out with the reason."""

    charts: dict[str, BarChart | SplitSizeTradeoff | Gantt | Breakdown] = field(
        default_factory=dict
    )
    left_out: dict[str, str] = field(default_factory=dict)
