"""The waterfall from DataParallel to DDP."""

import fixture_ladder
import fixture_results
import pytest
from drawn import charts_of, names, rows


def entries_of(document, *without):
    """The document less the rows whose names end in one of these."""
    document["benchmarks"] = [
        row for row in document["benchmarks"] if not row["run_name"].endswith(without)
    ]
    return document


def test_every_change_reaches_from_the_row_before_it_to_its_own(write_json):
    chart = charts_of(write_json, fixture_ladder.ladder()).charts["data_parallel_ladder"]
    bars = rows(chart, "start", "end", "last")
    times = [fixture_ladder.DATA_PARALLEL_MS, *(ms for _, _, ms in fixture_ladder.CHANGES)]
    times.append(fixture_ladder.DDP_MS)
    start, *_ = rows(chart, "x", "last")
    assert start["x"] == pytest.approx(times[0] / 1e3)
    for bar, before, after in zip(bars, times, times[1:], strict=False):
        ends = [min(before, after) / 1e3, max(before, after) / 1e3]
        assert [bar["start"], bar["end"]] == pytest.approx(ends)
    assert [bar["words"].split("\n")[1].split(",")[0] for bar in bars] == [
        "saves 100 ms",
        "saves 60.0 ms",
        "costs 20.0 ms",
        "saves 60.0 ms",
        "saves 50.0 ms",
    ]
    assert bars[2]["color"] != bars[0]["color"] == bars[1]["color"]
    named = names(chart, "y")
    found = [named.index(bar["words"].split("\n")[0]) for bar in [start, *bars]]
    assert found == sorted(found) and len(bars) == 5


def test_it_ends_where_more_than_one_option_changes(write_json):
    document = entries_of(fixture_ladder.ladder(), "replicate:kept")
    bars = rows(charts_of(write_json, document).charts["data_parallel_ladder"], "start", "last")
    assert [bar["words"].split("\n")[0] for bar in bars] == [
        "loss on the replicas",
        "a process a device: DDP",
    ]


def test_without_plain_data_parallel_there_is_none_and_it_is_not_missed(write_json):
    for document in (
        fixture_results.results(),
        entries_of(fixture_ladder.ladder(), "image:128"),
    ):
        charts = charts_of(write_json, document)
        assert "data_parallel_ladder" not in charts.charts
        assert "data_parallel_ladder" not in charts.left_out
