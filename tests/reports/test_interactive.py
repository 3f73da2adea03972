"""The interactive figures: what plotly accepts, and the same values as the static charts."""

import copy

import fixture_many_rows
import fixture_results
import pytest
from stratagem_reports.chart_data import build_charts
from stratagem_reports.chart_types import Bandwidth, BandwidthPoint, BandwidthSeries
from stratagem_reports.charts import DARK, LIGHT
from stratagem_reports.crowding import MOST_BARS, MOST_SERIES
from stratagem_reports.interactive import figure
from stratagem_reports.load import load_results
from stratagem_reports.plotly_bundle import load_bundle, policy_hash
from stratagem_reports.report_figures import figure_data
from stratagem_reports.selection import select


@pytest.fixture
def charts(write_json):
    def build(document):
        results = load_results(write_json(document))
        return build_charts(results, select(results)).charts

    return build


def bandwidth():
    points = [BandwidthPoint(2.0**power, power / 2.0, power / 3.0, power) for power in (10, 20)]
    return Bandwidth("Bandwidth", "Gloo", [BandwidthSeries("all_reduce", "All reduce", points)], "")


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_plotly_accepts_every_figure(charts, theme):
    graph_objects = pytest.importorskip("plotly.graph_objects")
    document = fixture_many_rows.many_rows(60)
    made = charts(document)
    assert "schedules" in made and "scaling" in made
    for name, chart in [*made.items(), ("bandwidth", bandwidth())]:
        drawn = graph_objects.Figure(figure(chart, theme))
        assert len(drawn.data) > 0, name


def test_bars_lines_and_boxes_show_the_charts_values(charts):
    made = charts(fixture_results.results())
    bars = figure(made["mp_vs_rn"], LIGHT)["data"][0]
    assert bars["y"] == [bar.point.time_ms / 1000.0 for bar in made["mp_vs_rn"].bars]
    gantt = made["gantt_best"]
    traces = figure(gantt, LIGHT)["data"]
    boxes = [len(trace["x"]) for trace in traces if trace["name"] != "Idle (bubble)"]
    assert sum(boxes) == len(gantt.actions)
    parts = figure(made["breakdown"], LIGHT)["data"]
    for index, bar in enumerate(made["breakdown"].bars):
        whole = sum(trace["x"][index] for trace in parts if trace.get("base"))
        assert whole == pytest.approx(sum(bar.parts_ms.values()) / 1000.0)


def test_the_dark_figure_is_the_light_one_with_the_differences(charts):
    for chart in charts(fixture_results.results()).values():
        data = figure_data(chart)
        patched = copy.deepcopy(data["figure"])
        for path, value in data["dark"]:
            holder = patched
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = value
        assert patched == figure(chart, DARK)


def test_names_are_no_markup_in_hover_texts(charts):
    document = fixture_results.results()
    for entry in document["benchmarks"]:
        entry["run_name"] = entry["name"] = entry["run_name"] + "/cut:<img src=x>"
    words = str(figure(charts(document)["breakdown"], LIGHT))
    assert "<img" not in words and "&lt;img" in words


def test_hundreds_of_rows_are_drawn_as_the_fastest_and_it_is_said(charts):
    made = charts(fixture_many_rows.many_rows(200))
    assert len(made["breakdown"].bars) == len(made["memory"].bars) == MOST_BARS
    assert len(made["split_size_tradeoff"].series) == MOST_SERIES
    assert "the fastest of 200 rows" in made["breakdown"].caption
    labels = [bar.label for bar in made["breakdown"].bars]
    assert labels[:3] == ["Single device", "Single, all cores", "Model parallel"]


def test_the_library_is_packed_the_same_every_time():
    first, second = load_bundle(), load_bundle()
    assert first == second and len(first.packed) < 2_100_000
    assert policy_hash(b"") == "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError) as caught:
        load_bundle()
    assert caught.value.name == "plotly"
