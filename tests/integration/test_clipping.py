"""Training with gradients clipped: one curve over every mesh, and an end where nothing is finite."""

from __future__ import annotations

import json

import pytest

GPT = [
    "--model", "gpt-tiny", "--data", "text", "--sequence-length", 16, "--global-batch-size", 4,
    "--max-steps", 5, "--dtype", "float64", "--optimizer", "adamw",
    "--learning-rate", 0.003, "--clip-gradients", 0.5, "--no-verify", "--oversubscribe",
]  # fmt: skip
MESHES = {
    "single": ["--devices", 1],
    "ddp": ["--devices", 2],
    "data_parallel": ["--devices", 3],
    "pipeline": ["--devices", 2, "--ranks", 2, "--schedule", "zb_h1", "--split-size", 2],
    "ddp_model_parallel": ["--devices", 4, "--split-size", 1],
    "tensor_parallel": ["--devices", 4, "--mesh", "data=2/tensor=2"],
    "sequence_parallel": ["--devices", 4, "--mesh", "pipeline=2/tensor=2", "--split-size", 2],
}


def steps_of(path) -> list[dict]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["event"] == "step"]


def test_every_mesh_clips_by_one_norm(commands, tmp_path):
    curves = {}
    for strategy, mesh in MESHES.items():
        log = tmp_path / f"{strategy}.jsonl"
        done = commands.stratagem("train", "--strategy", strategy, *mesh, *GPT, "--log", log)
        assert done.returncode == 0, done.stderr
        curves[strategy] = steps_of(log)
    expected = curves["single"]
    assert min(step["gradient_norm"] for step in expected) > 0.5
    for strategy, curve in curves.items():
        for field in ("loss", "gradient_norm"):
            found = [step[field] for step in curve]
            wanted = [step[field] for step in expected]
            assert found == pytest.approx(wanted, rel=1e-9), (strategy, field)


def test_a_clipped_row_is_verified(commands):
    done = commands.stratagem(
        "verify", "--strategy", "single,ddp,data_parallel", "--model", "toy", "--devices", 2,
        "--global-batch-size", 8, "--clip-gradients", 1,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("clipping", "why"), [
    ([], "the loss is"),
    (["--clip-gradients", 1], "the"),
])
def test_what_is_not_finite_ends_the_training_with_its_name(commands, clipping, why):
    done = commands.stratagem(
        "train", "--strategy", "ddp", "--model", "toy", "--devices", 2, "--global-batch-size", 8,
        "--samples", 64, "--learning-rate", "1e200", "--dtype", "float64", *clipping,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert why in done.stderr
    assert "not finite:" in done.stderr
