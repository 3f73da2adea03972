"""The chart of a trend: computed once, drawn by matplotlib and by plotly alike."""

from dataclasses import replace

import pytest
from fixture_history import commit, history, runs, store
from stratagem_reports.charts import DARK, LIGHT, render
from stratagem_reports.charts import trend as static
from stratagem_reports.charts.style import encode
from stratagem_reports.descriptions import describe
from stratagem_reports.history.series import series_of
from stratagem_reports.history.trend import MAX_P, MIN_CHANGE_PERCENT, trend_of
from stratagem_reports.interactive import figure
from stratagem_reports.report_figures import figure_data
from stratagem_reports.trend_data import trend_chart


def chart_of(many, metric="step_ms"):
    (series,) = series_of(many)
    return trend_chart(trend_of(series, metric, MAX_P, MIN_CHANGE_PERCENT))


def trace(drawn, name):
    (found,) = [item for item in drawn["data"] if item["name"] == name]
    return found


def lines_of(chart):
    """What matplotlib drew: {label or position: the line's values}."""
    found = {}

    def draw():
        made = static.draw(chart, LIGHT)
        (axes,) = made.axes
        found["lines"] = [list(line.get_ydata()) for line in axes.get_lines()]
        return made

    encode(draw, ("svg",))
    return found["lines"]


def test_values_are_the_runs_and_levels_the_means_between_changes():
    many = runs(40, step_at=25)
    chart = chart_of(many)
    assert [run.value for run in chart.runs] == [run.median for run in many]
    assert [run.launches for run in chart.runs] == [run.launches for run in many]
    before, after = chart.levels
    assert (before.start, before.end) == (-0.5, 24.5) and after.end == 39.5
    assert before.mean == pytest.approx(100.0, rel=0.01)
    (change,) = chart.changes
    assert change.position == 24.5 and change.worse
    assert change.commits == f"{commit(24)}..{commit(25)}"
    assert chart.axis == "Step time (ms)" and "40 runs" in chart.subtitle
    assert f"+5.0% slower at {commit(24)}" in chart.caption
    assert "+5.0% slower, 99.77 ms to 104.8 ms" in describe(chart)


def test_long_steps_are_in_seconds_throughout():
    many = [
        replace(run, launches=[20 * value for value in run.launches], median=20 * run.median)
        for run in runs(40, step_at=25)
    ]
    many[3] = replace(many[3], interval=(1900.0, 2100.0))
    chart = chart_of(many)
    assert chart.axis == "Step time (s)" and chart.unit == "s"
    assert chart.runs[3].interval == (1.9, 2.1)
    for value in (chart.runs[0].value, chart.runs[0].launches[0], chart.levels[0].mean):
        assert value == pytest.approx(2.0, rel=0.05)
    bars = trace(figure(chart, LIGHT), "median of a run")["error_y"]
    assert bars["array"][3] == pytest.approx(2.1 - chart.runs[3].value, abs=1e-5)
    assert bars["array"][4] == 0.0


def test_both_renderers_draw_the_same_values():
    chart = chart_of(runs(40, step_at=25))
    drawn = figure(chart, LIGHT)
    medians = pytest.approx([run.value for run in chart.runs], rel=1e-5)
    assert trace(drawn, "median of a run")["y"] == medians
    assert [line for line in lines_of(chart) if len(line) == 40] == [medians]
    launches = [launch for run in chart.runs for launch in run.launches]
    assert trace(drawn, "launch")["y"] == pytest.approx(launches, rel=1e-5)
    means = [level.mean for level in chart.levels]
    assert trace(drawn, "mean between change points")["y"][::3] == means
    assert all([mean] * 2 in lines_of(chart) for mean in means)
    (line,) = drawn["layout"]["shapes"]
    assert line["x0"] == line["x1"] == chart.changes[0].position


def test_change_points_are_marked_in_their_colours_and_in_words():
    many = runs(40, step_at=25, factor=1.1) + runs(40, first=40, seed=3)
    drawn = figure(chart_of(many), LIGHT)
    worse, better = trace(drawn, "change for the worse"), trace(drawn, "other change")
    assert worse["x"] == [24.5] and better["x"] == [39.5]
    assert worse["marker"]["color"] != better["marker"]["color"]
    assert "slower" in worse["hovertext"][0] and "faster" in better["hovertext"][0]
    assert len(drawn["layout"]["annotations"]) == len(drawn["layout"]["shapes"]) == 2
    left, right = (note["xanchor"] for note in drawn["layout"]["annotations"])
    assert (left, right) == ("left", "left")


def test_words_stand_where_there_is_room():
    chart = chart_of(runs(40, step_at=35, factor=1.1))
    (note,) = figure(chart, LIGHT)["layout"]["annotations"]
    assert note["xanchor"] == "right"


def test_plotly_accepts_it_and_the_dark_one_differs_in_colours_alone():
    graph_objects = pytest.importorskip("plotly.graph_objects")
    chart = chart_of(runs(40, step_at=25))
    for theme in (LIGHT, DARK):
        assert graph_objects.Figure(figure(chart, theme)).data
    paths = [path[-1] for path, _ in figure_data(chart)["dark"]]
    assert {"paper_bgcolor", "color"} <= set(paths) and not {"x", "y"} & set(paths)


@pytest.mark.parametrize("metric", ["mfu", "live_micro_batches"])
def test_counters_have_no_launches(metric):
    chart = chart_of(runs(12), metric)
    assert all(run.launches == [] for run in chart.runs)
    names = [item["name"] for item in figure(chart, LIGHT)["data"]]
    assert names == ["median of a run"]
    assert render(chart, ("svg",))["svg"]


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
    assert page.count("data-chart>") == 25 and len(page) < 7_000_000
    assert 0 < page.count('class="dark"') < 25
    assert page.count('class="both"') + page.count('class="dark"') == 25
