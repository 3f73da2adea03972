"""The chart of pipeline schedules: measured, simulated and closed form."""

import copy

import fixture_results
import pytest
from drawn import charts_of, layers, names, rows


def charts_at_one_split(write_json, schedules):
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
    return charts_of(write_json, document)


def test_every_schedule_has_its_three_times(write_json):
    chart = charts_at_one_split(write_json, ["1f1b", "zb_h1", "gpipe"]).charts["schedules"]
    bars = rows(chart, "value", "last")
    labels = [bar["words"].split("\n")[0] for bar in bars]
    assert set(labels) == {"1F1B", "ZB-H1", "GPipe"}
    assert str([[label] for label in labels]).replace("'", '"') in names(chart, "y")
    times = [bar["value"] for bar in bars]
    assert times == sorted(times, reverse=True)
    marks = [layer["data"]["values"] for layer in layers(chart)]
    for what in ("simulated", "closed form"):
        (found,) = [one for one in marks if one and f"\n{what} " in one[0].get("words", "")]
        expected = [mark["x"] for mark in found]
        assert len(found) == 3 and expected == pytest.approx(times, rel=0.3)
    assert all(bar["text"].endswith(", 3 live") for bar in bars)
    assert "ZB-H1: 3.49 s, simulated 3.29 s, closed form 3.45 s" in chart.description


def test_one_schedule_makes_no_chart_and_is_not_missed(write_json):
    charts = charts_at_one_split(write_json, ["1f1b"])
    assert "schedules" not in charts.charts
    assert "schedules" not in charts.left_out
