"""Mann-Whitney test of two files: the launches of one side against those of the other.

Launches are not paired. The test is exact where no two times are equal: no assumption on the
distribution, only that both would be the same if nothing had changed. Its inversion gives the
interval (Hodges and Lehmann 1963): the shifts of the logarithm that the test does not refuse. The
estimate is the median of all ratios of a head launch over a base launch.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import mannwhitneyu


@dataclass(frozen=True)
class Change:
    """Head over base: above 1 is slower. `p_value` is two-sided, of there being no change.

    `low` and `high` are None where there are too few values for an interval of that confidence.
    """

    ratio: float
    low: float | None
    high: float | None
    p_value: float


def compare_launches(base_ms: list[float], head_ms: list[float], confidence: float) -> Change:
    """The change between two sets of launches, of at least one each."""
    base, head = np.log(base_ms), np.log(head_ms)
    shifts = np.sort((head[:, None] - base[None, :]).ravel())
    low, high = _interval(base, head, shifts, 1 - confidence)
    return Change(
        ratio=math.exp(float(np.median(shifts))),
        low=math.exp(low),
        high=math.exp(high),
        p_value=_p_value(base, head),
    )


def smallest_p_value(base: int, head: int) -> float:
    """What the test gives when every launch of one side is beyond every one of the other."""
    return 2.0 / math.comb(base + head, head)


def launches_needed(level: float) -> int:
    """How many launches a side must have before the test can reach the level at all."""
    count = 1
    while smallest_p_value(count, count) > level:
        count += 1
    return count


def _interval(
    base: np.ndarray, head: np.ndarray, shifts: np.ndarray, level: float
) -> tuple[float, float]:
    """The outermost shifts that the test does not refuse at the level; all, where it never does."""
    refused = 0
    beyond = (len(shifts) - 1) // 2
    while refused < beyond:  # bisection: the p-value rises towards the middle
        tried = (refused + beyond + 1) // 2
        between = (shifts[tried - 1] + shifts[tried]) / 2
        if _p_value(base, head - between) > level:
            beyond = tried - 1
        else:
            refused = tried
    return float(shifts[refused]), float(shifts[len(shifts) - 1 - refused])


def _p_value(base: np.ndarray, head: np.ndarray) -> float:
    ties = len(np.unique(np.concatenate([base, head]))) < len(base) + len(head)
    method = "asymptotic" if ties else "exact"
    value = float(mannwhitneyu(head, base, alternative="two-sided", method=method).pvalue)
    return 1.0 if math.isnan(value) else min(1.0, value)  # all equal: no rank differs
