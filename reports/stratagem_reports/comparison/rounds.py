"""What interleaved rounds have measured so far, and the ratios that they give."""

import math
from dataclasses import dataclass, field

import numpy as np

from ..results.load import Results
from .group_sequential import Decision, Plan
from .result_set import common_units, join, launch_values
from .verdicts import check_machines


@dataclass
class Rounds:
    """Results by side, round by round, and what was decided from them."""

    base: list[list[Results]] = field(default_factory=list)  # [round][row]
    head: list[list[Results]] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)  # of both builds, to be launched one by one
    turns: dict[str, int] = field(default_factory=dict)  # pairs of steps in a round, by row
    decisions: dict[str, Decision] = field(default_factory=dict)
    plan: Plan | None = None
    interrupted: bool = False

    @property
    def count(self) -> int:
        """How many rounds are complete."""
        return len(self.head)

    def check_comparable(self) -> None:
        """InputError where the first round's machines differ, or its units of a metric."""
        base, head = join("base", self.base[0]), join("head", self.head[0])
        check_machines(base, head, False)
        common_units(base, head)

    def compare_nothing(self, prepared: dict[str, Results]) -> None:
        """Takes the unmeasured results as the only round, of builds without a row in common."""
        self.base, self.head = [[prepared["base"]]], [[prepared["head"]]]
        self.plan = Plan((1,), (0.0,))

    def log_ratios(self) -> dict[str, list[float]]:
        """log(head / base), round by round, of the rows that worked in every launch so far."""
        found: dict[str, list[float]] = {}
        for base, head in zip(self.base, self.head, strict=True):
            one, two = steps_of(base), steps_of(head)
            for name in sorted(one.keys() & two.keys()):
                value = _log_ratio(one[name], two[name], paired=name in self.turns)
                found.setdefault(name, []).append(value)
        return {name: values for name, values in found.items() if len(values) == self.count}


def steps_of(results: list[Results]) -> dict[str, list[float]]:
    """Each working row's steps in ms, in order; under the tutorial's protocol the whole launch."""
    return {
        row.name: launch_values(row) if row.tutorial else row.calm[0].step_ms
        for result in results
        for row in result.rows
        if row.error is None and row.repetitions
    }


def _log_ratio(base: list[float], head: list[float], paired: bool) -> float:
    """Of a round: the median over its pairs of steps, or that of the launches' medians."""
    if paired and len(base) == len(head):
        return float(np.median(np.log(head) - np.log(base)))
    return math.log(float(np.median(head)) / float(np.median(base)))
