"""The curves of trainings: what is read of their logs, and what is drawn."""

import json

import pytest
from drawn import layers, legend
from fixture_trainings import training
from stratagem_reports.charts.registry import draw_charts
from stratagem_reports.results.errors import InputError
from stratagem_reports.results.training import is_training, load_trainings


@pytest.fixture
def log(tmp_path):
    def write(*trainings):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        events = [event for one in trainings for event in one]
        texts = [json.dumps(event, separators=(",", ":")) + "\n" for event in events]
        path.write_text("".join(texts), encoding="utf-8")
        return path

    return write


def test_a_log_has_a_curve_for_each_training(log):
    path = log(training(), training("ddp", 0.05))
    assert is_training(path)
    single, ddp = load_trainings([path])
    assert [point.samples for point in single.points] == [8, 12, 20, 24]
    assert [point.loss for point in ddp.points] == [4.0, 2.0, 4.0 / 3, 1.0]
    assert [(at.step, at.samples, at.loss) for at in ddp.evaluations] == [
        (0, 0, 5.0), (2, 12, 3.0), (4, 24, 2.0),
    ]  # fmt: skip


def test_a_loss_that_is_not_finite_is_refused_where_it_would_be_drawn(log):
    whole = training()
    tested = {"event": "evaluation", "split": "test", "step": 2, "loss": "nan"}
    (curve,) = load_trainings([log([*whole, tested])])
    assert len(curve.evaluations) == 3
    path = log([*whole, tested | {"split": "validation"}])
    with pytest.raises(InputError, match="evaluation: loss: expected `float`, got `str`") as caught:
        load_trainings([path])
    assert str(path) in str(caught.value)


def test_a_training_that_went_on_is_one_curve(log):
    whole = training()
    path = log(whole[:4], [whole[0], {"event": "resume", "step": 2}], whole[4:])
    (curve,) = load_trainings([path])
    assert [point.step for point in curve.points] == [1, 2, 3, 4]
    assert [at.step for at in curve.evaluations] == [0, 2, 4]


def test_the_document_of_out_is_read_as_the_log_is(log, tmp_path):
    start, *events, end = training()
    document = {"schema": "stratagem-train/1", "trainings": [
        {"name": "single/toy", "start": start, "events": events, "end": end},
    ]}  # fmt: skip
    path = tmp_path / "training.json"
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    assert is_training(path)
    assert load_trainings([path]) == load_trainings([log(training())])


def test_curves_lie_on_one_another_over_samples_and_part_over_time(log):
    charts = draw_charts("training", load_trainings([log(training()), log(training("ddp", 0.05))])).charts
    assert list(charts) == ["loss_over_samples", "loss_over_time", "data_wait"]
    del charts["data_wait"]
    places = {
        name: [
            [row["x"] for row in layer["data"]["values"]]
            for layer in chart.view["layer"]
            if layer["mark"].get("type") == "line" and "opacity" not in layer["mark"]
        ]
        for name, chart in charts.items()
    }
    assert places["loss_over_samples"] == [[8, 12, 20, 24]] * 2
    assert places["loss_over_time"] == [[0.1, 0.2, 0.3, 0.4], [0.05, 0.1, 0.15, 0.2]]
    for chart in charts.values():
        assert legend(chart) == ["Single device", "DDP", "validation"]
        assert "DDP: from 4.000 to 1.667 in 4 steps and 0.200 s, 0.5% of it waiting for data" in chart.words


def test_waiting_for_data_is_drawn_line_by_line(log):
    slow = [line | {"data_wait_ms": 50.0} if line["event"] == "step" else line
            for line in training("ddp", 0.2)]  # fmt: skip
    chart = draw_charts("training", load_trainings([log(training(), slow)])).charts["data_wait"]
    single, ddp = ([row["y"] for row in layer["data"]["values"]]
                   for layer in chart.view["layer"][:2])  # fmt: skip
    assert single == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert ddp == pytest.approx([25.0] * 4)
    assert "DDP: 25.0% of the steps' 0.800 s went into waiting" in chart.words


def test_a_log_that_does_not_say_how_long_it_waited_has_no_such_chart(log):
    silent = [{key: value for key, value in line.items() if key != "data_wait_ms"}
              for line in training()]  # fmt: skip
    drawn = draw_charts("training", load_trainings([log(silent)]))
    assert "data_wait" in drawn.left_out
    assert "waiting for data" not in drawn.charts["loss_over_time"].words


def test_updates_that_were_skipped_are_marked_under_the_loss(log):
    scaled = training("ddp", 0.05, mixed_precision="float16")
    for line in scaled:
        if line["event"] == "step":
            line["skipped_updates"] = int(line["step"] in (1, 3))
    charts = draw_charts("training", load_trainings([log(training()), log(scaled)])).charts
    for name, places in (("loss_over_samples", [8, 20]), ("loss_over_time", [0.05, 0.15])):
        chart = charts[name]
        (ticks,) = layers(chart, "tick")
        assert [row["x"] for row in ticks["data"]["values"]] == places
        assert "1 update skipped" in ticks["data"]["values"][0]["words"]
        assert legend(chart) == ["Single device", "DDP, float16", "validation", "update skipped"]
        assert "DDP, float16: from 4.000 to 1.667 in 4 steps" in chart.words
        assert "2 updates skipped" in chart.words and "Tick at the bottom" in chart.caption
    plain = draw_charts("training", load_trainings([log(training())])).charts["loss_over_time"]
    assert not layers(plain, "tick") and "skipped" not in plain.words


def test_other_work_is_not_laid_over(log):
    with pytest.raises(InputError, match="trained with model mlp, single/toy with toy"):
        load_trainings([log(training()), log(training("ddp", model="mlp"))])


def test_a_log_without_a_step_has_nothing_to_draw(log):
    with pytest.raises(InputError, match="has no step; nothing to draw"):
        load_trainings([log(training()[:2])])
