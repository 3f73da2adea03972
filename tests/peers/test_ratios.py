import pytest
from peer_comparison.ratios import Interval, Kind, Ratio, Target, Verdict, answer, best


def by_round(*values):
    return dict(enumerate(values, start=1))


def test_a_ratio_pairs_launches_of_the_same_round():
    times = {"slow": {1: 3.0, 2: 8.0, 4: 5.0}, "fast": {1: 2.0, 2: 4.0, 3: 1.0}}
    found = answer(Ratio("r", ("slow",), ("fast",)), times)
    assert found.per_round == (1.5, 2.0)
    assert found.median == 1.75
    assert found.verdict is None


def test_a_ratio_without_a_common_round_has_no_answer():
    assert answer(Ratio("r", ("slow",), ("fast",)), {"slow": {1: 3.0}, "fast": {2: 2.0}}) is None
    assert answer(Ratio("r", ("slow",), ("fast",)), {"slow": {1: 3.0}}) is None


def test_best_is_the_lowest_median_over_all_rounds_not_the_lowest_sample():
    times = {"lucky": by_round(1, 9, 9), "steady": by_round(5, 5, 5)}
    assert best(["lucky", "steady"], times) == "steady"


def test_best_leaves_out_who_was_measured_in_fewer_rounds():
    times = {"whole": by_round(5, 5, 5), "broken": by_round(1)}
    assert best(["broken", "whole"], times) == "whole"
    assert best(["broken"], times) == "broken"
    assert best(["absent"], times) is None


def test_both_sides_choose_their_best():
    times = {"a": by_round(6, 6), "b": by_round(4, 8), "c": by_round(3, 3), "d": by_round(2, 2)}
    found = answer(Ratio("r", ("a", "b"), ("c", "d")), times)
    assert (found.slower, found.faster) == ("a", "d")
    assert found.per_round == (3.0, 3.0)


@pytest.mark.parametrize(
    ("kind", "value", "low", "high", "verdict"),
    [
        (Kind.AT_LEAST, 1.25, 1.25, 1.40, Verdict.MET),
        (Kind.AT_LEAST, 1.25, 1.24, 1.40, Verdict.CANNOT_TELL),
        (Kind.AT_LEAST, 1.25, 1.10, 1.24, Verdict.NOT_MET),
        (Kind.REACHES, 1.00, 0.90, 1.00, Verdict.MET),
        (Kind.REACHES, 1.00, 0.90, 0.99, Verdict.NOT_MET),
        (Kind.WITHIN, 0.05, 0.96, 1.04, Verdict.MET),
        (Kind.WITHIN, 0.05, 0.96, 1.06, Verdict.CANNOT_TELL),
        (Kind.WITHIN, 0.05, 1.06, 1.10, Verdict.NOT_MET),
        (Kind.WITHIN, 0.05, 0.80, 0.94, Verdict.NOT_MET),
    ],
)
def test_verdict(kind, value, low, high, verdict):
    assert Target(kind, value).verdict(Interval(low, high, 0.96)) is verdict


def test_an_interval_that_covers_too_little_tells_nothing():
    target = Target(Kind.AT_LEAST, 1.0)
    assert target.verdict(Interval(2.0, 3.0, 0.9375)) is Verdict.CANNOT_TELL
    assert target.verdict(Interval(2.0, 2.0, 31 / 32)) is Verdict.MET
