"""`stratagem train` and a trainer of PyTorch's own parts have the same loss at every step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STRATAGEM = Path(os.environ.get("STRATAGEM_BIN", ROOT / "build" / "bin")) / "stratagem"


def losses_of_ours(folder: Path, arguments: list) -> list[float]:
    log = folder / "log.jsonl"
    command = [
        STRATAGEM, "train", "--model", "linear", "--targets", "real", "--dtype", "float64",
        "--no-verify", "--quiet", "--checkpoint-dir", folder / "kept", "--checkpoint-first",
        "--log", log, *arguments,
    ]  # fmt: skip
    subprocess.run([str(part) for part in command], check=True, timeout=240)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [line["loss"] for line in lines if line["event"] == "step"]


def losses_of_pytorch(folder: Path, arguments: list) -> list[float]:
    command = [
        sys.executable, ROOT / "tools/peers/trainer.py", folder / "kept/step-00000000.pt",
        *arguments,
    ]  # fmt: skip
    done = subprocess.run([str(part) for part in command], check=False, timeout=240,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["losses"]


@pytest.mark.parametrize(
    ("sizes", "work", "ranks", "steps"),
    [
        # The examples toy_adam and toy_sgd, on two ranks; 45 samples are padded to 46.
        ((100, 10), {"--samples": 1000, "--global-batch-size": 64, "--optimizer": "adam",
                     "--learning-rate": 0.02}, 2, 16),
        ((20, 1), {"--samples": 2048, "--global-batch-size": 64, "--epochs": 5,
                   "--learning-rate": 0.01}, 2, 160),
        ((7, 3), {"--samples": 45, "--global-batch-size": 8, "--epochs": 3,
                  "--learning-rate": 0.1, "--momentum": 0.9}, 2, 18),
        ((7, 3), {"--samples": 45, "--global-batch-size": 8, "--epochs": 2,
                  "--optimizer": "adamw", "--learning-rate": 0.01}, 1, 12),
    ],
)  # fmt: skip
def test_the_losses_are_those_of_pytorch(tmp_path, sizes, work, ranks, steps):
    shared = [part for option in work.items() for part in option]
    features, outputs = sizes
    ours = losses_of_ours(tmp_path, [
        *shared, "--features", features, "--outputs", outputs, "--devices", ranks,
        "--strategy", "ddp" if ranks > 1 else "single",
        *(["--weight-decay", 0] if "adam" in str(work.get("--optimizer")) else []),
    ])  # fmt: skip
    theirs = losses_of_pytorch(tmp_path, [*shared, "--ranks", ranks])
    assert len(ours) == steps
    assert ours == pytest.approx(theirs, rel=1e-9)
