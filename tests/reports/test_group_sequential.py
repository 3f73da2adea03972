"""The decision over interleaved rounds: the plan's levels, the looks, and what they decide."""

import itertools

import numpy as np
import pytest
from replayed import replay
from stratagem_reports.comparison.group_sequential import (
    cut_short,
    decide,
    make_plan,
    rounds_needed,
)
from stratagem_reports.comparison.verdicts import Verdict

ALPHA = 0.03
THRESHOLD = 0.01
# The greatest signed-rank sum that a two-sided test at 5% refuses, for 6 to 25 rounds: the table of
# the University of York's Department of Mathematics, and sequence A226330 of the OEIS.
REFUSED = (0, 2, 3, 5, 8, 10, 13, 17, 21, 25, 29, 34, 40, 46, 52, 58, 65, 73, 81, 89)


def ratios(shift, count, spread=0.002):
    """Log ratios around a shift, alternating so that their median is the shift."""
    return [np.log1p(shift) + spread * ((index % 5) - 2) for index in range(count)]


@pytest.mark.parametrize("rounds", [1, 2, 3, 5, 30, 31])
def test_levels_add_up_to_alpha_and_looks_rise(rounds):
    plan = make_plan(rounds, ALPHA)
    assert plan.rounds == rounds
    assert list(plan.looks) == sorted(set(plan.looks))
    assert sum(plan.levels) == pytest.approx(ALPHA)
    assert min(plan.levels) > 0


@pytest.mark.parametrize("rounds", [1, 15, 16, 22, 29])
def test_a_budget_that_ends_early_spends_what_is_left(rounds):
    plan = cut_short(make_plan(30, ALPHA), rounds)
    assert plan.rounds == rounds
    assert len(plan.looks) == len(plan.levels)
    assert sum(plan.levels) == pytest.approx(ALPHA)


def test_a_clear_slowdown_is_found_at_the_first_look_and_stays():
    decisions = replay({"a": ratios(0.05, 30), "b": ratios(0.0, 30)}, make_plan(30, ALPHA), THRESHOLD)
    assert decisions["a"].verdict is Verdict.SLOWER
    assert decisions["a"].rounds == 15
    assert decisions["b"].verdict is Verdict.SAME
    assert decisions["a"].change.ratio == pytest.approx(1.05)


def test_what_is_clear_early_is_not_taken_back():
    values = ratios(-0.05, 15) + ratios(0.2, 15)
    decisions = replay({"a": values}, make_plan(30, ALPHA), THRESHOLD)
    assert decisions["a"].verdict is Verdict.FASTER


def test_below_the_threshold_is_not_slower_however_sure():
    decisions = replay({"a": ratios(0.008, 60, 0.0001)}, make_plan(60, ALPHA), THRESHOLD)
    assert decisions["a"].verdict is Verdict.SAME
    assert decisions["a"].adjusted_p < 1e-4


def test_too_few_rounds_never_decide():
    needed = rounds_needed(ALPHA, 3)
    rows = {name: ratios(0.3, needed - 1) for name in "abc"}
    decisions = replay(rows, make_plan(needed - 1, ALPHA), THRESHOLD)
    assert {item.verdict for item in decisions.values()} == {Verdict.CANNOT_TELL}
    rows = {name: ratios(0.3, needed) for name in "abc"}
    decisions = replay(rows, make_plan(needed, ALPHA), THRESHOLD)
    assert {item.verdict for item in decisions.values()} == {Verdict.SLOWER}


def test_more_rows_need_more_evidence():
    values = ratios(0.05, 7, 0.0001)
    assert decide({"a": values}, 0.02, THRESHOLD)["a"].verdict is Verdict.SLOWER
    many = {"a": values} | {str(index): ratios(0.0, 7, 0.05) for index in range(20)}
    assert decide(many, 0.02, THRESHOLD)["a"].verdict is Verdict.CANNOT_TELL


def test_rounds_without_a_difference_say_nothing():
    assert decide({"a": [0.0] * 12}, ALPHA, THRESHOLD)["a"].change.p_value == 1.0
    assert decide({"a": [0.0] * 12}, ALPHA, THRESHOLD)["a"].verdict is Verdict.SAME


@pytest.mark.parametrize(("rounds", "refused"), enumerate(REFUSED, start=6))
def test_the_interval_leaves_out_the_averages_that_a_published_table_refuses(rounds, refused):
    values = np.random.default_rng(rounds).normal(0, 0.01, rounds)
    averages = sorted(
        (one + two) / 2 for one, two in itertools.combinations_with_replacement(values, 2)
    )
    change = decide({"a": list(values)}, 0.05, THRESHOLD)["a"].change
    assert np.log(change.low) == pytest.approx(averages[refused])
    assert np.log(change.high) == pytest.approx(averages[-1 - refused])


def test_five_rounds_have_no_interval_of_95_percent():
    change = decide({"a": ratios(0.05, 5)}, 0.05, THRESHOLD)["a"].change
    assert change.low is None and change.high is None


def test_false_alarms_of_pure_noise_stay_below_alpha():
    generator = np.random.default_rng(7)
    plan = make_plan(24, ALPHA)
    alarms = 0
    for _ in range(300):
        rows = {name: list(generator.normal(0, 0.04, 24)) for name in "abc"}
        verdicts = {item.verdict for item in replay(rows, plan, THRESHOLD).values()}
        alarms += bool(verdicts & {Verdict.SLOWER, Verdict.FASTER})
    assert alarms <= 300 * ALPHA
