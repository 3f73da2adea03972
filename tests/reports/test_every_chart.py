"""What holds for every chart there is, also for one that somebody adds."""

import json
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import fixture_collectives
import fixture_history
import fixture_ladder
import fixture_lengths
import fixture_many_rows
import fixture_memory_curves
import fixture_results
import fixture_trainings
import pytest
import stratagem_reports.charts
from drawn import charts_of, layers, legend, rows
from stratagem_reports.analysis.labels import schedule_label, strategy_label
from stratagem_reports.charts import theme
from stratagem_reports.charts.chart_limits import MOST_BARS, MOST_SERIES
from stratagem_reports.charts.marks import spread
from stratagem_reports.charts.registry import ChartSet, draw_charts, registered
from stratagem_reports.charts.render import pictures
from stratagem_reports.history.series import series_of
from stratagem_reports.history.trend import trend_of
from stratagem_reports.history.trend_page import trend_chart
from stratagem_reports.results.load import load_results, load_simulation
from stratagem_reports.results.training import load_trainings

ADDRESS = re.compile(r"\w+://[^\s\"'<>)]+")
KNOWN_ADDRESSES = {
    "https://vega.github.io/schema/vega-lite/v6.json",
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1999/xlink",
}


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """{source: the charts drawn from it}."""
    folder = tmp_path_factory.mktemp("every")

    def written(document):
        path = folder / "file.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    many = fixture_history.runs(40, step_at=25, factor=1.1)
    (series,) = series_of(many + fixture_history.runs(40, first=40, seed=3))
    trend = trend_of(series, "step_ms", max_p=0.001, min_change=1.0)
    collectives = load_results(written(fixture_collectives.collectives()))
    simulation = load_simulation(written(fixture_results.simulation()))
    start, *events, end = fixture_trainings.training()
    whole = {"name": "single/toy", "start": start, "events": events, "end": end}
    trainings = load_trainings([written({"schema": "stratagem-train/1", "trainings": [whole]})])
    strategies = charts_of(written, fixture_many_rows.many_rows(60))
    ladder = charts_of(written, fixture_ladder.ladder()).charts
    strategies.charts["data_parallel_ladder"] = ladder["data_parallel_ladder"]
    lengths = charts_of(written, fixture_lengths.lengths()).charts
    strategies.charts["sequence_length"] = lengths["sequence_length"]
    curves = charts_of(written, fixture_memory_curves.with_curves()).charts
    strategies.charts["memory_over_time_pipeline"] = curves["memory_over_time_pipeline"]
    return {
        "strategies": strategies,
        "collectives": draw_charts("collectives", collectives),
        "simulation": draw_charts("simulation", simulation),
        "trend": ChartSet({"trend": trend_chart(trend)}),
        "training": draw_charts("training", trainings),
    }


@pytest.fixture(params=[(chart.source, chart.name) for chart in registered()], ids="/".join)
def chart(request, every):
    """A registered chart; the first of those that a name with a star stands for."""
    source, name = request.param
    found = every[source].charts
    if name.endswith("*"):
        alone = {chart.name for chart in registered(source)}
        name = next(one for one in found if one.startswith(name[:-1]) and one not in alone)
    return found[name]


@pytest.mark.parametrize("colors", ["light", "dark"])
def test_it_is_drawn_as_svg_and_png(chart, colors):
    made = pictures(chart, ("svg", "png"), colors)
    root = ElementTree.fromstring(made["svg"])
    assert made["png"].startswith(b"\x89PNG")
    size = [int.from_bytes(made["png"][at : at + 4], "big") for at in (16, 20)]
    assert size == pytest.approx([2.0 * float(root.get(key)) for key in ("width", "height")], abs=1)
    text = made["svg"].decode()
    assert text.count("<path") > 10 and "light-dark" not in text and "NaN" not in text
    identifiers = {node.get("id") for node in root.iter() if node.get("id")}
    assert set(re.findall(r"url\(#([\w-]+)\)", text)) <= identifiers


def test_it_says_in_words_what_it_shows(chart):
    root = ElementTree.fromstring(pictures(chart, ("svg",))["svg"])
    words = [root.find(f"{{http://www.w3.org/2000/svg}}{name}").text for name in ("title", "desc")]
    assert words == [chart.title, chart.description] and root.get("role") == "img"
    assert len(chart.description) > 60 and chart.description.startswith(chart.title)
    every = [row for layer in layers(chart) for row in layer["data"]["values"]]
    told = [row["words"] for row in every if "words" in row]
    assert told and all("\n" in words for words in told)


def test_it_names_no_address(chart):
    drawn = pictures(chart, ("svg",))["svg"].decode()
    text = json.dumps([chart.specification, chart.page_specification]) + drawn
    assert set(ADDRESS.findall(text)) <= KNOWN_ADDRESSES


def test_the_same_data_give_the_same_bytes(chart, pictures_made):
    first = pictures(chart, ("svg", "png"))
    pictures_made.clear()
    assert pictures(chart, ("svg", "png")) == first


def test_a_page_shows_the_very_same_layers(chart):
    picture, page = chart.specification, chart.page_specification
    assert picture["datasets"].items() >= page["datasets"].items()
    assert picture["encoding"] == page["encoding"]
    assert page["width"] == "container" and "title" not in page
    page["layer"][0].pop("params", None)
    shown = len(page["layer"])
    assert picture["layer"][:shown] == page["layer"]
    assert len(picture["layer"]) == shown + bool(chart.legend), "the page has a legend of its own"


def test_a_chart_is_one_file(tmp_path, monkeypatch, write_json):
    (tmp_path / "speed.py").write_text(
        "from stratagem_reports.charts.chart import Chart\n"
        "from stratagem_reports.charts.marks import described, dots, quantity\n"
        "from stratagem_reports.charts.registry import Registered\n\n"
        "def draw(results, selection):\n"
        "    rows = [{'x': 1, 'y': 2, 'words': 'one\\ntwo'}]\n"
        "    axes = {'x': quantity('x', 0, 3), 'y': quantity('y', 0, 3)}\n"
        "    view = {'width': 100, 'height': 100, 'encoding': axes, 'layer': [dots(rows)]}\n"
        "    return Chart('Speed', selection.workload, '', described(rows), view)\n\n"
        "CHARTS = (Registered('speed', 15, draw),)\n"
    )
    path = [*stratagem_reports.charts.__path__, str(tmp_path)]
    monkeypatch.setattr(stratagem_reports.charts, "__path__", path)
    found = charts_of(write_json, fixture_results.results()).charts
    assert list(found)[2] == "speed" and found["speed"].description == "Speed. one: two."
    assert b"Speed" in pictures(found["speed"], ("svg",))["svg"]


def test_a_strategy_of_a_plug_in_has_a_name_and_a_colour(write_json):
    document = fixture_results.results()
    for entry in document["benchmarks"]:
        if entry["run_name"].startswith("model_parallel"):
            for key in ("name", "run_name"):
                entry[key] = entry[key].replace("model_parallel", "zig_zag")
            if "stratagem" in entry:
                entry["stratagem"]["strategy"] = "zig_zag"
    charts = charts_of(write_json, document).charts
    assert charts["gantt_zig_zag"].title == "Median step: Zig zag"
    (bar,) = [row for row in rows(charts["memory"], "top") if "Zig zag" in row["words"]]
    assert bar["color"] == theme.strategy_color("zig_zag") != theme.strategy_color("pipeline")
    assert strategy_label("zig_zag") == "Zig zag" and schedule_label("zig_zag") == "zig_zag"


def test_names_are_no_markup(write_json):
    document = fixture_results.results()
    for entry in document["benchmarks"]:
        entry["run_name"] = entry["name"] = entry["run_name"] + "/cut:<img src=x>"
    for chart in charts_of(write_json, document).charts.values():
        assert b"<img" not in pictures(chart, ("svg",))["svg"]


def test_hundreds_of_rows_are_drawn_as_the_fastest_and_it_is_said(write_json):
    made = charts_of(write_json, fixture_many_rows.many_rows(200)).charts
    names = [row["words"].split("\n")[0] for row in rows(made["memory"], "top")]
    assert len(names) == MOST_BARS
    assert names[:3] == ["Single device", "Single, all cores", "Model parallel"]
    assert "the fastest of 200 rows" in made["breakdown"].caption
    lines = [label for label in legend(made["split_size_tradeoff"]) if label.startswith("Pipeline")]
    assert len(lines) == MOST_SERIES


def test_every_colour_is_a_pair_and_its_ink_can_be_read():
    for kind, color in theme.ACTIONS.items():
        light, dark = (theme.in_theme(color, name) for name in ("light", "dark"))
        assert re.fullmatch("#[0-9A-F]{6}", light) and re.fullmatch("#[0-9A-F]{6}", dark), kind
    assert theme.in_theme(theme.ink_on(theme.pair("#FFFFFF", "#000000")), "dark") == "#FFFFFF"
    assert theme.in_theme(theme.ink_on(theme.pair("#FFFFFF", "#000000")), "light") == "#111111"


def test_places_are_moved_apart_and_keep_their_order():
    placed = spread([1.0, 1.1, 5.0, 0.9], 1.0)
    assert placed[3] < placed[0] < placed[1] < placed[2]
    ordered = sorted(placed)
    assert all(high - low > 0.99 for low, high in pairwise(ordered))
