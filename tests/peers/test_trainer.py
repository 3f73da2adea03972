"""`stratagem train` and a trainer of PyTorch's own parts have the same loss at every step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
STRATAGEM = Path(os.environ.get("STRATAGEM_BIN", ROOT / "build" / "bin")) / "stratagem"


def losses_of_ours(folder: Path, arguments: list) -> list[float]:
    log = folder / "log.jsonl"
    command = [
        STRATAGEM, "train", "--model", "linear", "--targets", "real", "--dtype", "float64",
        "--no-verify", "--quiet", "--checkpoint-dir", folder / "kept", "--checkpoint-first",
        "--log", log, *arguments,
    ]  # fmt: skip
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "STRATAGEM_LOCK_FOLDER": str(folder)}
    subprocess.run(
        [str(part) for part in command], check=True, timeout=240, env={**os.environ, **own}
    )
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [line["loss"] for line in lines if line["event"] == "step"]


# Sizes of the layer, its training, ranks and steps. The first two are the examples toy_adam and
# toy_sgd, on two ranks; 45 samples are padded to 46.
WORKS = {
    "toy_adam": ((100, 10), "--samples 1000 --global-batch-size 64 --optimizer adam"
                 " --learning-rate 0.02", 2, 16),
    "toy_sgd": ((20, 1), "--samples 2048 --global-batch-size 64 --epochs 5"
                " --learning-rate 0.01", 2, 160),
    "momentum": ((7, 3), "--samples 45 --global-batch-size 8 --epochs 3 --learning-rate 0.1"
                 " --momentum 0.9", 2, 18),
    "alone": ((7, 3), "--samples 45 --global-batch-size 8 --epochs 2 --optimizer adamw"
              " --learning-rate 0.01", 1, 12),
}  # fmt: skip
BY_DAY = ["toy_adam"]
AT_NIGHT = [name for name in WORKS if name not in BY_DAY]


def run_python(*command) -> list | dict:
    done = subprocess.run([sys.executable, *map(str, command)], check=False, timeout=240,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compared(names: list[str], folder_of) -> dict[str, tuple[list[float], list[float]]]:
    """Ours and PyTorch's of each work, those of two ranks by one pair of processes."""
    ours, lines, theirs = {}, {}, {}
    for name in names:
        (features, outputs), options, ranks, _ = WORKS[name]
        folder = folder_of(name)
        ours[name] = losses_of_ours(folder, [
            *options.split(), "--features", features, "--outputs", outputs, "--devices", ranks,
            "--strategy", "ddp" if ranks > 1 else "single",
            *(["--weight-decay", 0] if "adam" in options else []),
        ])  # fmt: skip
        checkpoint = folder / "kept/step-00000000.pt"
        lines[name] = f"trainer.py {checkpoint} {options} --ranks {ranks}"
    if alone := lines.pop("alone", None):
        program, *options = alone.split()
        theirs["alone"] = run_python(ROOT / "tools/peers" / program, *options)
    together = run_python(Path(__file__).with_name("several_ways.py"), *lines.values())
    theirs |= zip(lines, together, strict=True)
    return {name: (ours[name], theirs[name]["losses"]) for name in names}


@pytest.fixture(scope="module")
def losses(tmp_path_factory):
    return compared(BY_DAY, tmp_path_factory.mktemp)


@pytest.fixture(scope="module")
def losses_of_the_night(tmp_path_factory):
    return compared(AT_NIGHT, tmp_path_factory.mktemp)


def expect_the_losses_of_pytorch(work, ours, theirs):
    assert len(ours) == WORKS[work][-1]
    assert ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.xdist_group("trainer")
@pytest.mark.parametrize("work", BY_DAY)
def test_the_losses_are_those_of_pytorch(losses, work):
    expect_the_losses_of_pytorch(work, *losses[work])


@pytest.mark.night
@pytest.mark.xdist_group("trainer_at_night")
@pytest.mark.parametrize("work", AT_NIGHT)
def test_the_losses_of_other_trainings_are_those_of_pytorch(losses_of_the_night, work):
    expect_the_losses_of_pytorch(work, *losses_of_the_night[work])
