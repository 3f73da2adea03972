"""The chart of a trend: its runs, its levels and where they changed."""

import pytest
from drawn import layers, legend, rows
from fixture_history import commit, history, runs, store
from msgspec.structs import replace
from stratagem_reports.charts.render import pictures
from stratagem_reports.charts.trend import change_color
from stratagem_reports.history.series import series_of
from stratagem_reports.history.trend import trend_of
from stratagem_reports.history.trend_page import trend_chart


def chart_of(many, metric="step_ms"):
    (series,) = series_of(many)
    return trend_chart(trend_of(series, metric, max_p=0.001, min_change=1.0))


def axis_title(chart):
    return chart.view["encoding"]["y"]["axis"]["title"]


def test_values_are_the_runs_and_levels_the_means_between_changes():
    many = runs(40, step_at=25)
    chart = chart_of(many)
    medians, launches = rows(chart, "y", "words"), rows(chart, "x", "y")
    assert [run["y"] for run in medians] == pytest.approx([run.median for run in many])
    every = [launch for run in many for launch in run.launches]
    assert [launch["y"] for launch in launches] == pytest.approx(every)
    before, after = rows(chart, "start")
    assert (before["start"], before["end"]) == (-0.5, 24.5) and after["end"] == 39.5
    assert before["y"] == pytest.approx(100.0, rel=0.01)
    (change,) = rows(chart, "late")
    assert change["x"] == 24.5 and before["y"] < change["y"] < after["y"]
    assert f"{commit(24)}..{commit(25)}" in change["words"]
    assert axis_title(chart) == "Step time (ms)" and "40 runs" in chart.subtitle
    assert f"+5.0% slower at {commit(24)}" in chart.caption
    assert "+5.0% slower, 99.77 ms to 104.8 ms" in chart.description


def test_long_steps_are_in_seconds_throughout():
    many = [
        replace(run, launches=[20 * value for value in run.launches], median=20 * run.median)
        for run in runs(40, step_at=25)
    ]
    chart = chart_of(many)
    assert axis_title(chart) == "Step time (s)"
    assert "launches, 1.9" in rows(chart, "words")[0]["words"]
    for found in (rows(chart, "words"), rows(chart, "x", "y"), rows(chart, "start")):
        assert found[0]["y"] == pytest.approx(2.0, rel=0.05)


def test_change_points_are_marked_in_their_colours_and_in_words():
    many = runs(40, step_at=25, factor=1.1) + runs(40, first=40, seed=3)
    chart = chart_of(many)
    worse, better = rows(chart, "late")
    assert (worse["x"], better["x"]) == (24.5, 39.5)
    assert worse["color"] == change_color(True) != better["color"] == change_color(False)
    assert worse["words"].startswith("+10.") and "slower" in worse["words"]
    assert "faster" in better["words"] and worse["upper"] is not better["upper"]
    assert legend(chart)[-2:] == ["change for the worse", "other change"]
    text = pictures(chart, ("svg",))["svg"].decode()
    assert text.split("</desc>")[1].count("% slower") == 2, "the words and their ground"


@pytest.mark.parametrize(("step_at", "side"), [(5, "left"), (35, "right")])
def test_words_stand_where_there_is_room(step_at, side):
    chart = chart_of(runs(40, step_at=step_at, factor=1.1))
    notes = [layer["mark"]["align"] for layer in layers(chart, "text")]
    assert notes == [side, side]


@pytest.mark.parametrize("metric", ["mfu", "live_micro_batches"])
def test_counters_have_no_launches(metric):
    chart = chart_of(runs(12), metric)
    assert rows(chart, "x", "y") == rows(chart, "words")
    assert legend(chart)[0] == "median of a run" and "launch" not in legend(chart)
    assert pictures(chart, ("svg",))["svg"]


def test_names_and_commits_are_no_markup(tmp_path):
    folder = store(tmp_path / "h", runs(40, "row/cut:<img src=x>", step_at=25))
    arguments = ["trend", "--dir", folder, "--out-dir", tmp_path, "--format", "html"]
    assert history(*arguments) == 0
    page = (tmp_path / "trend.html").read_text(encoding="utf-8")
    assert "<img src=x" not in page and "&lt;img src=x&gt;" in page


def test_many_series_stay_a_small_page(tmp_path):
    groups = [runs(60, f"row/{index}", seed=index) for index in range(25)]
    folder = store(tmp_path / "h", *groups)
    assert history("trend", "--dir", folder, "--out-dir", tmp_path, "--format", "html") == 0
    page = (tmp_path / "trend.html").read_text(encoding="utf-8")
    assert page.count("data-chart>") == page.count('class="picture"') == 25
    assert len(page) < 3_500_000
