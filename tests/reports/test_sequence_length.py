"""The chart of speed-ups by sequence length."""

import fixture_lengths
import fixture_results
import pytest
from drawn import axis_title, charts_of, layers


def lines_of(chart):
    return [layer["data"]["values"] for layer in layers(chart, "line")]


def test_a_line_has_the_speed_up_at_each_length(write_json):
    chart = charts_of(write_json, fixture_lengths.lengths()).charts["sequence_length"]
    named = [line[0]["words"].split(", 512 tokens")[0] for line in lines_of(chart)]
    assert named == [f"Context parallel, {name}" for name in ("heads", "ring")]
    for line, speed_ups in zip(lines_of(chart), fixture_lengths.SPEED_UPS.values(), strict=True):
        assert [point["x"] for point in line] == list(fixture_lengths.LENGTHS)
        assert [point["y"] for point in line] == pytest.approx(speed_ups, rel=1e-3)
        assert all(point["low"] <= point["y"] <= point["high"] for point in line)
    assert axis_title(chart, "x") == "Sequence length (tokens)"


def test_devices_that_share_cores_are_left_out(write_json):
    document = fixture_lengths.lengths()
    for row in document["benchmarks"]:
        if "ring" in row["run_name"]:
            row["stratagem"]["marks"] = ["oversubscribed"]
    chart = charts_of(write_json, document).charts["sequence_length"]
    assert len(lines_of(chart)) == 1


def test_without_several_lengths_there_is_none_and_it_is_not_missed(write_json):
    document = fixture_lengths.lengths()
    document["benchmarks"] = [
        row for row in document["benchmarks"] if "sequence:512" in row["run_name"]
    ]
    for one in (document, fixture_results.results()):
        charts = charts_of(write_json, one)
        assert "sequence_length" not in charts.charts
        assert "sequence_length" not in charts.left_out
