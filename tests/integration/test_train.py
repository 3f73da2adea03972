"""stratagem train: the examples that everybody begins with, and the same curve by every strategy."""

from __future__ import annotations

import json

import pytest
from schema_validation import expect_valid

FOUR_DEVICES = ["--oversubscribe", "--devices", 4]


def log_of(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def curves(path) -> dict[str, list[dict]]:
    """The lines of each training, by row."""
    rows: dict[str, list[dict]] = {}
    for line in log_of(path):
        if line["event"] == "start":
            rows[line["name"]] = own = []
        own.append(line)
    return rows


def of(lines: list[dict], event: str, field: str) -> list:
    return [line[field] for line in lines if line["event"] == event]


def train(commands, *arguments):
    done = commands.stratagem("train", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_adam_on_one_rank_has_32_steps_and_a_last_one_of_8(commands, tmp_path):
    log = tmp_path / "log.jsonl"
    text = train(commands, "--preset", "toy_adam", "--log", log)
    assert "1000 training, 1000 validation, 1000 test samples" in text
    assert "32 steps an epoch, 1010 parameters" in text
    assert "[rank 0 epoch 0: batch 32, 32 steps]" in text
    assert "first loss" not in text  # its targets are no classes
    assert "stalls: " in text and " of 32 steps, " in text
    assert "step 32, the last of 8 samples" in text
    (lines,) = curves(log).values()
    assert of(lines, "step", "batch") == [32] * 31 + [8]
    assert of(lines, "evaluation", "split") == ["validation", "validation", "test"]
    first, last = of(lines, "evaluation", "loss")[:2]
    assert last < 0.5 * first


def test_adam_on_two_ranks_has_16_steps_and_a_last_one_of_20_each(commands):
    text = train(commands, "--preset", "toy_adam", "--strategy", "ddp", "--devices", 2)
    assert "[rank 1 epoch 0: batch 32, 16 steps]" in text
    assert "step 16, the last of 40 samples (20 a replica)" in text


def test_sgd_has_64_steps_on_one_rank_and_16_on_each_of_four(commands):
    one = train(commands, "--preset", "toy_sgd")
    for epoch in range(5):
        assert f"[rank 0 epoch {epoch}: batch 32, 64 steps]" in one
    four = train(commands, "--preset", "toy_sgd", "--strategy", "ddp", *FOUR_DEVICES)
    for rank in range(4):
        assert f"[rank {rank} epoch 4: batch 32, 16 steps]" in four


def test_data_parallel_shows_what_each_device_is_given(commands):
    two = train(commands, "--preset", "toy_data_parallel")
    for step, (whole, half) in enumerate([(30, 15)] * 3 + [(10, 5)], 1):
        assert f"step {step}: input [{whole}, 5], output [{whole}, 2]" in two
        for device in ("cpu:0", "cpu:1"):
            assert f"  {device}: input [{half}, 5], output [{half}, 2]" in two
    one = train(commands, "--preset", "toy_data_parallel", "--devices", 1)
    assert [f"cpu:0: input [{n}, 5]" in one for n in (30, 10, 15)] == [True, True, False]


def test_ddp_takes_one_step(commands):
    assert "[rank 1 epoch 0: batch 20, 1 steps]" in train(commands, "--preset", "toy_ddp")


@pytest.mark.parametrize(("tail", "steps"), [("pad", 12), ("drop", 10), ("exact", 12)])
def test_every_strategy_trains_along_one_curve(commands, tmp_path, tail, steps):
    """45 samples in batches of 8; in float64, from one start, at every step."""
    log = tmp_path / "log.jsonl"
    train(
        commands, "--strategy", "single,data_parallel,ddp,model_parallel,pipeline", "--model",
        "toy", "--loss", "cross_entropy", "--dtype", "float64", "--learning-rate", 0.1,
        "--momentum", 0.9, "--global-batch-size", 8, "--split-size", 3, "--samples", 45,
        "--validation", "own", "--epochs", 2, "--tail", tail, "--log", log,
        "--learning-rate-schedule", "cosine", "--warmup-steps", 3,
    )  # fmt: skip
    single, *others = curves(log).values()
    assert len(of(single, "step", "loss")) == steps
    assert len(others) == 4
    for lines in others:
        along = expect_one_curve if sizes(lines) == sizes(single) else expect_one_begin
        along(lines, single)
        assert of(lines, "step", "learning_rate") == of(single, "step", "learning_rate")


def sizes(lines) -> list[int]:
    return of(lines, "step", "batch")


def expect_one_curve(lines, others) -> None:
    for event in ("step", "evaluation"):
        assert of(lines, event, "loss") == pytest.approx(of(others, event, "loss"), rel=1e-9)
    for field in ("correct", "positions"):
        assert of(lines, "evaluation", field) == of(others, "evaluation", field)


def expect_one_begin(lines, others) -> None:
    """Replicas that are padded to one size train a sample more in the epoch's last batch."""
    assert [sum(sizes(lines)), sum(sizes(others))] == [92, 90]
    whole = [step for step, size in enumerate(sizes(lines)) if size == 8][:5]
    mine, its = of(lines, "step", "loss"), of(others, "step", "loss")
    assert [mine[step] for step in whole] == pytest.approx([its[s] for s in whole], rel=1e-9)


def test_tokens_and_tensor_parallel_layers_train_along_one_curve(commands, tmp_path):
    log = tmp_path / "log.jsonl"
    train(
        commands, "--strategy", "single,ddp,tensor_parallel,sequence_parallel", "--model",
        "gpt-tiny", "--dtype", "float64", "--optimizer", "adamw",
        "--learning-rate", 0.001, "--global-batch-size", 6, "--sequence-length", 16,
        "--max-steps", 6, "--validation", 0.002, "--log", log,
    )  # fmt: skip
    single, *others = curves(log).values()
    assert len(others) == 3
    for lines in others:
        expect_one_curve(lines, single)


def test_the_whole_training_is_written_at_its_end(commands, tmp_path):
    out = tmp_path / "training.out"
    train(commands, "--preset", "toy_ddp", "--out", out, "--quiet")
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["schema"] == "stratagem-train/1"
    (training,) = document["trainings"]
    assert [event["event"] for event in training["events"]] == ["epoch", "step"]
    expect_valid("train", document)
    assert training["start"]["parameters"] == 110
    assert training["end"]["steps"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "shapes", "--model", "toy"], "--data shapes: toy trains on vectors; choices: random"),
        (["--data", "random", "--model", "gpt-tiny"], "gpt-tiny trains on tokens; choices: text"),
        (["--initial-state", "nowhere.pt", "--model", "toy"], "nowhere.pt: no such file"),
        (["--data", "mnist:nowhere", "--model", "resnet18"], "nowhere"),
        (["--tail", "drop", "--samples", 4, "--model", "toy"], "are fewer than a batch"),
        (["--validation", 0.9, "--test", 0.2, "--model", "toy"], "samples to train on"),
        (["--validation", 0.001, "--samples", 9, "--model", "toy"], "selects none of 9 samples"),
        (["--preset", "toy_adm"], 'did you mean "toy_adam"?'),
        (["--epochs", 0, "--model", "toy"], "--epochs"),
        (["--model", "linear", "--outputs", 1, "--loss", "cross_entropy"], "use mse"),
        (["--model", "resnet18", "--samples", 33, "--global-batch-size", 32],
         "--tail pad: the last batch of an epoch has 1 of 32 samples: replica 0 has a micro-batch"),
        (["--model", "toy", "--samples", 2**62], "GiB of memory, this machine has"),
        (["--model", "toy", "--epochs", 2**62], "set --max-steps"),
        (["--model", "toy", "--global-batch-size", 2**62], "--global-batch-size"),
        (["--model", "toy", "--learning-rate-schedule", "step"], "needs --schedule-steps"),
        (["--model", "toy", "--learning-rate-schedule", "cosine", "--warmup-steps", 99],
         "--warmup-steps 99: the schedule"),
        (["--model", "toy", "--loader-threads", 2], "are loaded between the steps"),
        (["--model", "toy", "--require", "accuracy:0.5"], "needs a --validation set"),
        (["--model", "toy", "--require", "accuracy:0"], "which is above 0 and at most 1"),
        (["--strategy", "data_parallel", "--model", "toy", "--output-device", 2],
         "--output-device 2: the row has 2 devices; expected 0 to 1"),
        (["--model", "toy", "--keep", 2], "--keep: needs --checkpoint-dir"),
        (["--model", "toy", "--augment"], "--augment: needs images"),
        (["--model", "gpt-tiny", "--samples", 9], "--samples: needs generated data"),
        (["--model", "toy", "--evaluate-every", 2], "--evaluate-every: needs --validation"),
        (["--model", "toy", "--final-learning-rate", 0.1], "needs a --learning-rate-schedule"),
        (["--require", "speed:3", "--model", "toy"], "expected loss:VALUE"),
    ],
)
def test_what_cannot_be_trained_is_one_line_before_anything_runs(commands, arguments, message):
    done = commands.stratagem("train", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_folder_for_temporary_files_that_is_not_there_is_named(commands):
    done = commands.stratagem("train", "--preset", "toy_ddp", TMPDIR="nosuch")
    assert done.returncode == 2
    assert done.stderr == (
        "stratagem: TMPDIR=nosuch: this folder for temporary files does not exist\n"
    )


def test_a_requirement_that_is_not_reached_is_exit_1(commands):
    done = commands.stratagem("train", "--preset", "toy_ddp", "--require", "loss:0")
    assert done.returncode == 1
    assert "--require loss:0: the training reached" in done.stderr
    assert commands.stratagem(
        "train", "--preset", "toy_adam", "--require", "loss:0.2"
    ).returncode == 0  # fmt: skip


def test_a_loss_that_was_not_measured_reaches_nothing(commands, tmp_path):
    again = ["--preset", "toy_ddp", "--checkpoint-dir", tmp_path, "--resume", "auto"]
    assert commands.stratagem("train", *again).returncode == 0
    done = commands.stratagem("train", *again, "--require", "loss:1000")
    assert done.returncode == 1
    assert "the training reached no loss, because no step was left" in done.stderr


def test_the_log_takes_no_other_file(commands, tmp_path):
    notes, log = tmp_path / "notes.txt", tmp_path / "log"
    notes.write_text("mine\n")
    done = commands.stratagem("train", "--preset", "toy_ddp", "--log", notes)
    assert done.returncode == 2
    assert f"--log {notes}: is not the log of a training" in done.stderr
    assert notes.read_text() == "mine\n"
    for _ in range(2):
        assert commands.stratagem("train", "--preset", "toy_ddp", "--log", log).returncode == 0
    written = log.read_text()
    done = commands.stratagem("train", "--preset", "toy_ddp", "--seed", 2, "--log", log)
    assert done.returncode == 2
    assert f"--log {log}: is the log of another training" in done.stderr
    assert log.read_text() == written


def test_models_of_images_train_on_random_ones_of_any_size(commands, tmp_path):
    log = tmp_path / "log.jsonl"
    text = train(
        commands, "--model", "resnet18", "--data", "random", "--image-size", 40, "--samples", 12,
        "--global-batch-size", 4, "--loss", "cross_entropy", "--log", log,
        "--strategy", "single,ddp", "--no-verify", "--dtype", "float64",
    )  # fmt: skip
    assert text.count("first loss ") == 2 and "ln(1000) = 6.91" in text
    single, ddp = curves(log).values()
    assert single[0]["config"]["image_size"] == 40
    assert len(of(single, "step", "loss")) == len(of(ddp, "step", "loss")) == 3
