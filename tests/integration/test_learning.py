"""Training learns: what is required of it is reached, and one step does not reach it."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

TEXT = Path(__file__).resolve().parents[2] / "models" / "data" / "shakespeare.txt"

SHAPES = [
    "--model", "resnet18", "--data", "shapes", "--samples", 10000, "--validation", 0.1,
    "--loss", "cross_entropy", "--strategy", "ddp", "--global-batch-size", 32,
    "--optimizer", "adam", "--learning-rate", 0.001, "--learning-rate-schedule", "cosine",
    "--warmup-steps", 20, "--epochs", 2,
]  # fmt: skip
LETTERS = [
    "--model", "gpt-tiny", "--data", "text", "--validation", 0.05, "--global-batch-size", 16,
    "--optimizer", "adamw", "--learning-rate", 0.003, "--warmup-steps", 10,
]  # fmt: skip


def unigram_entropy() -> float:
    """Of the next byte in nats: the lowest loss that does without the bytes before it."""
    text = TEXT.read_bytes()
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log(share) for share in shares)


def train(commands, *arguments):
    return commands.stratagem(
        "train", "--no-verify", "--no-evaluate-first", "--log-every", 50, *arguments
    )


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "accuracy"), [
    (100, 0.5), pytest.param(1000, 0.97, marks=pytest.mark.night),
])
def test_shapes_are_told_from_each_other(commands, steps, accuracy):
    """Two epochs have 562 steps; a guess is right in one of ten."""
    commands.limit_s = 360
    done = train(commands, *SHAPES, "--max-steps", steps, "--require", f"accuracy:{accuracy}")
    assert done.returncode == 0, done.stderr


def test_300_steps_know_more_of_a_text_than_its_letters_frequencies(commands):
    assert 3 < unigram_entropy() < 3.5
    required = f"loss:{unigram_entropy()}"
    done = train(commands, *LETTERS, "--max-steps", 300, "--require", required)
    assert done.returncode == 0, done.stderr


def test_one_step_knows_neither(commands):
    for work, required in ((SHAPES, "accuracy:0.97"), (LETTERS, f"loss:{unigram_entropy()}")):
        done = train(commands, *work, "--max-steps", 1, "--require", required)
        assert done.returncode == 1
        assert f"--require {required[:8]}" in done.stderr
        assert "the training reached" in done.stderr
