"""Loss curves of a small GPT in half formats, held against those of float32.

Five seeds of float32 say how far apart curves lie that are as good as one another. A curve of a
half format is held against float32's of the same seed, which has its initial values and its order
of samples. Both are smoothed; from the first full window on their difference is to be at most two
deviations of the seeds in 95 of 100 steps (one update that float16 skips may show for a while), and
the validation loss at the end within 0.5%.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SEEDS = (1, 2, 3, 4, 5)
WINDOW = 20  # steps that a smoothed loss is the mean of
MOST_DEVIATIONS = 2.0
LEAST_WITHIN = 0.95  # of the steps
MOST_VALIDATION = 0.005  # of it
RECORDED = Path(__file__).with_name("loss_curves.json")
COMMON = [
    "train", "--strategy", "single", "--model", "gpt-tiny", "--data", "text", "--validation", 0.05,
    "--optimizer", "adamw", "--epochs", 5, "--no-verify", "--no-evaluate-first", "--quiet",
]  # fmt: skip


@dataclass(frozen=True)
class Work:
    """What is trained: options, the recorded steps, and so many of them that a short run takes."""

    options: tuple
    steps: int
    short: int


# Of a large batch the gradients of a mean are small: those of 1024 samples of 32 vanish in float16
# for bytes whose probability is below 1e-3.
WORKS = {
    "usual": Work(
        ("--global-batch-size", 16, "--learning-rate", 0.001, "--warmup-steps", 50), 300, 100
    ),
    "small_rate": Work(("--global-batch-size", 16, "--learning-rate", 1e-5), 300, 300),
    "large_batch": Work(
        ("--global-batch-size", 1024, "--learning-rate", 0.003, "--warmup-steps", 20), 45, 45
    ),
}


@dataclass(frozen=True)
class Curve:
    """The loss of each step, and those of the validation set by the steps before them."""

    losses: list[float]
    validation: dict[int, float]


def train(run: Callable, work: Work, seed: int, steps: int, folder: Path, *options) -> Curve:
    """Trains by `run`, which takes the arguments of the command."""
    log = folder / f"{len(list(folder.iterdir()))}.log"
    run(*COMMON, *work.options, "--seed", seed, "--max-steps", steps, "--log", log, *options)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return Curve(
        [line["loss"] for line in lines if line["event"] == "step"],
        {line["step"]: line["loss"] for line in lines if line["event"] == "evaluation"},
    )


def smoothed(losses: Sequence[float]) -> list[float]:
    """The means of windows, from the first full one on."""
    return [statistics.fmean(losses[end - WINDOW : end]) for end in range(WINDOW, len(losses) + 1)]


@dataclass(frozen=True)
class Distance:
    """How far a curve is from float32's of its seed."""

    deviations: float  # of the smoothed loss, in the worst step
    step: int  # which
    within: float  # part of the steps in which it is at most two
    validation: float  # relative

    @property
    def is_within(self) -> bool:
        """Whether the curve is as good as float32's."""
        return self.within >= LEAST_WITHIN and abs(self.validation) <= MOST_VALIDATION


def distance(curve: Curve, float32: dict[int, Curve], seed: int) -> Distance:
    """From the curve of the seed; `float32` has one for each seed, at least as long."""
    steps = len(curve.losses)
    of_seeds = [smoothed(own.losses[:steps]) for own in float32.values()]
    deviations = [statistics.stdev(step) for step in zip(*of_seeds, strict=True)]
    twin = float32[seed]
    apart = [
        abs(own - other) / deviation
        for own, other, deviation in zip(
            smoothed(curve.losses), smoothed(twin.losses[:steps]), deviations, strict=True
        )
    ]
    worst = max(range(len(apart)), key=apart.__getitem__)
    within = sum(each <= MOST_DEVIATIONS for each in apart) / len(apart)
    off = curve.validation[steps] / twin.validation[steps] - 1
    return Distance(apart[worst], worst + WINDOW, within, off)


def recorded() -> dict[str, dict[int, Curve]]:
    """The curves of float32, by work and seed."""
    return {
        work: {
            int(seed): Curve(
                curve["losses"], {int(step): loss for step, loss in curve["validation"].items()}
            )
            for seed, curve in curves.items()
        }
        for work, curves in json.loads(RECORDED.read_text(encoding="utf-8")).items()
    }
