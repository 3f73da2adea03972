"""Ratios of paired samples with a sign-test interval, and what they say about an aim.

A ratio of a round pairs the two contenders' launches of that round, so that drift of the machine
cancels. The statement is about the median of those ratios, by the interval that reports give
(stratagem_reports.analysis.statistics): twelve rounds reach 96.1%, six give 96.9% with their
minimum and maximum, fewer cannot reach 95%.

Where a side has several candidates, the first rounds choose the best and only the later ones judge
it: who is best partly by luck is lucky in the rounds that chose it, not in others.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from stratagem_reports.analysis.statistics import CONFIDENCE, interval_of_median
from stratagem_reports.results.row_summary import Interval


class Verdict(Enum):
    """What the samples say about an aim."""

    AT_LEAST = "at least"
    BELOW = "below"
    AT_MOST = "at most"
    ABOVE = "above"
    CANNOT_TELL = "cannot tell"


def judge(interval: Interval, aim: float, at_most: bool = False) -> Verdict:
    """Says on which side of the aim the interval lies; one that covers too little tells nothing."""
    if interval.coverage >= CONFIDENCE:
        if at_most and interval.high <= aim:
            return Verdict.AT_MOST
        if at_most and interval.low > aim:
            return Verdict.ABOVE
        if not at_most and interval.low >= aim:
            return Verdict.AT_LEAST
        if not at_most and interval.high < aim:
            return Verdict.BELOW
    return Verdict.CANNOT_TELL


@dataclass(frozen=True)
class Ratio:
    """A named question: how many times as long as `faster`'s do `slower`'s steps take.

    Each side lists candidates, of which the best speaks. `aim` is what it should be at least, or
    `at_most`: where a way that holds less may cost so much and no more. Over a cable it is that of
    `cable_aims` for the cable's rate.
    """

    name: str
    slower: tuple[str, ...]
    faster: tuple[str, ...]
    aim: float | None = None
    at_most: bool = False
    cable_aims: Mapping[str, float] = field(default_factory=dict)

    @property
    def aim_text(self) -> str:
        """The aim in words."""
        if self.aim is None:
            return "no aim"
        return f"at {'most' if self.at_most else 'least'} {self.aim:.2f}"


@dataclass(frozen=True)
class Answer:
    """A ratio with its numbers, of the rounds that judge it; no aim, no verdict."""

    ratio: Ratio
    slower: str
    faster: str
    per_round: tuple[float, ...]
    median: float
    interval: Interval
    verdict: Verdict | None


# Of each contender, by round: the step time of its launch of that round.
StepTimes = Mapping[str, Mapping[int, float]]


def best(candidates: Sequence[str], times: StepTimes, selection: int) -> str | None:
    """Return the candidate with the lowest median over the rounds up to `selection`.

    Among those measured in the most of them; a single candidate needs no such round.
    """
    measured = [name for name in candidates if times.get(name)]
    if len(measured) < 2:
        return measured[0] if measured else None
    chosen_by = {
        name: [value for index, value in times[name].items() if index <= selection]
        for name in measured
    }
    rounds = max(len(values) for values in chosen_by.values())
    complete = [name for name in measured if rounds and len(chosen_by[name]) == rounds]
    return min(complete, key=lambda name: statistics.median(chosen_by[name]), default=None)


def finalists(
    names: Sequence[str], ratios: Sequence[Ratio], times: StepTimes, selection: int
) -> list[str]:
    """Return the names without those that were candidates and are the best of no side."""
    sides = [side for ratio in ratios for side in (ratio.slower, ratio.faster)]
    winners = {best(side, times, selection) for side in sides}
    losers = {name for side in sides for name in side} - winners
    return [name for name in names if name not in losers]


def answer(ratio: Ratio, times: StepTimes, selection: int) -> Answer | None:
    """Return the numbers of `ratio`, or None when its sides share no round that may judge.

    With several candidates on a side those are the rounds after `selection`, otherwise all.
    """
    slower, faster = (best(side, times, selection) for side in (ratio.slower, ratio.faster))
    if slower is None or faster is None:
        return None
    sides = (ratio.slower, ratio.faster)
    chosen = any(sum(name in times for name in side) > 1 for side in sides)
    common = sorted(times[slower].keys() & times[faster].keys())
    judging = [index for index in common if index > selection] if chosen else common
    if not judging:
        return None
    per_round = tuple(times[slower][index] / times[faster][index] for index in judging)
    interval = interval_of_median(list(per_round))
    verdict = None if ratio.aim is None else judge(interval, ratio.aim, ratio.at_most)
    median = statistics.median(per_round)
    return Answer(ratio, slower, faster, per_round, median, interval, verdict)
