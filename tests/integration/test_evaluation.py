"""stratagem train: evaluations between steps and alone, the best checkpoint, early stopping."""

from __future__ import annotations

import json

import pytest

TOY = [
    "--no-verify", "--model", "toy", "--loss", "cross_entropy", "--samples", 40, "--seed", 3,
    "--global-batch-size", 8,
]  # fmt: skip


def train(commands, *arguments, code=0) -> str:
    done = commands.stratagem("train", *TOY, *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout


def lines_of(log, event: str) -> list[dict]:
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["event"] == event]


def test_the_best_checkpoint_stays_and_is_evaluated_alone(commands, tmp_path):
    """A learning rate that is too large soon makes the loss worse."""
    folder, log = tmp_path / "kept", tmp_path / "log"
    text = train(
        commands, "--validation", "own", "--test", "own", "--learning-rate", 2, "--epochs", 20,
        "--evaluate-every", 3, "--early-stop", 4, "--keep-best", "--checkpoint-dir", folder,
        "--checkpoint-every", 2, "--keep", 1, "--log", log, "--dtype", "float64",
    )  # fmt: skip
    *evaluations, test = lines_of(log, "evaluation")
    (end,) = lines_of(log, "end")
    best = min(evaluations, key=lambda line: line["loss"])
    assert [line["step"] for line in evaluations] == list(range(0, 3 * len(evaluations), 3))
    assert evaluations[-5] == best and test["split"] == "test"
    assert end["stopped_early"] is True
    assert end["best"] == {"step": best["step"], "loss": best["loss"]}
    assert "stopped early: no better loss of the validation set in 4 evaluations" in text
    kept = sorted(path.name for path in folder.glob("*.pt"))
    assert kept == ["best.pt", f"step-{evaluations[-1]['step']:08}.pt"]

    alone = tmp_path / "alone"
    text = train(commands, "--validation", "own", "--evaluate-only", "--initial-state",
                 folder / "best.pt", "--log", alone, "--dtype", "float64")
    (found,) = lines_of(alone, "evaluation")
    assert (found["loss"], found["correct"]) == (best["loss"], best["correct"])
    assert f"validation: loss {best['loss']:.6g} of 40 samples" in text
    assert lines_of(alone, "step") == []
    # Of the folder's last checkpoint, which stays as it is.
    train(commands, "--validation", "own", "--evaluate-only", "--resume", "auto",
          "--checkpoint-dir", folder, "--log", alone, "--dtype", "float64")
    assert lines_of(alone, "evaluation")[0]["loss"] == evaluations[-1]["loss"]
    assert sorted(path.name for path in folder.glob("*.pt")) == kept


def test_a_training_that_goes_on_knows_its_best_evaluation(commands, tmp_path):
    common = ["--validation", "own", "--learning-rate", 1.5, "--keep-best", "--evaluate-every", 2,
              "--dtype", "float64", "--checkpoint-every", 5]  # fmt: skip
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(commands, *common, "--epochs", 4, "--checkpoint-dir", whole, "--log", tmp_path / "1")
    train(commands, *common, "--epochs", 4, "--checkpoint-dir", parts, "--log", tmp_path / "2")
    for path in parts.glob("step-*.pt"):
        if path.name > "step-00000010.pt":
            path.unlink()
    train(commands, *common, "--epochs", 4, "--checkpoint-dir", parts, "--log", tmp_path / "2",
          "--resume", "auto")

    def judged(log):
        return [(line["step"], line["loss"], line["best"]) for line in lines_of(log, "evaluation")]

    assert judged(tmp_path / "2") == judged(tmp_path / "1")
    assert lines_of(tmp_path / "2", "end")[0]["best"] == lines_of(tmp_path / "1", "end")[0]["best"]


def test_ranks_stop_together(commands, tmp_path):
    log = tmp_path / "log"
    train(commands, "--strategy", "ddp", "--validation", "own", "--learning-rate", 1e-9,
          "--monitor", "accuracy", "--early-stop", 2, "--epochs", 9, "--log", log)
    assert [line["step"] for line in lines_of(log, "evaluation")] == [0, 5, 10]
    assert lines_of(log, "end")[0]["best"]["step"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keep-best", "--validation", "own"], "--keep-best: needs --checkpoint-dir"),
        (["--keep-best", "--checkpoint-dir", "there"], "--keep-best: needs --validation"),
        (["--early-stop", 2], "--early-stop: needs --validation"),
        (["--monitor", "accuracy", "--validation", "own"],
         "--monitor: needs --keep-best or --early-stop"),
        (["--early-stop", 2, "--monitor", "accuracy", "--validation", "own", "--targets", "real",
          "--loss", "mse"], "accuracy needs targets that are classes"),
        (["--evaluate-only", "--initial-state", "x.pt"], "needs --validation or --test"),
        (["--evaluate-only", "--validation", "own"], "needs either --resume or --initial-state"),
        (["--evaluate-only", "--validation", "own", "--initial-state", "nowhere.pt"],
         "nowhere.pt: no such file"),
        (["--evaluate-only", "--validation", "own", "--initial-state", "x.pt", "--epochs", 2],
         "--epochs: has no effect with --evaluate-only"),
        (["--evaluate-only", "--validation", "own", "--resume", "auto", "--checkpoint-dir",
          "nowhere"], "nowhere has no checkpoint to evaluate"),
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_is_one_line(commands, arguments, message):
    done = commands.stratagem("train", "--model", "toy", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert message in done.stderr
