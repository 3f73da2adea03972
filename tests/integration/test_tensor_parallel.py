"""Layers shared by ranks, through the command: results, timeline, and what is refused."""

from __future__ import annotations

import statistics

import pytest

GPT = ["--model", "gpt-tiny", "--global-batch-size", 8, "--optimizer", "adamw"]
BLOCKS, FEATURES, SEQUENCE = 2, 64, 32
ACTIVATIONS = 8 * SEQUENCE * FEATURES * 4


def test_both_layouts_stand_beside_one_device(commands, out):
    done = commands.stratagem(
        "run", *GPT, "--strategy", "single,tensor_parallel,sequence_parallel", "--no-predict",
        "--repetitions", 1, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = commands.results(out)
    for strategy in ("single", "tensor_parallel", "sequence_parallel"):
        run = commands.iterations(results, strategy)[0]
        measured = run["stratagem"]
        assert measured["verification"]["passed"] is True
        tokens = SEQUENCE * measured["config"]["global_batch_size"]
        median_s = statistics.median(measured["step_ms"]) / 1e3
        assert run["tokens_per_second"] == pytest.approx(tokens / median_s)
    (tensor,) = commands.iterations(results, "tensor_parallel")
    assert tensor["stratagem"]["mesh"] == "data=1/pipeline=1/tensor=2"
    reduced = tensor["stratagem"]["communication"]["all_reduce"]
    # Four a block, the embedding's, the head's input, and of the loss three numbers a position.
    assert reduced["calls"] == 4 * BLOCKS + 2 + 2
    assert reduced["payload_bytes"] == (4 * BLOCKS + 2) * ACTIVATIONS + 3 * 8 * SEQUENCE * 4
    for device in tensor["stratagem"]["devices"]:
        parts = device["breakdown_ms"]
        assert sum(parts.values()) - parts["communication_hidden"] == pytest.approx(
            tensor["real_time"], rel=1e-6
        )
        assert parts["communication_exposed"] + parts["wait"] > 0
    kinds = {event["kind"] for event in tensor["stratagem"]["timeline"]}
    assert {"tensor_transfer", "tensor_wait", "forward", "backward"} <= kinds
    (sequence,) = commands.iterations(results, "sequence_parallel")
    traffic = sequence["stratagem"]["communication"]
    assert traffic["reduce_scatter"]["payload_bytes"] == (4 * BLOCKS + 2) * ACTIVATIONS
    # Each layer's input is gathered once more in the backward pass: two a block, and the head's.
    assert traffic["all_gather"]["payload_bytes"] == (6 * BLOCKS + 3) * ACTIVATIONS // 2


def test_what_was_gathered_can_be_kept(commands, out):
    done = commands.stratagem(
        "run", *GPT, "--strategy", "sequence_parallel", "--keep-gathered", "--repetitions", 1,
        "--no-predict", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "sequence_parallel")
    assert run["stratagem"]["config"]["keep_gathered"] is True
    traffic = run["stratagem"]["communication"]
    assert traffic["all_gather"]["payload_bytes"] == (4 * BLOCKS + 2) * ACTIVATIONS // 2


def test_an_exchange_sends_half_of_what_gloos_reduce_scatter_does(commands, out):
    done = commands.stratagem(
        "run", *GPT, "--strategy", "sequence_parallel", "--reduce-scatter", "exchange,library",
        "--no-predict", "--repetitions", 1, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    sent = {
        run["stratagem"]["config"]["reduce_scatter"]: run["stratagem"]["communication"]["reduce_scatter"]
        for run in commands.iterations(commands.results(out), "sequence_parallel")
    }
    assert sent["exchange"]["payload_bytes"] == sent["library"]["payload_bytes"]
    assert sent["exchange"]["wire_bytes"] == sent["exchange"]["payload_bytes"] // 2
    assert sent["library"]["wire_bytes"] == sent["library"]["payload_bytes"]


def test_a_mesh_of_three_dimensions_equals_one_device(commands):
    done = commands.stratagem(
        "verify", *GPT, "--strategy", "tensor_parallel", "--schedule", "1f1b", "--split-size", 2,
        "--mesh", "data=2/pipeline=2/tensor=2", "--oversubscribe",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "equal" in done.stdout and "8 ranks" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "resnet18"], "cannot shard resnet18; it can shard column_linear, gpt-long, gpt-small"),
        (
            ["--mesh", "tensor=5", "--oversubscribe"],
            "4 heads of gpt-tiny cannot be split over 5 ranks; possible: 2 to 4",
        ),
        (
            ["--model", "column_linear", "--mesh", "tensor=3", "--outputs", 10, "--oversubscribe"],
            "10 outputs of column_linear cannot be split over 3 ranks; possible: 2, 5, 10",
        ),
        (["--ranks", 1], "--ranks 1: tensor parallelism needs one rank per device"),
        (["--mesh", "data=2/tensor=2", "--devices", 2], "give equal numbers"),
        (["--mesh", "data=2", "--no-async"], "--no-async: has no effect on the chosen rows"),
        (
            ["--keep-gathered"],
            "--keep-gathered: has no effect on the chosen rows; it applies to ",
        ),
        (["--reduce-scatter", "library"], "--reduce-scatter: has no effect on the chosen rows"),
        (["--split-size", 2], "--split-size: has no effect on the chosen rows"),
        (["--sequence-length", 33], "33 is too long for gpt-tiny; expected 1 to 32"),
        (["--loss", "mse"], "--loss: has no effect on the chosen rows"),
        (
            ["--model", "gpt-small", "--image-size", 64],
            "--image-size: has no effect on the chosen rows",
        ),
    ],
)
def test_what_cannot_be_shared_is_refused(commands, arguments, words):
    model = [] if "--model" in arguments else ["--model", "gpt-tiny"]
    done = commands.stratagem(
        "run", "--strategy", "tensor_parallel", "--global-batch-size", 8, *model, *arguments
    )
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_note_about_several_rows_is_one_line(commands):
    rows = ["--model", "gpt-tiny", "--devices", 3, "--sequence-length", "8,16", "--oversubscribe"]
    quick = ["--global-batch-size", 3, "--repetitions", 1, "--steps", 1, "--no-predict"]
    run = ["run", *rows, *quick, "--no-verify"]
    note = "--mesh tensor=3: 4 heads of gpt-tiny are split unevenly into 2 and 1"
    done = commands.stratagem(*run, "--strategy", "tensor_parallel")
    assert [line for line in done.stderr.splitlines() if note in line] == [f"all rows: {note}"]
    done = commands.stratagem(*run, "--strategy", "tensor_parallel,single")
    (line,) = [line for line in done.stderr.splitlines() if note in line]
    assert line.startswith("2 rows, such as tensor_parallel/gpt-tiny/devices:3/")


def test_a_sequence_that_ranks_cannot_share_is_refused(commands):
    done = commands.stratagem(
        "run", *GPT, "--strategy", "sequence_parallel", "--sequence-length", 15
    )
    assert done.returncode == 2
    told = "15 tokens of a sample of gpt-tiny cannot be split into 2 equal parts for the ranks; "
    told += "possible: 14, 16"
    assert f"--sequence-length 15: {told}" in done.stderr


def test_a_rank_that_is_lost_in_a_layer_is_named(commands, out):
    done = commands.stratagem(
        "run", *GPT, "--no-verify", "--no-predict", "--strategy", "single,tensor_parallel",
        "--repetitions", 1, "--timeout", 20, "--out", out,
        STRATAGEM_TEST_FAULT="kill@0B0@tensor_parallel@1",
    )  # fmt: skip
    assert done.returncode == 4
    commands.marked.expect_none()
    assert "rank 1 was killed" in done.stderr + done.stdout
    results = commands.results(out)
    assert not commands.iterations(results, "single")[0].get("error_occurred")
    assert commands.iterations(results, "tensor_parallel")[0]["error_occurred"]


def test_schedules_with_halves_and_with_several_stages(commands, out):
    done = commands.stratagem(
        "run", *GPT, "--strategy", "pipeline", "--schedule", "1f1b,zb_h1,zb_v,interleaved_1f1b",
        "--split-size", 2, "--repetitions", 1, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    runs = {
        run["stratagem"]["config"]["schedule"]: run["stratagem"]
        for run in commands.iterations(commands.results(out), "pipeline")
    }
    assert set(runs) == {"1f1b", "zb_h1", "zb_v", "interleaved_1f1b"}
    kinds = {event["kind"] for event in runs["zb_h1"]["timeline"]}
    assert {"backward_input", "backward_weight"} <= kinds and "backward" not in kinds
    for schedule in ("interleaved_1f1b", "zb_v"):
        stages = {event["stage"] for event in runs[schedule]["timeline"]}
        assert stages == {0, 1, 2, 3}, schedule
    for run in runs.values():
        assert run["predicted_ms"] > 0
