"""Every number that the charts and the report derive from samples.

A row's samples are all timed steps of all its repetitions. Under the tutorial's protocol a sample
is a repetition: the whole training call, the sum of its step_ms.

Interval of the median (no assumption on the distribution, independent samples): with the n samples
sorted as x(1) <= ... <= x(n), [x(k), x(n+1-k)] covers the median with probability

    coverage(k) = 1 - 2 P(Binomial(n, 1/2) <= k - 1)

and k is the largest rank with coverage >= 95%. Six samples give k = 1, minimum to maximum, 96.9%;
fewer cannot reach 95%, and minimum to maximum is given with the coverage it really has,
1 - 2^(1-n). The samples come from one run, so the interval says nothing about other runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import binom

from .load import Row

CONFIDENCE = 0.95
WIDE_SPREAD = 0.05


@dataclass(frozen=True)
class Interval:
    """An interval of the median in milliseconds; `coverage` is its exact probability."""

    low: float
    high: float
    coverage: float


@dataclass(frozen=True)
class Summary:
    """A row's samples in milliseconds and what follows from them."""

    samples: list[float]
    median: float
    interval: Interval
    mean: float
    deviation: float

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.samples)

    @property
    def spread(self) -> float:
        """(p90 - p10) / median: between launches and within them."""
        low, high = np.quantile(self.samples, (0.1, 0.9))
        return float((high - low) / self.median)

    @property
    def outliers(self) -> int:
        """How many of the samples are outliers; they count like the others."""
        return len(outlying(self.samples))

    @property
    def wide(self) -> bool:
        """True where the samples scatter more than a claim of a few per cent can bear."""
        return self.count > 1 and self.spread > WIDE_SPREAD


def samples_ms(row: Row) -> list[float]:
    """The row's samples: every step, or every repetition's sum under the tutorial's protocol."""
    if row.tutorial:
        return [sum(repetition.step_ms) for repetition in row.repetitions]
    return [step for repetition in row.repetitions for step in repetition.step_ms]


def outlying(samples: list[float]) -> list[int]:
    """The places of the samples beyond Tukey's fences: 1.5 interquartile ranges off the quartiles.

    A quartile between two samples is interpolated linearly, as numpy.quantile does.
    """
    if not samples:
        return []
    first, third = np.quantile(samples, (0.25, 0.75))
    reach = 1.5 * (third - first)
    low, high = first - reach, third + reach
    return [index for index, value in enumerate(samples) if not low <= value <= high]


@lru_cache(maxsize=4096)
def coverage(count: int, rank: int) -> float:
    """Probability that [x(rank), x(count + 1 - rank)] holds the median; ranks count from 1."""
    return float(max(0.0, 1.0 - 2.0 * binom.cdf(rank - 1, count, 0.5)))


def interval_of_median(samples: list[float], confidence: float = CONFIDENCE) -> Interval:
    """The narrowest symmetric order-statistic interval with at least the confidence asked for."""
    ordered = sorted(samples)
    rank = 1
    while 2 * (rank + 1) <= len(ordered) and coverage(len(ordered), rank + 1) >= confidence:
        rank += 1
    return Interval(ordered[rank - 1], ordered[-rank], coverage(len(ordered), rank))


def summarise(samples: list[float]) -> Summary:
    """Median with its interval, mean, and standard deviation.

    The deviation is sqrt(sum((x - mean)^2) / n), with n and not n - 1, as numpy.std and with it the
    tutorial compute it, so that its bars can be compared with the tutorial's.
    """
    return Summary(
        samples=list(samples),
        median=float(np.median(samples)),
        interval=interval_of_median(samples),
        mean=float(np.mean(samples)),
        deviation=float(np.std(samples)),
    )


def distinguishable(first: Summary, second: Summary) -> bool:
    """True when the two can be ranked: the intervals do not meet, and each is one."""
    if min(first.count, second.count) < 2:
        return False
    low, high = sorted((first.interval, second.interval), key=lambda interval: interval.low)
    return low.high < high.low


@dataclass(frozen=True)
class Ratio:
    """A ratio of two medians with the extremes that the two intervals allow."""

    value: float
    low: float
    high: float


def speed_up(baseline: Summary, candidate: Summary) -> Ratio:
    """How many times faster the candidate is: baseline's time over the candidate's.

    The extremes divide opposite ends of the intervals, low / high to high / low: wider than a 95%
    interval of the ratio, never narrower.
    """
    return Ratio(
        baseline.median / candidate.median,
        baseline.interval.low / candidate.interval.high,
        baseline.interval.high / candidate.interval.low,
    )


@dataclass(frozen=True)
class PredictionError:
    """Relative errors (predicted - measured median) / measured median over rows."""

    mean_absolute: float
    worst: float
    worst_row: Row


def prediction_error(pairs: list[tuple[Row, float, float]]) -> PredictionError | None:
    """Errors over (row, predicted_ms, measured_ms); None when there are none."""
    errors = [((predicted - measured) / measured, row) for row, predicted, measured in pairs]
    if not errors:
        return None
    worst, row = max(errors, key=lambda item: abs(item[0]))
    return PredictionError(float(np.mean([abs(value) for value, _ in errors])), worst, row)


def median_or_none(values: list[float | None]) -> float | None:
    """The median of what is there, or None."""
    present = [value for value in values if value is not None]
    return float(np.median(present)) if present else None


def describe_interval(counts: list[int]) -> str:
    """What an interval over so many samples is, for a chart's legend; one count or several."""
    low, high = min(counts), max(counts)
    samples = f"{low}" if low == high else f"{low} to {high}"
    if high < 2:
        return "one sample a row: no interval"
    if low < 6:
        actual = 100.0 * coverage(low, 1)
        return (
            f"minimum to maximum, within one run ({samples} samples: "
            f"covers the median with {actual:.1f}%, short of 95%)"
        )
    exact = 100.0 * interval_of_median(list(range(low))).coverage
    exact_text = f"{exact:.1f}%, " if low == high else ""
    return f"95% interval of the median, within one run ({exact_text}{samples} samples)"


def describe_deviation(counts: list[int]) -> str:
    """What the error bars are under the tutorial's protocol."""
    low, high = min(counts), max(counts)
    return f"standard deviation over {low if low == high else f'{low} to {high}'} repetitions"
