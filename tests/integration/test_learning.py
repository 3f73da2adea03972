"""Training learns: what is required of it is reached, and one step does not reach it."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

TEXT = Path(__file__).resolve().parents[2] / "models" / "data" / "shakespeare.txt"

SHAPES = [
    "--model", "resnet18", "--data", "shapes", "--validation", 0.1,
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
@pytest.mark.parametrize(("samples", "steps", "accuracy"), [
    (2000, 40, 0.2), pytest.param(10_000, 562, 0.97, marks=pytest.mark.night),
])
def test_shapes_are_recognised(commands, samples, steps, accuracy):
    """A guess is right in one of ten."""
    commands.limit_s = 360
    work = [*SHAPES, "--samples", samples, "--max-steps", steps]
    done = train(commands, *work, "--require", f"accuracy:{accuracy}")
    assert done.returncode == 0, done.stderr


def test_300_steps_know_more_of_a_text_than_its_letters_frequencies(commands):
    assert 3 < unigram_entropy() < 3.5
    required = f"loss:{unigram_entropy()}"
    done = train(commands, *LETTERS, "--max-steps", 300, "--require", required)
    assert done.returncode == 0, done.stderr


def test_one_step_knows_neither(commands):
    shapes = [*SHAPES, "--samples", 2000, "--schedule-steps", 100]
    for work, required in ((shapes, "accuracy:0.2"), (LETTERS, f"loss:{unigram_entropy()}")):
        done = train(commands, *work, "--max-steps", 1, "--require", required)
        assert done.returncode == 1
        assert f"--require {required[:8]}" in done.stderr
        assert "the training reached" in done.stderr
