"""Builds runs of a history: a row over time, with noise that is the same on every call."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
from stratagem_reports import __main__ as command
from stratagem_reports.history.points import Metric, Run, hardware_of
from stratagem_reports.history.store import append

START = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
ROW = "pipeline/resnet50/devices:2/batch:48/image:128/split:12"
MACHINE = {"cpu_model": "Example EPYC 2-core", "physical_cores": 2}


def commit(index: int) -> str:
    """The commit of the run so many runs after the first."""
    return f"{index:012x}"


def runs(
    count: int,
    name: str = ROW,
    step_at: int | None = None,
    factor: float = 1.05,
    seed: int = 7,
    first: int = 0,
    machine: dict | None = None,
) -> list[Run]:
    """One run a day of five launches around 100 ms; from `step_at` on, `factor` times that."""
    noise = np.random.default_rng(seed)
    made = []
    for index in range(count):
        level = 100.0 * (factor if step_at is not None and index >= step_at else 1.0)
        launches = [float(value) for value in level * (1.0 + noise.normal(0.0, 0.01, 5))]
        made.append(
            Run(
                time=START + timedelta(days=first + index),
                commit=commit(first + index),
                name=name,
                launches=launches,
                median=float(np.median(launches)),
                metrics={
                    "live_micro_batches": Metric(4.0, "count", "lower", True),
                    "mfu": Metric(0.5 * 100.0 / level, "fraction", "higher"),
                    "cpu_time": Metric(1.9 * level, "ms", "lower"),
                },
                hardware=hardware_of(MACHINE if machine is None else machine),
                software={"torch": "2.11.0"},
                marks=[],
            )
        )
    return made


def store(folder: Path, *groups: list[Run]) -> Path:
    """The folder, made and filled."""
    append(folder, [run for group in groups for run in group])
    return folder


def history(*arguments: object) -> int:
    """The exit code of `stratagem history` with these arguments."""
    return command.main(["history", *(str(argument) for argument in arguments)])


def refused(capsys, words: str) -> str:
    """The one line on stderr."""
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1, captured.err
    assert words in captured.err and captured.out == ""
    assert captured.err.startswith("stratagem history: ")
    return captured.err


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}
