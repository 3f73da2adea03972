"""The command proves the timed steps themselves: a step that goes wrong later is found."""

from __future__ import annotations

import pytest

ROW = ["--model", "gpt-tiny", "--global-batch-size", 4, "--strategy", "pipeline", "--split-size", 2]
ROW += ["--steps", 16, "--repetitions", 1, "--no-predict"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("stale@2", "the loss of step 2 is "),
        ("rate=0@5", "the loss of step 13 is "),
        ("rate=1.5@0", "the loss of step 8 is "),
    ],
    ids=["stale input", "skipped update", "learning rate"],
)
def test_a_wrong_timed_step_fails_the_row(commands, out, fault, words):
    done = commands.stratagem("run", *ROW, "--out", out, STRATAGEM_TEST_FAULT=fault)
    assert done.returncode == 1, done.stderr
    assert "the timed steps are wrong: launch 1: " in done.stderr and words in done.stderr
    launches = commands.iterations(commands.results(out), "pipeline")
    (wrong,) = (run for run in launches if run.get("error_occurred"))
    assert words in wrong["error_message"]
    assert launches[0]["stratagem"]["summary"]["error"]
    assert launches[0]["stratagem"]["verification"]["passed"]


def test_a_right_row_is_proven(commands, out):
    done = commands.stratagem("run", *ROW, "--out", out)
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "pipeline")
    assert run["stratagem"]["proof"]["passed"] and run["stratagem"]["summary"]["proven"]
