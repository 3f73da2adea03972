"""Timelines of rows that are no pipelines, lanes by rank, and timelines of thousands of actions."""

from itertools import pairwise

import fixture_ranks
import fixture_results
import pytest
from stratagem_reports.chart_data import build_charts
from stratagem_reports.charts import LIGHT, render
from stratagem_reports.gantt_crowding import MOST_ACTIONS, readable
from stratagem_reports.gantt_data import MOST_STRATEGIES
from stratagem_reports.gantt_lanes import gaps, is_moving, lanes
from stratagem_reports.interactive import figure
from stratagem_reports.load import load_results
from stratagem_reports.selection import select
from stratagem_reports.timeline import Action


@pytest.fixture
def charts(write_json):
    def build(document):
        results = load_results(write_json(document))
        return build_charts(results, select(results))

    return build


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
    assert lanes(made.charts["gantt_single"].actions) == ["device 0"]
    whole = made.charts["gantt_model_parallel"]
    assert whole.title == "Median step: Model parallel" and "fastest of" not in whole.caption
    assert lanes(whole.actions) == ["device 0", "device 1"]


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
    assert lanes(made.charts["gantt_ddp"].actions) == ["rank 0, device 0", "rank 1, device 1"]
    assert lanes(made.charts["gantt_best"].actions) == ["device 0", "device 1"]
    names = figure(made.charts["gantt_ddp"], LIGHT)["layout"]["yaxis"]["ticktext"]
    assert names == ["rank 0, device 0", "rank 1, device 1"]


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


def test_a_box_says_how_many_it_stands_for_and_is_cheap(charts):
    made = charts(fixture_ranks.over_ranks(4000))
    chart = made.charts["gantt_tensor_parallel"]
    words = str(figure(chart, LIGHT))
    assert "drawn together" in words and len(words) < 120_000
    assert "drawn together" in chart.caption
    drawing = render(chart, ("svg",))["svg"]
    assert len(drawing) < 160_000 and drawing.count(b"<path") < 300


def test_gaps_that_cannot_be_seen_are_no_boxes():
    pieces = [Action("device 0", "forward", 0, 0, at, at + 0.9999) for at in range(100)]
    assert gaps(pieces, 0.0, 110.0) == [(99.9999, 110.0)]
