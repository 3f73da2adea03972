"""What the charts of a results file show."""

import copy

import fixture_results
import pytest
from drawn import axis_title, charts_of, layers, legend, names, rows
from reference_summaries import summarised
from stratagem_reports.analysis.selection import select
from stratagem_reports.charts.registry import draw_charts
from stratagem_reports.charts.theme import strategy_color
from stratagem_reports.results.load import load_results

NAMES = [
    "mp_vs_rn",
    "mp_vs_rn_vs_pp",
    "split_size_tradeoff",
    "gantt_best",
    "gantt_worst",
    "gantt_single",
    "gantt_model_parallel",
    "breakdown",
    "scaling",
    "memory",
    "memory_by_category",
    "time_and_memory",
]


@pytest.fixture
def built(write_json):
    def build(document):
        results = load_results(write_json(summarised(document)))
        selection = select(results)
        return selection, draw_charts("strategies", results, selection)

    return build


def only(document, keep):
    """The document with the rows whose name satisfies `keep`."""
    document = copy.deepcopy(document)
    document["benchmarks"] = [row for row in document["benchmarks"] if keep(row["run_name"])]
    return document


def first_lines(found):
    return [row["words"].split("\n")[0] for row in found]


def test_a_whole_file_feeds_every_chart_in_order(built):
    _, charts = built(fixture_results.results())
    assert list(charts.charts) == NAMES
    assert charts.left_out == {}


def test_aggregates_are_no_samples(built):
    selection, _ = built(fixture_results.results())
    assert all(row.summary.count == 7 for row in selection.rows)
    assert len(selection.rows) == 11


def test_bars_show_medians_intervals_and_the_all_cores_baseline(built):
    selection, charts = built(fixture_results.results())
    chart = charts.charts["mp_vs_rn_vs_pp"]
    assert first_lines(rows(chart, "factor")) == [
        "Model parallel",
        "Single device",
        "Single, all cores",
        "Pipeline, 1F1B split 12 (best)",
    ]
    bars = rows(chart, "factor")
    summary = selection.model_parallel.summary
    interval = summary.interval
    seconds = [value / 1e3 for value in (summary.median, interval.low, interval.high)]
    assert [bars[0][key] for key in ("value", "low", "high")] == pytest.approx(seconds, rel=1e-6)
    assert bars[1]["factor"] == ""
    assert bars[2]["color"] == strategy_color("single_all_cores")
    samples = rows(chart, "shift")
    assert len(samples) == 7 * len(bars) and len({row["shift"] for row in samples}) == 7
    error, sample = legend(chart)
    assert "98.4%" in error and "within one run" in error and sample == "one sample"


def test_the_factor_of_a_bar_is_the_tables_and_no_ratio_of_medians(write_json):
    document = summarised(fixture_results.results())
    for entry in document["benchmarks"]:
        for ratio in entry.get("stratagem", {}).get("summary", {}).get("ratios", {}).values():
            ratio["value"] = 1.23
    results = load_results(write_json(document))
    charts = draw_charts("strategies", results, select(results)).charts
    factors = [bar["factor"] for bar in rows(charts["mp_vs_rn_vs_pp"], "factor")]
    assert factors == ["1.23\u00d7", "", "1.23\u00d7", "1.23\u00d7"]


def test_rows_that_disturbed_launches_would_decide_have_no_factor(write_json):
    document = fixture_results.results(failed=False)
    for entry in document["benchmarks"]:
        if entry["run_type"] == "iteration":
            entry["stratagem"]["marks"] = ["disturbed"]
    charts = charts_of(write_json, document).charts
    assert {bar["factor"] for bar in rows(charts["mp_vs_rn_vs_pp"], "factor")} == {""}
    note = charts["split_size_tradeoff"].caption
    assert "not significantly different from" in note and "as fast as" not in note


def test_without_a_second_single_row_there_is_no_such_bar(built):
    document = only(fixture_results.results(), lambda name: not name.endswith("cores:2"))
    _, charts = built(document)
    bars = rows(charts.charts["mp_vs_rn"], "factor")
    assert first_lines(bars) == ["Model parallel", "Single device"]


def test_tradeoff_has_every_split_the_best_one_and_the_predictions(built):
    selection, charts = built(fixture_results.results())
    chart = charts.charts["split_size_tradeoff"]
    points = rows(chart, "predicted", "value")
    splits = [int(line.split("split ")[1]) for line in first_lines(points)]
    assert splits == list(fixture_results.SPLITS)
    assert all(point["predicted"] for point in points)
    assert "simulator's prediction" in legend(chart)
    (best,) = rows(chart, "from")
    assert best["x"] == splits.index(12) and best["text"] == "best: split 12\n1.64 s"
    assert "The best split, 12, is 1.34\u00d7 as fast as model parallel" in chart.caption
    assert best["y"] == min(point["value"] for point in points)
    levels = rows(chart, "color", "text")
    assert first_lines(levels) == ["Single device", "Single, all cores", "Model parallel"]
    assert levels[0]["y"] == pytest.approx(selection.single.time_ms / 1e3, rel=1e-6)


def test_close_levels_have_their_names_apart(built):
    _, charts = built(fixture_results.results())
    single, _, model_parallel = rows(charts.charts["split_size_tradeoff"], "at")
    assert abs(single["y"] - model_parallel["y"]) < 0.05
    assert abs(single["at"] - model_parallel["at"]) > 0.2


def test_schedules_make_their_own_series(built):
    document = fixture_results.results(failed=False)
    for row in [row for row in document["benchmarks"] if row["name"].startswith("pipeline")]:
        other = copy.deepcopy(row)
        for key in ("name", "run_name"):
            other[key] = other[key].replace("1f1b", "gpipe")
        if "stratagem" in other:
            other["stratagem"]["config"]["schedule"] = "gpipe"
        document["benchmarks"].append(other)
    _, charts = built(document)
    labels = legend(charts.charts["split_size_tradeoff"])
    assert sorted(labels[:2]) == ["Pipeline, 1F1B", "Pipeline, GPipe"]


def test_gantt_is_of_the_best_and_of_the_worst_split(built):
    _, charts = built(fixture_results.results())
    assert "split 12" in charts.charts["gantt_best"].title
    assert "split 1," in charts.charts["gantt_worst"].title
    boxes = rows(charts.charts["gantt_worst"], "start")
    forward = [name for name in first_lines(boxes) if name == "Forward"]
    assert len(forward) == 2 * fixture_results.BATCH


def test_breakdown_adds_up_to_the_step(built):
    _, charts = built(fixture_results.results())
    chart = charts.charts["breakdown"]
    own = [row for row in rows(chart, "start") if row["words"].startswith("Single device\n")]
    assert [row["start"] for row in own[1:]] == [row["end"] for row in own[:-1]]
    assert own[0]["start"] == 0.0 and own[-1]["end"] == pytest.approx(2.16, rel=1e-6)
    assert rows(chart, "text")[0]["text"] == "mean 2.16 s"
    assert axis_title(chart, "x") == "Mean step time (seconds)" and "mean step" in chart.caption


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (fixture_results.results(failed=False), "Median step time"),
        (fixture_results.results("tutorial", (1, 12), False, 10), "Mean time of one training call"),
    ],
    ids=["steady", "tutorial"],
)
def test_every_axis_of_rows_times_names_the_statistic(built, document, words):
    _, charts = built(document)
    for name in ("mp_vs_rn", "mp_vs_rn_vs_pp", "split_size_tradeoff", "time_and_memory"):
        assert axis_title(charts.charts[name], "y") == f"{words} (seconds)", name


def test_hidden_communication_stripes_the_end_of_compute(built):
    document = fixture_results.results()
    for entry in document["benchmarks"]:
        for device in entry.get("stratagem", {}).get("devices", []):
            device["breakdown_ms"]["communication_hidden"] = 100.0
    _, charts = built(document)
    chart = charts.charts["breakdown"]
    compute, hidden = rows(chart, "start")[:2]
    assert "Communication hidden 100 ms" in hidden["words"]
    assert hidden["end"] == compute["end"] == pytest.approx(hidden["start"] + 0.1, rel=1e-6)
    assert hidden["color"].startswith("url(") and "Communication hidden" in legend(chart)


def test_tutorial_bars_are_means_with_standard_deviations_and_split_20(built):
    document = fixture_results.results("tutorial", (1, 10, 12, 20), False, 10)
    selection, charts = built(document)
    chart = charts.charts["mp_vs_rn_vs_pp"]
    bars = rows(chart, "factor")
    assert first_lines(bars)[-1] == "Pipeline, 1F1B split 20"
    single = selection.single.summary
    assert len(single.samples) == 10
    assert bars[1]["value"] == pytest.approx(single.mean / 1e3, rel=1e-6)
    assert bars[1]["high"] == pytest.approx((single.mean + single.deviation) / 1e3, rel=1e-6)
    assert legend(chart)[0] == "standard deviation over 10 repetitions"
    assert "simulator's prediction" not in legend(charts.charts["split_size_tradeoff"])


@pytest.mark.parametrize(
    ("keep", "missing"),
    [
        (
            lambda name: name.startswith("single"),
            {
                "mp_vs_rn": "model_parallel",
                "mp_vs_rn_vs_pp": "model_parallel and pipeline",
                "split_size_tradeoff": "pipeline",
                "gantt_best": "pipeline",
                "gantt_worst": "pipeline",
                "scaling": "several devices",
            },
        ),
        (
            lambda name: not name.startswith("single"),
            {"mp_vs_rn": "single", "mp_vs_rn_vs_pp": "single", "scaling": "single"},
        ),
        (
            lambda name: not name.startswith("pipeline") or "split:8/" in name,
            {"split_size_tradeoff": "one split", "gantt_worst": "one split"},
        ),
    ],
)
def test_charts_without_data_are_left_out_with_the_reason(built, keep, missing):
    _, charts = built(only(fixture_results.results(), keep))
    assert set(charts.left_out) == set(missing)
    for name, words in missing.items():
        assert words in charts.left_out[name]


def test_no_timeline_no_gantt(built):
    document = fixture_results.results()
    for row in document["benchmarks"]:
        if "stratagem" in row:
            row["stratagem"]["timeline"] = []
    _, charts = built(document)
    assert set(charts.left_out) == {name for name in NAMES if name.startswith("gantt_")}


def test_rows_of_other_kernels_are_a_series_and_no_baselines(built):
    document = fixture_results.results()
    others = [
        copy.deepcopy(row) for row in document["benchmarks"] if row["run_type"] == "iteration"
    ]
    for row in document["benchmarks"]:
        row.get("stratagem", {}).get("config", {})["kernels"] = "own"
    for row in others:
        row["name"] = row["run_name"] = row["run_name"] + "/kernels:reference"
        row["stratagem"]["config"]["kernels"] = "reference"
        row["stratagem"]["step_ms"] = [0.9 * step for step in row["stratagem"]["step_ms"]]
    document["benchmarks"] += others
    selection, charts = built(document)
    assert [row.option("kernels") for row in selection.baselines] == ["own"] * 3
    assert {row.option("kernels") for row in selection.rows} == {"own", "reference"}
    names = legend(charts.charts["split_size_tradeoff"])[:2]
    assert sorted(names) == ["Pipeline, 1F1B", "Pipeline, 1F1B, kernels reference"]


def test_oversubscribed_rows_are_not_charted(built):
    document = fixture_results.results()
    for row in document["benchmarks"]:
        if "split:12/" in row["run_name"] and "stratagem" in row:
            row["stratagem"]["marks"] = ["oversubscribed"]
    selection, charts = built(document)
    points = rows(charts.charts["split_size_tradeoff"], "predicted")
    assert len(points) == 7 and not any("split 12\n" in point["words"] for point in points)
    assert any("oversubscribed" in note for note in selection.notes)


def test_other_workloads_stay_out_of_the_charts(built):
    document = fixture_results.results()
    extra = copy.deepcopy(document["benchmarks"][0])
    extra["run_name"] = extra["name"] = "single/resnet50/devices:2/batch:8/image:128"
    extra["stratagem"]["config"]["global_batch_size"] = 8
    document["benchmarks"].insert(0, extra)
    selection, _ = built(document)
    assert "batch 48" in selection.workload
    assert len(selection.rows) == 11
    assert any("more than one workload" in note for note in selection.notes)


def test_scaling_begins_with_the_single_device(built):
    selection, charts = built(fixture_results.results())
    chart = charts.charts["scaling"]
    own = [
        layer["data"]["values"]
        for layer in layers(chart, "line")
        if "strokeDash" not in layer["mark"]
    ]
    assert len(own) == 2 and all([row["x"] for row in found] == [1, 2] for found in own)
    single = 1e3 * fixture_results.BATCH / selection.single.summary.median
    for first, _ in own:
        assert first["low"] <= first["y"] <= first["high"]
        assert first["y"] == pytest.approx(single, rel=1e-6)
    (pipeline,) = [found for found in own if found[0]["words"].startswith("Pipeline")]
    best = 1e3 * fixture_results.BATCH / selection.best_pipeline.summary.median
    assert pipeline[1]["y"] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("mark", ["oversubscribed", "shared", "straggler"])
def test_devices_without_cores_of_their_own_do_not_scale(built, mark):
    document = copy.deepcopy(fixture_results.results())
    for row in document["benchmarks"]:
        if row["run_type"] == "iteration" and not row["run_name"].startswith("single"):
            row["stratagem"]["marks"] = [mark]
    _, charts = built(document)
    assert "scaling" in charts.left_out


def test_more_devices_than_cores_are_simulated(built):
    document = fixture_results.results()
    added = []
    for row in document["benchmarks"]:
        if row["run_type"] != "iteration" or not row["run_name"].startswith("pipeline"):
            continue
        larger = copy.deepcopy(row)
        larger["name"] += "/devices:4"
        larger["run_name"] += "/devices:4"
        larger["stratagem"]["marks"] = ["oversubscribed"]
        larger["stratagem"]["predicted_ms"] = 600.0
        larger["stratagem"]["config"] = larger["stratagem"].get("config", {}) | {"devices": 4}
        added.append(larger)
    document["benchmarks"] += added
    _, charts = built(document)
    chart = charts.charts["scaling"]
    dotted = [
        layer["data"]["values"]
        for layer in layers(chart, "line")
        if layer["mark"].get("strokeDash") == [2, 4] and len(layer["data"]["values"]) > 1
    ]
    ((last, hollow),) = dotted
    assert (last["x"], hollow["x"]) == (2, 4) and hollow["words"].startswith("Pipeline, 4 devices")
    assert hollow["y"] == pytest.approx(1e3 * fixture_results.BATCH / 600.0, rel=1e-6)
    assert "Hollow" in chart.caption and "simulated" in legend(chart)


def test_memory_has_a_dot_for_every_device(built):
    _, charts = built(fixture_results.results())
    chart = charts.charts["memory"]
    dots = [row for row in rows(chart, "x") if row["words"].startswith("Model parallel\n")]
    gibibytes = [value / 2**30 for value in (3_400_000_000, 2_500_000_000)]
    assert [dot["x"] for dot in dots] == pytest.approx(gibibytes, rel=1e-6)
    assert '"Model parallel"' in names(chart, "y") and "GiB" in dots[0]["words"]
