import math

import pytest
from peer_comparison.ratios import (
    Interval,
    Kind,
    Ratio,
    Target,
    Verdict,
    answer,
    best,
    sign_test_interval,
)


def by_round(*values):
    return dict(enumerate(values, start=1))


@pytest.mark.parametrize(
    ("count", "low", "high", "outside"),
    # k counted by hand from binomial coefficients: outside = 2 * sum of C(n, i) for i < k.
    [
        (1, 1, 1, 2),
        (5, 1, 5, 2),
        (6, 1, 6, 2),
        (9, 2, 8, 2 * (1 + 9)),
        (12, 3, 10, 2 * (1 + 12 + 66)),
        (20, 6, 15, 2 * (1 + 20 + 190 + 1140 + 4845 + 15504)),
    ],
)
def test_interval_takes_the_order_statistics_of_the_sign_test(count, low, high, outside):
    values = [float(value) for value in range(count, 0, -1)]
    interval = sign_test_interval(values)
    assert (interval.low, interval.high) == (low, high)
    assert interval.coverage == pytest.approx(1 - outside / 2**count, abs=1e-15)


def test_interval_agrees_with_the_binomial_distribution():
    binom = pytest.importorskip("scipy.stats").binom
    for count in range(6, 60):
        k = int(binom.ppf(0.025, count, 0.5))
        if binom.cdf(k - 1, count, 0.5) > 0.025:
            k -= 1
        interval = sign_test_interval(range(1, count + 1))
        assert (interval.low, interval.high) == (k, count + 1 - k)


def test_interval_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        sign_test_interval([])


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
    assert target.verdict(sign_test_interval([2.0] * 6)) is Verdict.MET
    assert not math.isclose(sign_test_interval([2.0] * 5).coverage, 0.95)
