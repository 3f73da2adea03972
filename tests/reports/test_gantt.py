"""Timelines of rows that are no pipelines, lanes by rank, and timelines of thousands of actions."""

from itertools import pairwise

import fixture_ranks
import fixture_results
import pytest
from drawn import charts_of, legend, names, rows
from stratagem_reports.charts.downsampling import MOST_ACTIONS, readable
from stratagem_reports.charts.gantt import MOST_STRATEGIES, timeline
from stratagem_reports.charts.lanes import gaps, is_moving
from stratagem_reports.charts.render import pictures
from stratagem_reports.results.timeline import Action


@pytest.fixture
def charts(write_json):
    return lambda document: charts_of(write_json, document)


def actions(timeline):
    return [Action(f"device {entry['device']}", **without(entry, "device")) for entry in timeline]


def without(entry, key):
    return {name: value for name, value in entry.items() if name != key}


def busy_ms(boxes):
    """{(device, kind): milliseconds}."""
    found = {}
    for box in boxes:
        key = (box.device, box.kind)
        found[key] = found.get(key, 0.0) + box.end_ms - box.start_ms
    return found


def test_the_fastest_row_of_each_strategy_has_a_timeline(charts):
    made = charts(fixture_results.results())
    assert made.charts["gantt_single"].title == "Median step: Single device, 2 cores"
    assert "the fastest of 2 rows" in made.charts["gantt_single"].caption
    assert '[["device 0"]]' in names(made.charts["gantt_single"], "y")
    whole = made.charts["gantt_model_parallel"]
    assert whole.title == "Median step: Model parallel" and "fastest of" not in whole.caption
    assert '[["device 0"], ["device 1"]]' in names(whole, "y")


def test_six_strategies_at_most_and_the_others_are_named(charts):
    made = charts(fixture_ranks.over_ranks())
    drawn = [name for name in made.charts if name.startswith("gantt_")]
    assert drawn == [
        "gantt_best",
        "gantt_worst",
        "gantt_ddp",
        "gantt_single",
        "gantt_sequence_parallel",
        "gantt_tensor_parallel",
        "gantt_zero1",
        "gantt_zero2",
    ]
    assert len(drawn) == 2 + MOST_STRATEGIES
    reason = f"timelines are drawn of the {MOST_STRATEGIES} fastest strategies"
    names = ("gantt_ddp_model_parallel", "gantt_model_parallel")
    assert made.left_out == dict.fromkeys(names, reason)


def test_lanes_name_the_ranks_where_there_are_several(charts):
    made = charts(fixture_ranks.over_ranks())
    over_ranks = '[["rank 0, device 0"], ["rank 1, device 1"]]'
    assert over_ranks in names(made.charts["gantt_ddp"], "y")
    assert "rank 1, device 1, stage 0" in str(rows(made.charts["gantt_ddp"], "start"))
    assert '[["device 0"], ["device 1"]]' in names(made.charts["gantt_best"], "y")


def test_few_actions_stay_as_they_are():
    few = actions(fixture_ranks.shared_layers(1400.0, 40))
    assert readable(few) == (few, "")


def test_thousands_of_actions_become_few_boxes_of_the_same_time():
    many = actions(fixture_ranks.shared_layers(1400.0, 4000))
    boxes, words = readable(many)
    assert len(many) == 24_002 and MOST_ACTIONS / 2 < len(boxes) <= MOST_ACTIONS
    assert sum(box.count for box in boxes) == len(many)
    assert busy_ms(boxes) == pytest.approx(busy_ms(many))
    assert "Of 24,002 actions" in words


def test_alternating_passes_keep_their_shares_and_do_not_overlap():
    """One forward, one backward twice as long, one idle moment: as in a pipeline's steady state."""
    many = []
    for index in range(3000):
        start = 4.0 * index
        many.append(Action("device 0", "forward", 0, index, start, start + 1.0))
        many.append(Action("device 0", "backward", 0, index, start + 1.0, start + 3.0))
    many.append(Action("device 0", "optimizer", 0, None, 12_000.0, 13_000.0))
    boxes, _ = readable(many, 100)
    assert len(boxes) <= 100 and busy_ms(boxes) == pytest.approx(busy_ms(many))
    computing = sorted((box.start_ms, box.end_ms) for box in boxes if not is_moving(box.kind))
    for (_, end), (start, _) in pairwise(computing):
        assert start >= end - 1e-9
    idle = sum(high - low for low, high in gaps(boxes, 0.0, 13_000.0))
    assert idle == pytest.approx(3000.0, rel=0.01)
    assert [box for box in boxes if box.kind == "optimizer"] == [many[-1]]


def test_actions_at_one_moment_are_drawn():
    same = [Action("device 0", "forward", 0, index, 5.0, 5.0) for index in range(MOST_ACTIONS + 1)]
    boxes, _ = readable(same)
    assert sum(box.count for box in boxes) == len(same)


@pytest.mark.parametrize("exchanges", [1000, pytest.param(4000, marks=pytest.mark.night)])
def test_a_box_says_how_many_it_stands_for_and_is_cheap(charts, exchanges):
    made = charts(fixture_ranks.over_ranks(exchanges))
    chart = made.charts["gantt_tensor_parallel"]
    words = str(chart.page_specification)
    assert "drawn together" in words and len(words) < 120_000
    assert "drawn together" in chart.caption
    drawing = pictures(chart, ("svg",))["svg"]
    assert len(drawing) < 100_000 and drawing.count(b"<path") < 600


def test_gaps_that_cannot_be_seen_are_no_boxes():
    pieces = [Action("device 0", "forward", 0, 0, at, at + 0.9999) for at in range(100)]
    assert gaps(pieces, 0.0, 110.0) == [(99.9999, 110.0)]


def test_boxes_are_labelled_with_what_fits_and_idle_is_striped():
    actions = [
        Action("device 0", "forward", 0, 7, 0.0, 100.0),
        Action("device 0", "backward", 0, 7, 100.0, 103.0),
        Action("device 0", "backward", 0, 8, 110.0, 125.0),
        Action("device 0", "optimizer", 0, None, 125.0, 300.0),
        Action("device 0", "copy_gradient", 0, 7, 103.0, 104.0),
    ]
    chart = timeline("Title", "Subtitle", actions)
    found = rows(chart, "start")
    assert [row["label"] for row in found] == ["F7", "B7", "", "", "B8", "opt"]
    assert [row["color"].startswith("url(") for row in found].index(True) == 3
    assert legend(chart) == [
        "Forward (F)",
        "Backward (B)",
        "Optimizer",
        "Copy gradient",
        "Idle (bubble)",
    ]
    text = pictures(chart, ("svg",))["svg"].decode()
    assert ">F7<" in text and ">B8<" in text and ">opt<" in text and ">B7<" not in text
    assert text.count('fill="url(#stratagem-idle)"') == 3, "two gaps and the legend"


def test_where_a_device_holds_stages_its_boxes_name_them():
    actions = [
        Action("device 0", "forward", stage, 3, at, at + 1.0) for at, stage in ((0, 0), (1, 2))
    ]
    labels = [row["label"] for row in rows(timeline("", "", actions), "start")]
    assert labels == ["0F3", "2F3"]


def test_a_strategys_name_makes_no_folder(charts):
    document = fixture_results.results()
    for entry in document["benchmarks"]:
        if entry.get("stratagem", {}).get("strategy") == "model_parallel":
            entry["stratagem"]["strategy"] = "a/b"
    assert "gantt_a_b" in charts(document).charts
