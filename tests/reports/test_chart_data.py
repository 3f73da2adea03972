"""What the charts are told to show."""

import copy

import fixture_results
import pytest
from stratagem_reports.chart_data import build_charts
from stratagem_reports.chart_types import BarChart
from stratagem_reports.load import load_results
from stratagem_reports.selection import select
from stratagem_reports.statistics import samples_ms

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
]


@pytest.fixture
def built(write_json):
    def build(document):
        results = load_results(write_json(document))
        selection = select(results)
        return selection, build_charts(results, selection)

    return build


def only(document, keep):
    """The document with the rows whose name satisfies `keep`."""
    document = copy.deepcopy(document)
    document["benchmarks"] = [row for row in document["benchmarks"] if keep(row["run_name"])]
    return document


def test_a_whole_file_feeds_every_chart_in_order(built):
    _, charts = built(fixture_results.results())
    assert list(charts.charts) == NAMES
    assert charts.left_out == {}


def test_aggregates_are_no_samples(built):
    selection, _ = built(fixture_results.results())
    assert all(len(samples_ms(item.row)) == 6 for item in selection.rows)
    assert len(selection.rows) == 11


def test_bars_show_medians_intervals_and_the_all_cores_baseline(built):
    selection, charts = built(fixture_results.results())
    chart: BarChart = charts.charts["mp_vs_rn_vs_pp"]
    assert [bar.label for bar in chart.bars] == [
        "Model parallel",
        "Single device",
        "Single, all cores",
        "Pipeline, 1F1B\nsplit 12 (best)",
    ]
    bar = chart.bars[0]
    assert bar.point.time_ms == selection.model_parallel.summary.median
    assert bar.point.low_ms == min(bar.point.samples_ms)
    assert bar.point.high_ms == max(bar.point.samples_ms)
    assert chart.bars[1].speed is None
    assert chart.bars[3].speed == pytest.approx(
        chart.bars[1].point.time_ms / chart.bars[3].point.time_ms
    )
    assert "96.9%" in chart.error_label and "within one run" in chart.error_label


def test_without_a_second_single_row_there_is_no_such_bar(built):
    document = only(fixture_results.results(), lambda name: not name.endswith("cores:2"))
    _, charts = built(document)
    labels = [bar.label for bar in charts.charts["mp_vs_rn"].bars]
    assert labels == ["Model parallel", "Single device"]


def test_tradeoff_has_every_split_the_best_and_both_predictions(built):
    _, charts = built(fixture_results.results())
    chart = charts.charts["split_size_tradeoff"]
    (series,) = chart.series
    assert series.splits == list(fixture_results.SPLITS)
    times = [point.time_ms for point in series.points]
    assert chart.best_index == times.index(min(times))
    assert all(value is not None for value in series.predicted_ms)
    assert all(value is not None for value in series.predicted_from_two_splits_ms)
    assert [label for label, _, _ in chart.levels] == [
        "Single device",
        "Single, all cores",
        "Model parallel",
    ]


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
    labels = [series.label for series in charts.charts["split_size_tradeoff"].series]
    assert sorted(labels) == ["Pipeline, 1F1B", "Pipeline, GPipe"]


def test_gantt_is_of_the_best_and_of_the_worst_split(built):
    _, charts = built(fixture_results.results())
    assert "split 12" in charts.charts["gantt_best"].title
    assert "split 1," in charts.charts["gantt_worst"].title
    forward = [item for item in charts.charts["gantt_worst"].actions if item.kind == "forward"]
    assert len(forward) == 2 * fixture_results.BATCH


def test_breakdown_adds_up_to_the_step(built):
    _, charts = built(fixture_results.results())
    single = charts.charts["breakdown"].bars[0]
    assert single.label == "Single device"
    assert sum(single.parts_ms.values()) == pytest.approx(2160.0)


def test_tutorial_bars_are_means_with_standard_deviations_and_split_20(built):
    document = fixture_results.results("tutorial", (1, 10, 12, 20), False, 10)
    selection, charts = built(document)
    chart = charts.charts["mp_vs_rn_vs_pp"]
    assert chart.bars[-1].label == "Pipeline, 1F1B\nsplit 20"
    single = selection.single.summary
    assert len(single.samples) == 10
    assert chart.bars[1].point.time_ms == single.mean
    assert chart.bars[1].point.high_ms == pytest.approx(single.mean + single.deviation)
    assert chart.error_label == "standard deviation over 10 repetitions"
    assert set(charts.charts["split_size_tradeoff"].series[0].predicted_ms) == {None}


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


def test_oversubscribed_rows_are_not_charted(built):
    document = fixture_results.results()
    for row in document["benchmarks"]:
        if "split:12/" in row["run_name"] and "stratagem" in row:
            row["stratagem"]["marks"] = ["oversubscribed"]
    selection, charts = built(document)
    assert 12 not in charts.charts["split_size_tradeoff"].series[0].splits
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


def test_what_the_configuration_leaves_out_is_read_from_the_name(built):
    document = fixture_results.results()
    for row in document["benchmarks"]:
        if "stratagem" in row:
            row["stratagem"]["config"] = {"split_size": None}
    selection, charts = built(document)
    assert selection.workload == "ResNet-50, batch 48, 128\u00d7128 images, 2 devices"
    assert charts.charts["split_size_tradeoff"].series[0].splits == list(fixture_results.SPLITS)
    assert [bar.strategy for bar in charts.charts["mp_vs_rn"].bars][-1] == "single_all_cores"


def test_scaling_begins_with_the_single_device(built):
    selection, charts = built(fixture_results.results())
    chart = charts.charts["scaling"]
    for series in chart.series:
        assert [point.devices for point in series.points] == [1, 2]
        assert series.points[0].rate == chart.single
        assert series.points[0].low <= chart.single <= series.points[0].high
    pipeline = next(series for series in chart.series if series.strategy == "pipeline")
    best = 1e3 * fixture_results.BATCH / selection.best_pipeline.summary.median
    assert pipeline.points[1].rate == pytest.approx(best)


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
    pipeline = next(series for series in chart.series if series.strategy == "pipeline")
    assert [(point.devices, point.simulated) for point in pipeline.points] == [
        (1, False),
        (2, False),
        (4, True),
    ]
    assert pipeline.points[2].rate == pytest.approx(1e3 * fixture_results.BATCH / 600.0)
    assert "Hollow" in chart.footnote
    others = [series for series in chart.series if series.strategy != "pipeline"]
    assert not any(point.simulated for series in others for point in series.points)


def test_memory_has_a_dot_for_every_device(built):
    _, charts = built(fixture_results.results())
    bars = {bar.label: bar.peak_bytes for bar in charts.charts["memory"].bars}
    assert bars["Model parallel"] == [3_400_000_000, 2_500_000_000]
