"""Times of a row, the interval of a median, and what a row's summary says beside another's.

Interval of the median (no assumption on the distribution, independent samples): with the n samples
sorted as x(1) <= ... <= x(n), [x(k), x(n+1-k)] covers the median with probability

    coverage(k) = 1 - 2 P(Binomial(n, 1/2) <= k - 1)

and k is the largest rank with coverage >= 95%. Six samples give k = 1, minimum to maximum, 96.9%;
fewer cannot reach 95%, and minimum to maximum is given with the coverage it really has,
1 - 2^(1-n). The samples come from one run, so the interval says nothing about other runs.
"""

import math
from functools import lru_cache

import numpy as np

from ..results.load import Row
from ..results.row_summary import Interval, Ratio, Summary

CONFIDENCE = 0.95


def timed_steps_ms(row: Row) -> list[float]:
    """Every timed step of the launches that count, or every call of the tutorial's protocol."""
    if row.tutorial:
        return [sum(repetition.step_ms) for repetition in row.calm]
    return [step for repetition in row.calm for step in repetition.step_ms]


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
    return max(0.0, 1 - 2 * sum(math.comb(count, below) for below in range(rank)) / 2**count)


def interval_of_median(samples: list[float], confidence: float = CONFIDENCE) -> Interval:
    """The narrowest symmetric order-statistic interval with at least the confidence asked for."""
    ordered = sorted(samples)
    rank = 1
    while 2 * (rank + 1) <= len(ordered) and coverage(len(ordered), rank + 1) >= confidence:
        rank += 1
    return Interval(ordered[rank - 1], ordered[-rank], coverage(len(ordered), rank))


def distinguishable(first: Summary, second: Summary) -> bool:
    """True when the two can be ranked: rows of one workload whose summaries tell them apart."""
    return first.workload == second.workload and second.name not in first.cannot_tell


def rivals(row: Row, others: list[Row]) -> list[Row]:
    """Return the other rows that are not significantly different from the row."""
    return [
        other
        for other in others
        if other is not row and not distinguishable(row.summary, other.summary)
    ]


def speed_up(baseline: Summary, candidate: Summary) -> Ratio | None:
    """How many times as fast the candidate is, as its summary says; both of one workload.

    None where disturbed launches would decide it.
    """
    alone = Ratio(1.0, 1.0, 1.0, 1.0)
    return alone if baseline is candidate else candidate.ratios.get(baseline.name)


def median_or_none(values: list[float | None]) -> float | None:
    """The median of what is there, or None."""
    present = [value for value in values if value is not None]
    return float(np.median(present)) if present else None


def counter(row: Row, name: str) -> float | None:
    """A counter of the row, the median over the launches whose times count."""
    return median_or_none([item.counters.get(name) for item in row.calm])


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
