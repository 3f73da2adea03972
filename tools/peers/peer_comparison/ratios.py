"""Ratios of paired samples with a sign-test interval, and what they say about a target.

A ratio of a round pairs the two contenders' launches of that round, so that drift of the machine
cancels. The statement is about the median of those ratios, by the interval that reports give
(stratagem_reports.analysis.statistics): twelve rounds reach 96.1%, six give 96.9% with their
minimum and maximum, fewer cannot reach 95%.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from stratagem_reports.analysis.statistics import CONFIDENCE, interval_of_median
from stratagem_reports.results.row_summary import Interval


class Verdict(Enum):
    """What the samples say about a target."""

    MET = "met"
    NOT_MET = "not met"
    CANNOT_TELL = "cannot tell"


class Kind(Enum):
    """How a target is to be read: see `Target.verdict`."""

    AT_LEAST = "at least"
    REACHES = "reaches"
    WITHIN = "within"


@dataclass(frozen=True)
class Target:
    """What a ratio should be; `value` is a ratio, or for WITHIN the distance from 1."""

    kind: Kind
    value: float

    def __str__(self) -> str:
        if self.kind is Kind.WITHIN:
            return f"within {self.value:.0%}"
        return f"{self.kind.value} {self.value:.2f}"

    def verdict(self, interval: Interval) -> Verdict:
        """Judges by the interval; one that covers too little tells nothing.

        AT_LEAST and WITHIN: met when all of the interval fits, not met when none of it does.
        REACHES: met when its upper end does, else not.
        """
        if interval.coverage < CONFIDENCE:
            return Verdict.CANNOT_TELL
        if self.kind is Kind.REACHES:
            return Verdict.MET if interval.high >= self.value else Verdict.NOT_MET
        lowest, highest = self.value, math.inf
        if self.kind is Kind.WITHIN:
            lowest, highest = 1 - self.value, 1 + self.value
        if lowest <= interval.low and interval.high <= highest:
            return Verdict.MET
        outside = interval.high < lowest or interval.low > highest
        return Verdict.NOT_MET if outside else Verdict.CANNOT_TELL


@dataclass(frozen=True)
class Ratio:
    """A named question: how many times as long as `faster`'s do `slower`'s steps take.

    Each side lists candidates, of which the one with the lowest median over all rounds speaks.
    """

    name: str
    slower: tuple[str, ...]
    faster: tuple[str, ...]
    target: Target | None = None


@dataclass(frozen=True)
class Answer:
    """A ratio with its numbers; `verdict` is None where there is no target."""

    ratio: Ratio
    slower: str
    faster: str
    per_round: tuple[float, ...]
    median: float
    interval: Interval
    verdict: Verdict | None


# Of each contender, by round: the step time of its launch of that round.
StepTimes = Mapping[str, Mapping[int, float]]


def best(candidates: Sequence[str], times: StepTimes) -> str | None:
    """Return the candidate with the lowest median, among those measured in the most rounds."""
    measured = [name for name in candidates if times.get(name)]
    if not measured:
        return None
    rounds = max(len(times[name]) for name in measured)
    complete = [name for name in measured if len(times[name]) == rounds]
    return min(complete, key=lambda name: statistics.median(times[name].values()))


def answer(ratio: Ratio, times: StepTimes) -> Answer | None:
    """Return the numbers of `ratio`, or None when a side was not measured in a common round."""
    slower, faster = best(ratio.slower, times), best(ratio.faster, times)
    if slower is None or faster is None:
        return None
    common = sorted(times[slower].keys() & times[faster].keys())
    if not common:
        return None
    per_round = tuple(times[slower][index] / times[faster][index] for index in common)
    interval = interval_of_median(list(per_round))
    verdict = ratio.target.verdict(interval) if ratio.target else None
    median = statistics.median(per_round)
    return Answer(ratio, slower, faster, per_round, median, interval, verdict)
