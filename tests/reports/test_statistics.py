"""Statistics against numbers worked out by hand."""

import pytest
from stratagem_reports.analysis import statistics
from stratagem_reports.results.launch import Repetition
from stratagem_reports.results.load import Row
from stratagem_reports.results.row_summary import Interval, Ratio, Summary


def row(steps, protocol="steady"):
    repetitions = [Repetition(index, list(times)) for index, times in enumerate(steps)]
    return Row("single/toy", "single", "toy", {"protocol": protocol}, repetitions)


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
    interval = statistics.interval_of_median(values)
    assert (interval.low, interval.high) == (low, high)
    assert interval.coverage == pytest.approx(1 - outside / 2**count, abs=1e-15)


def test_interval_agrees_with_the_binomial_distribution():
    binom = pytest.importorskip("scipy.stats").binom
    for count in range(6, 60):
        k = int(binom.ppf(0.025, count, 0.5))
        if binom.cdf(k - 1, count, 0.5) > 0.025:
            k -= 1
        interval = statistics.interval_of_median(list(range(1, count + 1)))
        assert (interval.low, interval.high) == (k, count + 1 - k)


def test_timed_steps_are_those_of_all_repetitions():
    assert statistics.timed_steps_ms(row([[1.0, 2.0], [3.0, 4.0]])) == [1.0, 2.0, 3.0, 4.0]


def test_a_training_call_of_the_tutorial_is_a_repetition():
    assert statistics.timed_steps_ms(row([[1.0, 2.0, 3.0], [5.0]], "tutorial")) == [6.0, 5.0]


def summary(name, samples=(1.0,), **own):
    low, high = min(samples), max(samples)
    own = {"workload": "toy", "verification": "passed", "marks": []} | own
    median = sorted(samples)[len(samples) // 2]
    own |= {"mean": median, "deviation": 0.0, "interval": Interval(low, high, 0.5)}
    own = {"outliers": [], "ratios": {}} | own
    return Summary(name=name, samples=samples, median=median, **own)


def test_rows_are_ranked_that_the_file_tells_apart_and_of_one_workload_alone():
    first, second = summary("a", cannot_tell=["b"]), summary("b", cannot_tell=["a"])
    assert not statistics.distinguishable(first, second)
    assert statistics.distinguishable(first, summary("c"))
    assert not statistics.distinguishable(first, summary("c", workload="another"))


def test_speed_up_is_what_the_file_says():
    own = Ratio(1.9, 1.8, 2.0, 0.99)
    slow, fast = summary("a", (12.0,)), summary("b", (6.0,), ratios={"a": own})
    assert statistics.speed_up(slow, fast) is own
    assert statistics.speed_up(slow, slow).value == 1.0


def test_labels_say_within_one_run_and_the_coverage():
    assert statistics.describe_interval([6, 6]) == (
        "95% interval of the median, within one run (96.9%, 6 samples)"
    )
    assert "93.8%, short of 95%" in statistics.describe_interval([5])
    assert statistics.describe_interval([1]) == "one sample a row: no interval"
    assert statistics.describe_deviation([10]) == "standard deviation over 10 repetitions"


def test_outliers_lie_beyond_tukeys_fences():
    """Quartiles of 1..9 are 3 and 7: the fences are -3 and 13."""
    middle = [float(value) for value in range(2, 9)]
    assert statistics.outlying([-3.0, *middle, 13.0]) == []
    assert statistics.outlying([-3.1, *middle, 13.1]) == [0, 8]
    assert statistics.outlying([]) == statistics.outlying([5.0]) == []
