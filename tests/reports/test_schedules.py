"""The chart of pipeline schedules: measured, simulated and closed form."""

import copy

import fixture_results
import pytest
from images import inked
from stratagem_reports.chart_data import build_charts
from stratagem_reports.charts import render
from stratagem_reports.descriptions import describe
from stratagem_reports.load import load_results
from stratagem_reports.selection import select


def charts_of(write_json, schedules):
    """The fixture's pipeline at one split, once for each schedule."""
    document = copy.deepcopy(fixture_results.results())
    rows = document["benchmarks"]
    split = next(row for row in rows if "/split:" in row["run_name"])["run_name"]
    document["benchmarks"] = [row for row in rows if "/split:" not in row["run_name"]]
    for schedule in schedules:
        for row in copy.deepcopy([row for row in rows if row["run_name"] == split]):
            name = split.replace("1f1b", schedule)
            row |= {"name": name, "run_name": name}
            if row["run_type"] == "aggregate":
                continue
            row["stratagem"]["config"]["schedule"] = schedule
            row["stratagem"]["counters"] = {"live_micro_batches": 3}
            document["benchmarks"].append(row)
    results = load_results(write_json(document))
    return build_charts(results, select(results))


def test_every_schedule_has_its_three_times(write_json, tmp_path):
    chart = charts_of(write_json, ["1f1b", "zb_h1", "gpipe"]).charts["schedules"]
    assert {point.label for point in chart.points} == {"1F1B", "ZB-H1", "GPipe"}
    times = [point.measured.time_ms for point in chart.points]
    assert times == sorted(times, reverse=True)
    for point in chart.points:
        assert point.live_micro_batches == 3
        assert point.simulated_ms == pytest.approx(point.measured.time_ms, rel=0.3)
        assert 0 < point.closed_form_ms < 1.1 * point.measured.time_ms
    assert "ZB-H1: measured" in describe(chart)
    picture = tmp_path / "schedules.png"
    picture.write_bytes(render(chart, ("png",))["png"])
    assert 0.02 < inked(picture) < 0.9


def test_one_schedule_makes_no_chart_and_is_not_missed(write_json):
    charts = charts_of(write_json, ["1f1b"])
    assert "schedules" not in charts.charts
    assert "schedules" not in charts.left_out
