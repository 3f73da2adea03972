"""The charts of memory by purpose, and of time against memory."""

import copy
from itertools import combinations

import fixture_results
import pytest
from drawn import charts_of, layers, legend, rows
from stratagem_reports.charts.theme import memory_color

GIBIBYTE = 2.0**30
# Of each row by what its name has: how much less memory its devices take than the fixture's.
LESS = {"split:1/": 2.6e9, "split:2/": 2.4e9, "split:4/": 2.0e9, "split:12/": 1.5e9}


def document_with_less() -> dict:
    """The fixture, of whose pipelines those of small splits hold less."""
    document = copy.deepcopy(fixture_results.results(failed=False))
    for entry in document["benchmarks"]:
        less = next((less for name, less in LESS.items() if name in entry["run_name"]), 0.0)
        for device in entry.get("stratagem", {}).get("devices", []):
            device["peak_memory_bytes"] -= int(less)
            device["memory_bytes"]["activations"]["at_peak"] -= int(less)
    return document


@pytest.fixture
def charts(write_json):
    return charts_of(write_json, document_with_less()).charts


def pieces_of(chart, label):
    """The parts of a row's bar, in their order."""
    return [row for row in rows(chart, "top", "color") if row["words"].startswith(f"{label}\n")]


def test_a_bar_is_as_long_as_the_fullest_device_and_in_the_order_of_the_purposes(charts):
    pieces = pieces_of(charts["memory_by_category"], "Single device")
    assert [piece["start"] for piece in pieces[1:]] == [piece["end"] for piece in pieces[:-1]]
    assert pieces[-1]["end"] * GIBIBYTE == pytest.approx(3.4e9, rel=1e-6)
    drawn = ("parameters", "gradients", "optimizer", "activations", "staging", "other")
    assert [piece["color"] for piece in pieces] == [memory_color(name) for name in drawn]
    assert pieces[1]["end"] * GIBIBYTE == pytest.approx(1.9e8, rel=1e-6)
    assert pieces[0]["words"].split("\n")[1].startswith("Parameters 0.0931 GiB, 2.9% of the peak")


def test_a_tick_ends_the_models_state_by_formula(charts):
    chart = charts["memory_by_category"]
    ticks = [layer for layer in layers(chart, "rule") if layer["data"]["values"]]
    ends = [row["x"] * GIBIBYTE for row in ticks[-1]["data"]["values"]]
    assert ends == pytest.approx(11 * [4e8], rel=1e-6)
    assert legend(chart)[-1] == "Model state by formula" and "Communication" not in legend(chart)


def test_without_a_formula_there_is_no_tick(write_json):
    document = document_with_less()
    for entry in document["benchmarks"]:
        for device in entry.get("stratagem", {}).get("devices", []):
            device["memory_bytes"]["gradients"]["formula"] = None
    chart = charts_of(write_json, document).charts["memory_by_category"]
    assert not any(layer["data"]["values"] for layer in layers(chart, "rule"))
    assert "Model state by formula" not in legend(chart)


def test_memory_of_unknown_purpose_is_said_to_be_missing(write_json):
    document = document_with_less()
    for entry in document["benchmarks"]:
        for device in entry.get("stratagem", {}).get("devices", []):
            device["memory_bytes"] = {}
    made = charts_of(write_json, document)
    assert made.left_out["memory_by_category"] == (
        "no row has its devices' memory by what it is for"
    )
    assert "time_and_memory" in made.charts


def points_of(chart):
    """Every row's point by its name, as (memory, time)."""
    return {row["text"]: (row["x"], row["y"]) for row in rows(chart, "text", "value")}


def test_every_row_is_a_point(charts):
    points = points_of(charts["time_and_memory"])
    assert len(points) == 11 and "Model parallel" in points
    assert points["Single device"][0] * GIBIBYTE == pytest.approx(3.4e9, rel=1e-6)
    assert points["Pipeline, split 12"][0] * GIBIBYTE == pytest.approx(1.9e9, rel=1e-6)


def test_no_row_is_both_faster_and_smaller_than_one_on_the_frontier(charts):
    chart = charts["time_and_memory"]
    points = points_of(chart)
    points_drawn = layers(chart, "point")
    (ring,) = [one for one in points_drawn if one["mark"].get("fill") == "transparent"]
    frontier = {row["text"] for row in ring["data"]["values"]}
    assert all(name in chart.words.rsplit("On the frontier: ", 1)[1] for name in frontier)
    for name, (memory, time) in points.items():
        beaten = any(
            other[0] <= memory and other[1] <= time and other != (memory, time)
            for other in points.values()
        )
        assert (name in frontier) != beaten, name
    assert len(frontier) > 2


@pytest.mark.parametrize(("form", "room", "most"), [("!narrow", 560, 8), ("narrow", 230, 6)])
def test_names_do_not_lie_on_each_other(charts, form, room, most):
    chart = charts["time_and_memory"]
    x, y = (chart.view["encoding"][axis]["scale"]["domain"] for axis in "xy")
    boxes = []
    for layer in layers(chart, "text"):
        if "stroke" in layer["mark"] or layer["transform"] != [{"filter": form}]:
            continue
        for row in layer["data"]["values"]:
            lines, mark = row["text"].split("\n"), layer["mark"]
            width = 5.5 * max(map(len, lines))
            left = room * (row["x"] - x[0]) / (x[1] - x[0]) + mark["dx"]
            left -= width * {"left": 0.0, "center": 0.5, "right": 1.0}[mark["align"]]
            down = 380 * (y[1] - row["y"]) / (y[1] - y[0]) + mark["dy"]
            boxes.append((left, left + width, down - 6, down - 8 + 14 * len(lines)))
            assert left >= 0 and left + width <= room
    assert len(boxes) >= most
    for one, other in combinations(boxes, 2):
        apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
        assert apart
