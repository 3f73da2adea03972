"""Group-sequential test over interleaved rounds: when to look, and what each look may spend.

A round launches both builds once, one after the other; its ratio pairs them, so that drift of the
machine cancels. Which build goes first is drawn in every round, so that log ratios are symmetric
about zero where nothing has changed, and Wilcoxon's signed-rank test (1945) is exact. Its inversion
gives estimate and interval (Hodges and Lehmann 1963; Tukey's Walsh averages), which hold where the
ratios are symmetric about another value.

Looking at the data several times and stopping when it looks clear would raise false alarms far
above the level of one test. So the looks are planned before the first round, at fixed fractions of
the rounds that fit the budget, and each spends a part of the level: alpha t^3 in all by the
fraction t (the power family of Kim and DeMets 1987). The parts add up to alpha, so the chance of
any false alarm at any look, over all rows (Holm at each look), is at most alpha.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import rankdata

from .mann_whitney import Change
from .verdicts import Verdict, holm, judge

FRACTIONS = (0.5, 0.75, 1.0)
_EXPONENT = 3


@dataclass(frozen=True)
class Plan:
    """After how many rounds to look, and the level that each look may spend over all rows."""

    looks: tuple[int, ...]
    levels: tuple[float, ...]

    @property
    def rounds(self) -> int:
        """The most rounds that there will be."""
        return self.looks[-1]


@dataclass(frozen=True)
class Decision:
    """What is known of a row, and after how many rounds it was decided."""

    verdict: Verdict
    change: Change
    adjusted_p: float
    rounds: int

    @property
    def clear(self) -> bool:
        """True unless nothing can be told."""
        return self.verdict is not Verdict.CANNOT_TELL


def make_plan(rounds: int, alpha: float) -> Plan:
    """The plan for at most so many rounds, at least one."""
    looks = sorted({max(1, round(rounds * fraction)) for fraction in FRACTIONS})
    spent = [alpha * (look / rounds) ** _EXPONENT for look in looks]
    levels = [after - before for before, after in zip([0.0, *spent], spent, strict=False)]
    return Plan(tuple(looks), tuple(levels))


def cut_short(plan: Plan, rounds: int) -> Plan:
    """The plan when the budget ends early: the last look, now, spends all that is left.

    That the budget ended depends on the clock and not on the ratios, so the levels still hold.
    """
    looks = [look for look in plan.looks if look < rounds]
    levels = list(plan.levels[: len(looks)])
    return Plan((*looks, rounds), (*levels, sum(plan.levels) - sum(levels)))


def rounds_needed(alpha: float, rows: int) -> int:
    """The fewest rounds with which the last look of a plan can call anything slower at all."""
    rounds = 1
    while 2.0 * 0.5**rounds > make_plan(rounds, alpha).levels[-1] / rows:
        rounds += 1
    return rounds


def decide(
    log_ratios: Mapping[str, Sequence[float]], level: float, threshold: float
) -> dict[str, Decision]:
    """Every row's verdict at one look that may spend `level`.

    `log_ratios` holds the rows' log(head / base), round by round.
    """
    confidence = 1 - level / max(1, len(log_ratios))
    changes = [_change(list(values), confidence) for values in log_ratios.values()]
    adjusted = holm([change.p_value for change in changes])
    return {
        name: Decision(judge(change, value, level, threshold), change, value, len(log_ratios[name]))
        for name, change, value in zip(log_ratios, changes, adjusted, strict=True)
    }


def keep_clear(before: Mapping[str, Decision], now: Mapping[str, Decision]) -> dict[str, Decision]:
    """The decisions after a look: what was clear stays."""
    return {
        name: before[name] if name in before and before[name].clear else decision
        for name, decision in now.items()
    }


def all_clear(decisions: Mapping[str, Decision]) -> bool:
    """True when every row is decided, so that there is no need to go on."""
    return all(decision.clear for decision in decisions.values())


def _change(values: list[float], confidence: float) -> Change:
    """The median of all averages of two rounds, with those that the test does not refuse."""
    first, second = np.triu_indices(len(values))
    averages = np.sort((np.take(values, first) + np.take(values, second)) / 2)
    refused = _ranks_refused(len(values), 1 - confidence)
    return Change(
        ratio=math.exp(float(np.median(averages))),
        low=None if refused is None else math.exp(averages[refused]),
        high=None if refused is None else math.exp(averages[-1 - refused]),
        p_value=_p_value(values),
    )


def _p_value(values: Sequence[float]) -> float:
    """Two-sided and exact, also with ties; rounds without any difference are left out."""
    different = np.array([value for value in values if value != 0.0])
    doubled = np.rint(2 * rankdata(np.abs(different))).astype(int)  # ties have half ranks
    at_most = np.cumsum(_rank_sums(tuple(sorted(doubled))))
    slower = int(doubled[different > 0].sum())
    return min(1.0, 2.0 * float(at_most[min(slower, int(doubled.sum()) - slower)]))


@lru_cache(maxsize=4096)
def _ranks_refused(count: int, level: float) -> int | None:
    """The greatest sum of ranks that the test refuses; None where it refuses none."""
    at_most = np.cumsum(_rank_sums(tuple(range(1, count + 1))))
    refused = int(np.searchsorted(2.0 * at_most, level, side="right"))
    return refused - 1 if refused > 0 else None


@lru_cache(maxsize=4096)
def _rank_sums(ranks: tuple[int, ...]) -> np.ndarray:
    """Each sum's probability when every rank counts with the toss of a coin."""
    sums = np.ones(1)
    for rank in ranks:
        counted, left_out = np.zeros((2, len(sums) + rank))
        counted[rank:], left_out[: len(sums)] = sums, sums
        sums = (counted + left_out) / 2
    return sums
