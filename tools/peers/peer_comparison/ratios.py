"""Ratios of paired samples with a sign-test interval, and what they say about an aim.

A ratio of a round pairs the two contenders' launches of that round, so that drift of the machine
cancels. The statement is about the median of those ratios, by the interval that reports give
(stratagem_reports.analysis.statistics): nine rounds give 99.6% with their
minimum and maximum, six 96.9%, fewer cannot reach 95%.

Where a side has several candidates, the first rounds choose the best and only the later ones judge
it: who is best partly by luck is lucky in the rounds that chose it, not in others.

Verdicts hold together: of n ratios with an aim, each is judged by an interval that covers
1 - 0.05 / n (Bonferroni), so that with 95% none of them is wrong.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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


def confidence_of_each(verdicts: int) -> float:
    """Return how much each of so many intervals covers for all to hold together with 95%."""
    return 1 - (1 - CONFIDENCE) / max(verdicts, 1)


def judge(
    interval: Interval, aim: float, at_most: bool = False, confidence: float = CONFIDENCE
) -> Verdict:
    """Return on which side of the aim the interval lies; it cannot tell if it covers too little."""
    if interval.coverage >= confidence:
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


# How much slower than the best of its side a candidate may be after so many rounds of choosing and
# still be launched again.
SLACK = {1: 0.30, 2: 0.15}


def _still_in(side: Sequence[str], times: StepTimes, rounds: int, slack: float) -> set[str]:
    """Return the candidates of a side that are the best, or slower by at most `slack`."""
    winner = best(side, times, rounds)
    if winner is None:
        return set()
    medians = {
        name: statistics.median(value for index, value in times[name].items() if index <= rounds)
        for name in side
        if any(index <= rounds for index in times.get(name, ()))
    }
    limit = (1 + slack) * medians.get(winner, 0)
    return {winner} | {name for name, median in medians.items() if median < limit}


def finalists(
    names: Sequence[str],
    ratios: Sequence[Ratio],
    times: StepTimes,
    rounds: int,
    slack: float = 0,
) -> list[str]:
    """Return the names that go on after so many rounds of choosing, in their order.

    Contenders that are not candidates go on, and so do the best of each side and the candidates that
    are slower than the best of one of their sides by at most `slack`, a fraction.
    """
    sides = [side for ratio in ratios for side in (ratio.slower, ratio.faster)]
    kept = {name for side in sides for name in _still_in(side, times, rounds, slack)}
    losers = {name for side in sides for name in side} - kept
    return [name for name in names if name not in losers]


def answers(
    ratios: Sequence[Ratio], times: StepTimes, selection: int, wrong: Sequence[str] = ()
) -> list[Answer]:
    """Return the answers to the ratios that were measured; their verdicts hold together.

    Contenders that were `wrong` have no times, and have been candidates.
    """
    found = [each for ratio in ratios if (each := answer(ratio, times, selection, wrong))]
    confidence = confidence_of_each(sum(each.ratio.aim is not None for each in found))
    return [with_verdict(each, confidence) for each in found]


def with_verdict(found: Answer, confidence: float = CONFIDENCE) -> Answer:
    """Return the answer with its verdict, by an interval that covers so much."""
    aim = found.ratio.aim
    if aim is None:
        return found
    interval = interval_of_median(list(found.per_round), confidence)
    return replace(found, verdict=judge(interval, aim, found.ratio.at_most, confidence))


def answer(
    ratio: Ratio, times: StepTimes, selection: int, wrong: Sequence[str] = ()
) -> Answer | None:
    """Return the numbers of `ratio`, or None when its sides share no round that may judge.

    With several candidates on a side those are the rounds after `selection`, otherwise all. The
    answer has no verdict: see with_verdict().
    """
    slower, faster = (best(side, times, selection) for side in (ratio.slower, ratio.faster))
    if slower is None or faster is None:
        return None
    sides = (ratio.slower, ratio.faster)
    chosen = any(sum(name in times or name in wrong for name in side) > 1 for side in sides)
    common = sorted(times[slower].keys() & times[faster].keys())
    judging = [index for index in common if index > selection] if chosen else common
    if not judging:
        return None
    per_round = tuple(times[slower][index] / times[faster][index] for index in judging)
    interval = interval_of_median(list(per_round))
    return Answer(ratio, slower, faster, per_round, statistics.median(per_round), interval, None)
