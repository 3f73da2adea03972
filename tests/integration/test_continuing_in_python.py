"""PyTorch continues a training from our checkpoint, and `stratagem train` from PyTorch's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "peers"))

SAMPLES, BATCH, STEPS = 40, 8, 15  # three epochs of five steps, a checkpoint after each
RATE = 0.05
OPTIMIZERS = {
    "sgd": ["--momentum", 0.9, "--weight-decay", 0.1],
    "adam": ["--weight-decay", 0.1],
    "adamw": ["--weight-decay", 0.1],
}
WORK = [
    "--no-verify", "--model", "linear", "--features", 7, "--outputs", 3, "--targets", "real",
    "--loss", "mse", "--dtype", "float64", "--samples", SAMPLES, "--global-batch-size", BATCH,
    "--no-shuffle", "--epochs", 3, "--learning-rate", RATE,
]  # fmt: skip


def trained(commands, folder, *arguments) -> list[Path]:
    done = commands.stratagem("train", *WORK, "--checkpoint-dir", folder, *arguments)
    assert done.returncode == 0, done.stderr
    return sorted(folder.glob("step-*.pt"))


def batches():
    """Of one epoch, as `--data random` draws them."""
    import trainer

    data = trainer.random_numbers(1, SAMPLES, 7, 3)
    return [data[start : start + BATCH] for start in range(0, SAMPLES, BATCH)]


def continued(optimizer: str, scheduled: bool, path: Path) -> dict:
    """The checkpoint five steps later, by PyTorch's own optimizer and scheduler."""
    import torch

    state = torch.load(path)
    model = torch.nn.ModuleDict({"linear": torch.nn.Linear(7, 3, dtype=torch.float64)})
    model.load_state_dict(state["model"], strict=True)
    made = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    own = made[optimizer](model.parameters(), lr=123.0)
    keys = {*own.param_groups[0], *(["initial_lr"] if scheduled else [])}
    assert set(state["optimizer"]["param_groups"][0]) == keys
    own.load_state_dict(state["optimizer"])
    done = state["training"]["step"]
    scheduler = None
    if scheduled:
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(own, STEPS, last_epoch=done - 1)
    for inputs, targets in batches():
        own.zero_grad()
        torch.nn.functional.mse_loss(model["linear"](inputs), targets).backward()
        own.step()
        if scheduler:
            scheduler.step()
    state["training"] |= {"step": done + 5, "samples": state["training"]["samples"] + SAMPLES}
    return state | {"model": model.state_dict(), "optimizer": own.state_dict()}


def trained_state(checkpoint: dict) -> dict:
    return {part: checkpoint[part] for part in ("model", "optimizer")}


def expect_same(found, expected, path="state") -> None:
    """To 1e-10 in every number."""
    import torch

    assert type(found) is type(expected) or isinstance(found, dict), path
    if isinstance(expected, dict):
        assert set(found) == set(expected), path
        for key, value in expected.items():
            expect_same(found[key], value, f"{path}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), path
        for index, pair in enumerate(zip(found, expected, strict=True)):
            expect_same(*pair, f"{path}[{index}]")
    elif isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype, path
        assert torch.allclose(found, expected, rtol=0, atol=1e-10), path
    else:
        assert found == expected or abs(found - expected) < 1e-10, path


@pytest.mark.xdist_group("torch")
@pytest.mark.parametrize("scheduled", [False, True], ids=["constant", "cosine"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_continues_where_the_other_stopped(commands, tmp_path, optimizer, scheduled):
    """Five steps of PyTorch's from our checkpoint are ours, and ours from PyTorch's are its own."""
    import torch

    arguments = ["--optimizer", optimizer, *OPTIMIZERS[optimizer]]
    arguments += ["--learning-rate-schedule", "cosine"] if scheduled else []
    own = trained(commands, tmp_path / "own", *arguments)
    assert [path.name[-5:-3] for path in own] == ["05", "10", "15"]
    theirs = continued(optimizer, scheduled, own[0])
    expect_same(trained_state(theirs), trained_state(torch.load(own[1])))
    folder = tmp_path / "python"
    folder.mkdir()
    torch.save(theirs, folder / own[1].name)
    last = trained(commands, folder, *arguments, "--resume", "auto")[-1]
    assert last.name == own[2].name
    found = continued(optimizer, scheduled, folder / own[1].name)
    expect_same(trained_state(found), trained_state(torch.load(last)))
