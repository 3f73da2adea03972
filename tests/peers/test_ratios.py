import random

import pytest
from peer_comparison.ratios import (
    Interval,
    Ratio,
    Verdict,
    answer,
    answers,
    best,
    finalists,
    judge,
    with_verdict,
)


def by_round(*values):
    return dict(enumerate(values, start=1))


def test_a_ratio_pairs_launches_of_the_same_round():
    times = {"slow": {1: 3.0, 2: 8.0, 4: 5.0}, "fast": {1: 2.0, 2: 4.0, 3: 1.0}}
    found = answer(Ratio("r", ("slow",), ("fast",)), times, 0)
    assert found.per_round == (1.5, 2.0)
    assert found.median == 1.75
    assert found.verdict is None


def test_a_ratio_without_a_common_round_has_no_answer():
    ratio = Ratio("r", ("slow",), ("fast",))
    assert answer(ratio, {"slow": {1: 3.0}, "fast": {2: 2.0}}, 0) is None
    assert answer(ratio, {"slow": {1: 3.0}}, 0) is None


def test_best_is_the_lowest_median_not_the_lowest_sample():
    times = {"lucky": by_round(1, 9, 9), "steady": by_round(5, 5, 5)}
    assert best(["lucky", "steady"], times, 3) == "steady"


def test_rounds_that_judge_do_not_choose():
    times = {"early": by_round(5, 5, 9, 9), "late": by_round(6, 6, 1, 1)}
    assert best(["early", "late"], times, 2) == "early"


def test_best_leaves_out_who_was_measured_in_fewer_rounds():
    times = {"whole": by_round(5, 5, 5), "broken": by_round(1)}
    assert best(["broken", "whole"], times, 3) == "whole"
    assert best(["broken"], times, 3) == "broken"
    assert best(["absent"], times, 3) is None
    assert best(["broken", "whole"], times, 0) is None


def test_both_sides_choose_their_best_and_later_rounds_judge():
    times = {"a": by_round(6, 4), "b": by_round(7, 8), "c": by_round(3, 3), "d": by_round(2, 2)}
    found = answer(Ratio("r", ("a", "b"), ("c", "d")), times, 1)
    assert (found.slower, found.faster) == ("a", "d")
    assert found.per_round == (2.0,)
    assert answer(Ratio("r", ("a", "b"), ("d",)), times, 2) is None
    assert answer(Ratio("r", ("a",), ("d",)), times, 1).per_round == (3.0, 2.0)


def test_who_was_wrong_has_been_a_candidate():
    """The rounds that chose between two do not judge the one that is left."""
    times = {"left": by_round(2, 2, 2), "c": by_round(1, 1, 1)}
    ratio = Ratio("r", ("wrong", "left"), ("c",))
    assert answer(ratio, times, 2).per_round == (2.0, 2.0, 2.0)
    assert answer(ratio, times, 2, ["wrong"]).per_round == (2.0,)


def test_only_the_best_of_a_side_go_on():
    ratios = [Ratio("r", ("a", "b"), ("c",)), Ratio("s", ("b", "d"), ("c",))]
    times = {"a": by_round(1), "b": by_round(2), "c": by_round(3), "d": by_round(4)}
    assert finalists(["a", "b", "c", "d", "asked of nobody"], ratios, times, 1) == [
        "a", "b", "c", "asked of nobody",
    ]  # fmt: skip


def simulated_null(draw, candidates=24, rounds=12):
    """Step times of contenders that are all alike: a round's luck is each contender's own."""
    names = [f"candidate {index}" for index in range(candidates)]
    times = {name: by_round(*(draw.lognormvariate(0, 0.05) for _ in range(rounds)))
             for name in [*names, "ours"]}  # fmt: skip
    return Ratio("r", tuple(names), ("ours",), 1.0), times


def test_the_best_of_several_is_not_judged_by_the_rounds_that_chose_it():
    """A verdict of "below" is wrong here; an honest interval gives it in 1.6% of the tables."""
    draw = random.Random(1)
    tables, wrong_by_split, wrong_by_same = 400, 0, 0
    for _ in range(tables):
        ratio, times = simulated_null(draw)
        wrong_by_split += with_verdict(answer(ratio, times, 6)).verdict is Verdict.BELOW
        # The same choice, judged by the very rounds that made it.
        chosen = Ratio("r", (best(ratio.slower, times, 12),), ratio.faster, ratio.aim)
        wrong_by_same += with_verdict(answer(chosen, times, 12)).verdict is Verdict.BELOW
    assert wrong_by_split / tables < 0.03
    assert wrong_by_same / tables > 0.08


@pytest.mark.parametrize(
    ("aim", "low", "high", "verdict"),
    [
        (1.25, 1.25, 1.40, Verdict.AT_LEAST),
        (1.25, 1.24, 1.40, Verdict.CANNOT_TELL),
        (1.25, 1.10, 1.25, Verdict.CANNOT_TELL),
        (1.25, 1.10, 1.24, Verdict.BELOW),
        # An upper end that touches the aim is no success: noise alone gets there.
        (1.00, 0.50, 1.01, Verdict.CANNOT_TELL),
    ],
)
def test_verdict(aim, low, high, verdict):
    assert judge(Interval(low, high, 0.96), aim) is verdict


@pytest.mark.parametrize(
    ("aim", "low", "high", "verdict"),
    [
        (1.02, 0.90, 1.02, Verdict.AT_MOST),
        (1.02, 0.90, 1.03, Verdict.CANNOT_TELL),
        (1.02, 1.02, 1.10, Verdict.CANNOT_TELL),
        (1.02, 1.03, 1.10, Verdict.ABOVE),
    ],
)
def test_verdict_of_what_may_cost_so_much(aim, low, high, verdict):
    assert judge(Interval(low, high, 0.96), aim, at_most=True) is verdict
    assert judge(Interval(low, high, 0.5), aim, at_most=True) is Verdict.CANNOT_TELL


def test_an_interval_that_covers_too_little_tells_nothing():
    assert judge(Interval(2.0, 3.0, 0.9375), 1.0) is Verdict.CANNOT_TELL
    assert judge(Interval(2.0, 2.0, 31 / 32), 1.0) is Verdict.AT_LEAST


def test_verdicts_hold_together():
    """Nine rounds that all agree suffice for twelve verdicts, and not for thirteen."""
    times = {"slow": by_round(*[3.0] * 9), "fast": by_round(*[2.0] * 9)}
    for count, verdict in ((12, Verdict.AT_LEAST), (13, Verdict.CANNOT_TELL)):
        aimed = [Ratio(f"r{index}", ("slow",), ("fast",), 1.4) for index in range(count)]
        found = answers([*aimed, Ratio("no aim", ("slow",), ("fast",))], times, 0)
        assert {each.verdict for each in found[:-1]} == {verdict}
        assert found[-1].verdict is None


def test_a_table_of_ratios_of_nothing_has_a_wrong_verdict_in_few_tables():
    """Of contenders that are all alike, by eight ratios a table."""
    draw = random.Random(2)
    tables, wrong_together, wrong_alone = 300, 0, 0
    for _ in range(tables):
        times = {str(name): by_round(*(draw.lognormvariate(0, 0.05) for _ in range(9)))
                 for name in range(16)}  # fmt: skip
        ratios = [Ratio("r", (str(2 * i),), (str(2 * i + 1),), 1.0) for i in range(8)]
        found = answers(ratios, times, 0)
        wrong_together += any(each.verdict is not Verdict.CANNOT_TELL for each in found)
        wrong_alone += any(
            with_verdict(each).verdict is not Verdict.CANNOT_TELL for each in found
        )
    assert wrong_together / tables < 0.05
    assert wrong_alone / tables > 0.15
