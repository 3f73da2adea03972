"""Statistics against numbers worked out by hand."""

import pytest
from stratagem_reports import statistics
from stratagem_reports.load import Repetition, Row


def row(steps, protocol="steady"):
    repetitions = [Repetition(index, list(times)) for index, times in enumerate(steps)]
    return Row("single/toy", "single", "toy", {"protocol": protocol}, repetitions)


def test_six_samples_give_minimum_to_maximum_with_31_of_32():
    interval = statistics.interval_of_median([6.0, 1.0, 5.0, 2.0, 4.0, 3.0])
    assert (interval.low, interval.high) == (1.0, 6.0)
    assert interval.coverage == pytest.approx(31 / 32)


@pytest.mark.parametrize(
    ("count", "covered"), [(1, 0.0), (2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375)]
)
def test_fewer_than_six_samples_state_their_real_coverage(count, covered):
    samples = [float(value) for value in range(count)]
    interval = statistics.interval_of_median(samples)
    assert (interval.low, interval.high) == (samples[0], samples[-1])
    assert interval.coverage == pytest.approx(covered)


def test_ten_samples_drop_one_at_each_end():
    interval = statistics.interval_of_median([float(value) for value in range(1, 11)])
    assert (interval.low, interval.high) == (2.0, 9.0)
    assert interval.coverage == pytest.approx(1 - 2 * (1 + 10) / 1024)


def test_the_rank_is_the_largest_that_still_reaches_95_percent():
    interval = statistics.interval_of_median([float(value) for value in range(1, 10)])
    assert (interval.low, interval.high) == (2.0, 8.0)
    assert statistics.coverage(9, 3) < 0.95 <= interval.coverage


def test_summary_by_hand():
    summary = statistics.summarise([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert summary.median == 4.5
    assert summary.mean == 5.0
    assert summary.deviation == 2.0


def test_samples_are_all_steps_of_all_repetitions():
    assert statistics.samples_ms(row([[1.0, 2.0], [3.0, 4.0]])) == [1.0, 2.0, 3.0, 4.0]


def test_a_sample_of_the_tutorial_is_a_repetition():
    assert statistics.samples_ms(row([[1.0, 2.0, 3.0], [5.0]], "tutorial")) == [6.0, 5.0]


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ([1.0, 2.0], [3.0, 4.0], True),
        ([3.0, 4.0], [1.0, 2.0], True),
        ([1.0, 3.0], [3.0, 4.0], False),
        ([1.0, 9.0], [3.0, 4.0], False),
        ([1.0], [3.0, 4.0], False),
    ],
)
def test_overlapping_intervals_and_single_samples_are_not_ranked(first, second, verdict):
    pair = statistics.summarise(first), statistics.summarise(second)
    assert statistics.distinguishable(*pair) is verdict


def test_speed_up_divides_opposite_ends():
    ratio = statistics.speed_up(
        statistics.summarise([10.0, 12.0, 14.0]), statistics.summarise([4.0, 6.0, 7.0])
    )
    assert ratio.value == pytest.approx(2.0)
    assert ratio.low == pytest.approx(10.0 / 7.0)
    assert ratio.high == pytest.approx(14.0 / 4.0)


def test_prediction_error_keeps_the_sign_of_the_worst():
    first, second = row([[1.0]]), row([[2.0]])
    error = statistics.prediction_error([(first, 104.0, 100.0), (second, 184.0, 200.0)])
    assert error.mean_absolute == pytest.approx(0.06)
    assert error.worst == pytest.approx(-0.08)
    assert error.worst_row is second
    assert statistics.prediction_error([]) is None


def test_labels_say_within_one_run_and_the_coverage():
    assert statistics.describe_interval([6, 6]) == (
        "95% interval of the median, within one run (96.9%, 6 samples)"
    )
    assert "93.8%, short of 95%" in statistics.describe_interval([5])
    assert statistics.describe_interval([1]) == "one sample a row: no interval"
    assert statistics.describe_deviation([10]) == "standard deviation over 10 repetitions"


def test_spread_and_outliers_are_said_and_nothing_is_dropped():
    steady = statistics.summarise([100.0, 101.0, 99.0, 100.5, 99.5, 100.2])
    assert not steady.wide and steady.outliers == 0
    disturbed = statistics.summarise([100.0, 101.0, 99.0, 100.5, 99.5, 180.0])
    assert disturbed.wide and disturbed.outliers == 1
    assert disturbed.count == 6
    assert statistics.summarise([100.0]).wide is False


def test_outliers_lie_beyond_tukeys_fences():
    """Quartiles of 1..9 are 3 and 7: the fences are -3 and 13."""
    middle = [float(value) for value in range(2, 9)]
    assert statistics.outlying([-3.0, *middle, 13.0]) == []
    assert statistics.outlying([-3.1, *middle, 13.1]) == [0, 8]
    assert statistics.outlying([]) == statistics.outlying([5.0]) == []
