"""Ratios of paired samples with a sign-test interval, and their verdicts about an aim.

The ratio of a round pairs the two contenders' launches of that round, so that drift of the machine
cancels. The answer is the median of these ratios, with the interval that reports print
(stratagem_reports.analysis.statistics). The interval from the minimum to the maximum of nine rounds
covers 99.6%, of six rounds 96.9%. Fewer rounds cannot reach 95%.

If a side has several candidates, the first rounds choose the best, and only the later rounds judge
it. A candidate's luck in the rounds that chose it does not extend to the later rounds.

Verdicts hold together: each of n ratios with an aim is judged by an interval that covers
1 - 0.05 / n (Bonferroni), so that with 95% confidence none of them is wrong.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from stratagem_reports.analysis.statistics import CONFIDENCE, interval_of_median
from stratagem_reports.results.row_summary import Interval


class Verdict(Enum):
    """The position of a ratio relative to its aim."""

    AT_LEAST = "at least"
    BELOW = "below"
    AT_MOST = "at most"
    ABOVE = "above"
    CANNOT_TELL = "cannot tell"


def confidence_of_each(verdicts: int) -> float:
    """Return the coverage of each of `verdicts` intervals that hold together with 95%."""
    return 1 - (1 - CONFIDENCE) / max(verdicts, 1)


def judge(
    interval: Interval, aim: float, at_most: bool = False, confidence: float = CONFIDENCE
) -> Verdict:
    """Return the side of the aim on which the interval lies.

    Return CANNOT_TELL if it lies on both sides, or covers less than `confidence`.
    """
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
    """A named ratio: the step time of `slower` divided by the step time of `faster`.

    Each side lists candidates, and the best of them counts. The ratio should be at least `aim`.
    With `at_most` it should be at most `aim`, for a strategy that holds less memory at a cost. Over
    a cable the aim is the entry of `cable_aims` for the cable's rate.
    """

    name: str
    slower: tuple[str, ...]
    faster: tuple[str, ...]
    aim: float | None = None
    at_most: bool = False
    cable_aims: Mapping[str, float] = field(default_factory=dict)

    @property
    def aim_text(self) -> str:
        """Return the aim as text."""
        if self.aim is None:
            return "no aim"
        return f"at {'most' if self.at_most else 'least'} {self.aim:.2f}"


@dataclass(frozen=True)
class Answer:
    """A ratio with its numbers from the rounds that judge it; without an aim it has no verdict."""

    ratio: Ratio
    slower: str
    faster: str
    per_round: tuple[float, ...]
    median: float
    interval: Interval
    verdict: Verdict | None


# Maps a contender and a round to the step time of the contender's launch in that round.
StepTimes = Mapping[str, Mapping[int, float]]


def best(candidates: Sequence[str], times: StepTimes, selection: int) -> str | None:
    """Return the candidate with the lowest median over the rounds up to `selection`.

    Only candidates with the most of these rounds count. A single candidate needs no such round.
    Return None if no candidate was measured.
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


# Maps a number of rounds of choosing to a fraction. A candidate that is slower than the best of its
# side by less than this fraction is launched again.
SLACK = {1: 0.30, 2: 0.15}


def _still_in(side: Sequence[str], times: StepTimes, rounds: int, slack: float) -> set[str]:
    """Return the best candidate of a side, and those slower by less than the fraction `slack`."""
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
    """Return the names that continue after `rounds` rounds of choosing, in their order.

    Contenders that are not candidates continue. The best candidate of each side continues, and so
    do candidates that are slower than it by less than the fraction `slack`.
    """
    sides = [side for ratio in ratios for side in (ratio.slower, ratio.faster)]
    kept = {name for side in sides for name in _still_in(side, times, rounds, slack)}
    losers = {name for side in sides for name in side} - kept
    return [name for name in names if name not in losers]


def answers(
    ratios: Sequence[Ratio], times: StepTimes, selection: int, wrong: Sequence[str] = ()
) -> list[Answer]:
    """Return the answers to the ratios that were measured; their verdicts hold together.

    The contenders in `wrong` have no times, but count as candidates.
    """
    found = [each for ratio in ratios if (each := answer(ratio, times, selection, wrong))]
    confidence = confidence_of_each(sum(each.ratio.aim is not None for each in found))
    return [with_verdict(each, confidence) for each in found]


def with_verdict(found: Answer, confidence: float = CONFIDENCE) -> Answer:
    """Return the answer with its verdict, from an interval that covers `confidence`."""
    aim = found.ratio.aim
    if aim is None:
        return found
    interval = interval_of_median(list(found.per_round), confidence)
    return replace(found, verdict=judge(interval, aim, found.ratio.at_most, confidence))


def answer(
    ratio: Ratio, times: StepTimes, selection: int, wrong: Sequence[str] = ()
) -> Answer | None:
    """Return the answer to `ratio`, or None if its sides share no round that judges.

    With several candidates on a side the rounds after `selection` judge, otherwise all rounds. The
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
