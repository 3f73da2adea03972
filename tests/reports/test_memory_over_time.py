"""The charts of memory over a step: their rows, what is drawn, and where words stand."""

import copy
import json
from itertools import combinations

import browser as headless
import fixture_memory_curves
import fixture_results
import pytest
from drawn import axis_title, charts_of, layers, legend, names, rows
from reference_summaries import summarised
from stratagem_reports import __main__ as command
from stratagem_reports.charts.memory_over_time import MOST_DEVICES
from stratagem_reports.charts.render import pictures
from stratagem_reports.charts.theme import memory_color

MEBIBYTE = fixture_memory_curves.MEBIBYTE
FASTEST_PIPELINE = "split:12"


@pytest.fixture
def charts(write_json):
    return lambda document: charts_of(write_json, document)


def with_pipeline_curves(measured, predicted=()):
    """The whole fixture whose fastest pipeline has these curves, and no other row has one."""
    document = fixture_results.results(failed=False)
    for entry in document["benchmarks"]:
        if FASTEST_PIPELINE in entry["run_name"] and entry.get("repetition_index") == 0:
            entry["stratagem"]["memory_curve"] = fixture_memory_curves.columns(measured)
            entry["stratagem"]["predicted_memory_curve"] = fixture_memory_curves.columns(predicted)
    return document


def at(ms, most=None, rank=0, device=0, **held):
    """A point of a curve in MiB."""
    own = {name: value * MEBIBYTE for name, value in held.items()}
    most = sum(held.values()) if most is None else most
    return {"rank": rank, "device": device, "ms": ms, "bytes": own, "most_bytes": most * MEBIBYTE}


SHORT = [
    at(0, parameters=100),
    at(5, 260, parameters=100, activations=50),
    at(8, parameters=90),
]


def areas(chart):
    """{colour of a purpose: the rows of its areas}."""
    return {one["mark"]["color"]: one["data"]["values"] for one in layers(chart, "area")}


def crowd(count):
    """Curves of 2000 points for so many ranks; the first holds least."""
    return [
        at(index / 2, 2 * rank + 60, rank, rank, parameters=50, activations=rank + index % 7)
        for rank in range(count)
        for index in range(2000)
    ]


def test_the_fastest_row_of_each_strategy_has_a_chart(charts):
    made = charts(fixture_memory_curves.with_curves())
    drawn = [name for name in made.charts if name.startswith("memory_over_time")]
    assert drawn == [f"memory_over_time_{of}" for of in ("single", "pipeline", "model_parallel")]
    chart = made.charts["memory_over_time_pipeline"]
    assert chart.title == "Memory over a step: Pipeline, split 12, 1F1B"
    assert chart.subtitle.endswith("one step after the timed steps of repetition 1")


def test_six_strategies_at_most_and_the_others_are_named(charts):
    made = charts(fixture_memory_curves.over_ranks())
    assert sum(name.startswith("memory_over_time") for name in made.charts) == 6
    left_out = {why for name, why in made.left_out.items() if "memory_over_time" in name}
    assert left_out == {"memory over a step is drawn of the 6 fastest strategies"}


def test_rows_without_a_curve_are_passed_over(charts):
    made = charts(fixture_results.results())
    assert not any("memory_over_time" in name for name in [*made.charts, *made.left_out])
    document = fixture_memory_curves.with_curves()
    for entry in document["benchmarks"]:
        if entry["run_name"].endswith("cores:2") and "stratagem" in entry:
            entry["stratagem"]["memory_curve"] = []
    assert charts(document).charts["memory_over_time_single"].title.endswith(": Single device")


def test_areas_stand_on_each_other_and_end_at_the_total(charts):
    chart = charts(with_pipeline_curves(SHORT)).charts["memory_over_time_pipeline"]
    found = areas(chart)
    assert list(found) == [memory_color("parameters"), memory_color("activations")]
    parameters, activations = found.values()
    assert [row["x"] for row in activations] == [0, 5, 8]
    assert activations[1]["y2"] == parameters[0]["y"] and parameters[0]["y2"] == 0
    assert activations[1]["y"] / parameters[0]["y"] == pytest.approx(1.5, abs=1e-3)
    assert activations[2]["y"] == activations[2]["y2"] == parameters[-1]["y"]
    assert [row["x"] for row in parameters] == [0, 8], "what does not change is drawn once"
    assert parameters[0]["words"] == "device 0\nParameters: at most 100 MiB, 100 MiB at the peak"
    highest = layers(chart, "line")[0]["data"]["values"]
    assert highest[1]["y"] / parameters[0]["y"] == pytest.approx(2.6, abs=1e-3)
    assert all(one["mark"]["interpolate"] == "step-after" for one in layers(chart, "area"))


def test_what_comes_back_to_its_first_height_is_drawn(charts):
    held = (3, 9, 3, 3, 3, 9, 9, 3)
    curve = [at(ms, parameters=own) for ms, own in enumerate(held)]
    chart = charts(with_pipeline_curves(curve, curve)).charts["memory_over_time_pipeline"]
    for kind in ("area", "line"):
        for one in layers(chart, kind):
            found = {row["x"]: row["y"] for row in one["data"]["values"]}
            assert list(found) == [0, 1, 2, 5, 7] and found[2] == found[0] < found[1] == found[5]


def test_purposes_of_a_plug_in_have_a_name_and_a_colour(charts):
    curve = [at(0, parameters=1, **{'it\'s "own"': 2}), at(8, parameters=1)]
    chart = charts(with_pipeline_curves(curve)).charts["memory_over_time_pipeline"]
    assert legend(chart)[1] == 'It\'s "own"' and len(areas(chart)) == 2
    assert b"NaN" not in pictures(chart, ("svg",))["svg"]


def test_the_peak_has_its_value_and_what_was_predicted(charts):
    predicted = [at(0, parameters=100), at(4, 240, parameters=100, activations=40), at(7)]
    chart = charts(with_pipeline_curves(SHORT, predicted)).charts["memory_over_time_pipeline"]
    (peak,) = rows(chart, "room")
    assert peak["x"] == 5 and peak["text"] == "260 MiB, predicted 240 MiB"
    assert peak["words"] == (
        "device 0, peak\n260 MiB, predicted 240 MiB, after 5.00 ms\nParameters 100 MiB\n"
        "Activations 50.0 MiB\nTemporary 110 MiB"
    )
    assert legend(chart)[2:] == ["Temporary peak", "Predicted total", "Peak"]
    assert "the simulator predicts" in chart.caption
    assert "peaks after 5.00 ms at 260 MiB, predicted 240 MiB" in chart.words
    assert len(chart.description.split()) <= 50
    totals = layers(chart, "line")[-1]["data"]["values"]
    assert [row["x"] for row in totals] == [0, 4, 7]


def test_without_a_prediction_there_is_no_dashed_line(charts):
    chart = charts(with_pipeline_curves([at(0, parameters=1), at(8, parameters=1)])).charts[
        "memory_over_time_pipeline"
    ]
    assert len(layers(chart, "line")) == 1 and "Predicted total" not in legend(chart)
    assert "predict" not in chart.caption + chart.words
    assert rows(chart, "room")[0]["text"] == "1.00 MiB"


def test_all_lanes_have_one_scale_and_their_own_ticks(charts):
    curve = [at(0, device=device, parameters=held) for device, held in ((0, 300), (1, 150))]
    curve += [at(9, device=device, parameters=held) for device, held in ((0, 300), (1, 150))]
    chart = charts(with_pipeline_curves(curve)).charts["memory_over_time_pipeline"]
    low, *_, high = sorted(areas(chart)[memory_color("parameters")], key=lambda row: row["y2"])
    assert high["y"] - high["y2"] == pytest.approx(2 * (low["y"] - low["y2"]), abs=0.02)
    assert high["lane"] == 0 and low["lane"] == 1, "the first device is the uppermost"
    axis = chart.view["encoding"]["y"]["axis"]
    assert len(axis["values"]) == 8 and axis_title(chart, "y") == "Memory (MiB)"
    ticks = json.loads(names(chart, "y").removesuffix("[datum.value]"))
    assert list(ticks.values()) == 2 * ["0", "100", "200", "300"]


def test_lanes_name_the_ranks_where_there_are_several(charts):
    made = charts(fixture_memory_curves.over_ranks()).charts["memory_over_time_ddp"]
    found = [row["text"] for row in rows(made, "y", "text")]
    assert found == ["rank 0, device 0", "rank 1, device 1"]


def test_the_fullest_devices_are_shown_and_it_is_said(charts):
    chart = charts(with_pipeline_curves(crowd(12))).charts["memory_over_time_pipeline"]
    found = [row["text"] for row in rows(chart, "y", "text")]
    assert found == [f"rank {rank}, device {rank}" for rank in range(4, 12)]
    assert len(found) == MOST_DEVICES
    assert chart.caption.endswith("Shown: the 8 fullest of 12 devices.")


def test_long_curves_become_short_and_keep_their_peak(charts):
    curve = crowd(2)
    curve[777]["bytes"]["activations"] = 400 * MEBIBYTE
    curve[777]["most_bytes"] = 500 * MEBIBYTE
    document = with_pipeline_curves(curve, copy.deepcopy(curve))
    chart = charts(document).charts["memory_over_time_pipeline"]
    highest = [row for row in layers(chart, "line")[0]["data"]["values"] if row["lane"] == 0]
    assert max(highest, key=lambda row: row["y"])["x"] == pytest.approx(777 / 2, abs=2)
    assert max(row["y"] for row in highest) == rows(chart, "room")[0]["y"]
    assert highest[0]["x"] == 0 and highest[-1]["x"] == pytest.approx(1999 / 2)
    assert all(len(found) <= 1400 for found in areas(chart).values())
    every = charts(with_pipeline_curves(crowd(12))).charts["memory_over_time_pipeline"]
    assert all(len(found) <= 1400 for found in areas(every).values())
    assert len(json.dumps(every.page_specification)) < 200_000


def test_a_step_of_no_memory_is_drawn(charts):
    chart = charts(with_pipeline_curves([at(0.0)])).charts["memory_over_time_pipeline"]
    assert b"NaN" not in pictures(chart, ("svg",))["svg"] and legend(chart)[0] == "Temporary peak"


EARLY = [at(0, 399, parameters=390), at(1, parameters=1), at(90, parameters=1)]
LATE = [at(0, rank=1, device=1, parameters=1), at(89, 399, rank=1, device=1, parameters=1)]
LATE += [at(90, rank=1, device=1, parameters=1)]


@pytest.mark.slow
@pytest.mark.xdist_group("report_in_browser")
@pytest.mark.parametrize(("scheme", "width"), headless.VIEWS)
def test_words_stand_apart_and_inside(chromium, tmp_path, scheme, width):
    """A peak at the very left, beside its device's name, and one at the very right."""
    document = with_pipeline_curves(EARLY + LATE, EARLY + LATE)
    source = tmp_path / "results.json"
    source.write_text(json.dumps(summarised(document)), encoding="utf-8")
    assert command.main(["report", str(source)]) == 0
    page = tmp_path / "report.html"
    with headless.opened(chromium, page, width, color_scheme=scheme) as seen:
        figure = seen.hover("#memory_over_time_pipeline")
        (plot,) = headless.boxes(figure.locator(".plot"))
        words = headless.boxes(figure.locator(".plot svg text"))
        assert sum("predicted" in box.text for box in words) == 4, "each with its ground"
        assert all(plot.holds(box) for box in words)
        for one, other in combinations(words, 2):
            assert one.text == other.text or not one.meets(other), (one, other)
        figure.locator(".plot").focus()
        seen.page.keyboard.press("ArrowRight")
        told = seen.page.locator(".told").inner_text()
        assert told == "rank 0, device 0\nParameters: at most 390 MiB, 390 MiB at the peak"
        assert seen.complaints == []
