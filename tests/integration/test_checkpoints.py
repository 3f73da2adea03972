"""Checkpoints of `stratagem train`: what Python reads of them, and a training that goes on."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import time
import zipfile

import pytest

# One process imports PyTorch, and runs all tests that need it.
TORCH = pytest.mark.xdist_group("torch")

EXAMPLE = {
    "--model": "toy", "--loss": "cross_entropy", "--dtype": "float64", "--optimizer": "adamw",
    "--learning-rate": 0.01, "--global-batch-size": 8, "--samples": 45, "--validation": "own",
    "--tail": "exact",
}  # fmt: skip


def example(*changes) -> list:
    """The example's options, with other values for some."""
    options = EXAMPLE | dict(zip(changes[::2], changes[1::2], strict=True))
    return ["--no-verify", *(part for option in options.items() for part in option)]


def train(commands, folder, *arguments, code=0):
    done = commands.stratagem("train", "--checkpoint-dir", folder, *arguments)
    assert done.returncode == code, done.stderr
    return done


def told(log) -> list[dict]:
    """The log's events of the training itself, without times."""
    lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return [{key: line[key] for key in line.keys() - {"seconds", "data_wait_ms", "path"}}
            for line in lines if line["event"] not in ("start", "resume", "end")]  # fmt: skip


def last_of(folder):
    return sorted(folder.glob("step-*.pt"))[-1]


def same(left, right) -> bool:
    import torch

    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return torch.equal(left, right) if isinstance(left, torch.Tensor) else left == right


def state_of(path) -> dict:
    import torch

    whole = torch.load(path)  # weights_only, its default
    assert whole["format"] == "stratagem/checkpoint-1"
    return {"model": whole["model"], "optimizer": whole["optimizer"]}


@TORCH
@pytest.mark.parametrize("name", ["resnet18", pytest.param("resnet50", marks=pytest.mark.night)])
def test_torchvision_and_torch_optim_take_a_checkpoint(commands, tmp_path, name):
    import torch
    import torchvision

    arguments = [
        "--model", name, "--data", "shapes", "--samples", 4, "--global-batch-size", 4,
        "--loss", "cross_entropy", "--momentum", 0.9, "--no-verify",
    ]  # fmt: skip
    train(commands, tmp_path, *arguments)
    state = state_of(last_of(tmp_path))
    model = getattr(torchvision.models, name)(num_classes=10)
    model.load_state_dict(state["model"], strict=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1, momentum=0.5)
    optimizer.load_state_dict(state["optimizer"])
    assert optimizer.param_groups[0]["momentum"] == 0.9
    moments = [optimizer.state[each]["momentum_buffer"].shape for each in model.parameters()]
    assert moments == [each.shape for each in model.parameters()]


@TORCH
@pytest.mark.parametrize("strategy", ["single", "ddp", "pipeline"])
def test_a_training_goes_on_as_if_it_had_never_stopped(commands, tmp_path, strategy):
    arguments = example("--strategy", strategy, "--epochs", 2, "--checkpoint-every", 5)
    arguments += ["--split-size", 3] if strategy == "pipeline" else []
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(commands, whole, *arguments, "--log", tmp_path / "whole.log")
    train(commands, parts, *arguments, "--log", tmp_path / "parts.log")
    for path in sorted(parts.glob("step-*.pt"))[2:]:  # of steps 5 and 10 of 12
        path.unlink()
    done = train(commands, parts, *arguments, "--log", tmp_path / "parts.log", "--resume", "auto")
    assert f"continues from {parts}/step-00000010.pt" in done.stdout
    assert told(tmp_path / "parts.log") == told(tmp_path / "whole.log")
    assert same(state_of(last_of(parts)), state_of(last_of(whole)))


# Gradients of single samples are far above 1: at the first scale they are beyond float16.
SCALED = [
    "--no-verify", "--model", "linear", "--features", 20, "--outputs", 1, "--targets", "real",
    "--loss", "mse", "--global-batch-size", 2, "--samples", 500, "--optimizer", "adamw",
    "--learning-rate", 0.01, "--learning-rate-schedule", "cosine", "--warmup-steps", 50,
    "--mixed-precision", "float16",
]  # fmt: skip


def skipped_at(log) -> list[int]:
    return [line["step"] for line in told(log) if line.get("skipped_updates")]


def scaler_of(path) -> dict:
    """As torch's own scaler takes it."""
    import torch

    state = torch.load(path)["scaler"]
    own = torch.amp.GradScaler("cpu")
    own.load_state_dict(state)
    assert own.get_scale() == state["scale"]
    assert own.state_dict()["growth_interval"] == state["growth_interval"]
    return state


@TORCH
def test_a_scaled_training_that_is_killed_goes_on(commands, tmp_path):
    """Behind the start's overflows, and over the step at which the scale doubles."""
    arguments = [*SCALED, "--epochs", 10, "--checkpoint-every", 250, "--loss-scale-hysteresis", 2]
    whole, parts, log = tmp_path / "whole", tmp_path / "parts", tmp_path / "parts.log"
    train(commands, whole, *arguments, "--log", tmp_path / "whole.log")
    skipped = skipped_at(tmp_path / "whole.log")
    assert skipped[0] < 10
    assert scaler_of(whole / "step-00000250.pt")["scale"] < 65536
    assert any(step > 2000 for step in skipped), "it doubled"
    again = ["--checkpoint-dir", parts, *arguments, "--log", log, "--resume", "auto"]
    process = commands.start("stratagem", "train", *again)
    commands.wait_until(lambda: len(list(parts.glob("step-*.pt"))) > 1)
    process.kill()
    commands.finish(process)
    for path in sorted(parts.glob("step-*.pt"))[2:]:  # of steps 250 and 500
        path.unlink()
    done = commands.stratagem("train", *again)
    assert done.returncode == 0, done.stderr
    assert f"continues from {parts}/step-00000500.pt" in done.stdout
    assert f"{len(skipped)} of all 2500 updates skipped" in done.stdout
    assert told(log) == told(tmp_path / "whole.log")
    assert same(state_of(last_of(parts)), state_of(last_of(whole)))
    assert scaler_of(last_of(parts)) == scaler_of(last_of(whole))


@TORCH
def test_what_sharded_mixed_precision_has_written_any_strategy_takes(commands, tmp_path):
    import torch

    arguments = [*SCALED, "--epochs", 2, "--log", tmp_path / "log"]
    kept = tmp_path / "kept"
    train(commands, kept, *arguments, "--strategy", "zero3")
    (kept / "step-00000500.pt").unlink()
    written = kept / "step-00000250.pt"
    state = state_of(written)
    moments = [slot["exp_avg"] for slot in state["optimizer"]["state"].values()]
    tensors = [*state["model"].values(), *moments]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}
    rounded = [tensor.half().float() for tensor in state["model"].values()]
    assert not all(map(torch.equal, rounded, state["model"].values()))
    expected = told(tmp_path / "log")
    train(commands, kept, *arguments, "--resume", "auto")
    found = told(tmp_path / "log")
    losses = [[line["loss"] for line in lines if "loss" in line] for lines in (found, expected)]
    assert losses[0] == pytest.approx(losses[1], rel=0.01, abs=0.01)
    for other in ([], ["--mixed-precision", "bfloat16"]):
        options = [*SCALED[:-2], *other, "--epochs", 2, "--resume", "auto"]
        done = train(commands, kept, *options, code=2)
        assert 'belongs to a training with mixed_precision "float16", this one has' in done.stderr


def test_another_strategy_goes_on_along_the_same_curve(commands, tmp_path):
    arguments = example("--epochs", 2, "--log", tmp_path / "log")
    train(commands, tmp_path / "one", *arguments)
    (tmp_path / "one" / "step-00000012.pt").unlink()
    expected = told(tmp_path / "log")
    train(commands, tmp_path / "one", *arguments, "--strategy", "data_parallel", "--resume", "auto")
    found = told(tmp_path / "log")
    losses = [[line["loss"] for line in lines if "loss" in line] for lines in (found, expected)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


def newest(folder) -> str:
    return max((path.name for path in folder.glob("step-*.pt")), default="")


@TORCH
@pytest.mark.parametrize(
    ("deaths", "least_resumptions"), [(4, 1), pytest.param(10, 3, marks=pytest.mark.night)]
)
def test_a_training_that_is_killed_goes_on(commands, tmp_path, deaths, least_resumptions):
    """At any moment after its start, or after a checkpoint that it has written."""
    arguments = example("--epochs", 400, "--checkpoint-every", 20, "--keep", 2)
    train(commands, tmp_path / "whole", *arguments, "--log", tmp_path / "whole.log")
    order = random.Random(18)
    parts, log = tmp_path / "parts", tmp_path / "parts.log"
    again = ["--checkpoint-dir", parts, *arguments, "--log", log, "--resume", "auto"]
    resumptions = 0
    for death in range(deaths):
        before = newest(parts)
        process = commands.start("stratagem", "train", *again)
        limit = time.monotonic() + 60
        while death % 2 and newest(parts) == before and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.005)
        time.sleep(order.uniform(0, 0.3))
        process.kill()
        resumptions += "continues from" in commands.finish(process).stdout
    done = commands.stratagem("train", *again)
    assert done.returncode == 0, done.stderr
    assert resumptions >= least_resumptions
    assert told(log) == told(tmp_path / "whole.log")
    assert same(state_of(last_of(parts)), state_of(last_of(tmp_path / "whole")))
    assert len(list(parts.glob("step-*.pt"))) == 2
    assert not list(parts.glob(".step-*"))


@pytest.mark.parametrize("strategy", ["single", "ddp"])
def test_a_signal_ends_the_training_after_its_step(commands, tmp_path, strategy):
    arguments = example("--strategy", strategy, "--epochs", 100_000, "--log", tmp_path / "log")
    process = commands.start("stratagem", "train", "--checkpoint-dir", tmp_path / "c", *arguments,
                             "--checkpoint-every", 1000_000)  # fmt: skip
    limit = time.monotonic() + 60
    while '"step"' not in (tmp_path / "log").read_text() if (tmp_path / "log").exists() else True:
        assert time.monotonic() < limit and process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGTERM)
    done = commands.finish(process)
    assert done.returncode == 130
    assert "the same command with --resume auto continues" in done.stderr
    steps = [line["step"] for line in told(tmp_path / "log") if line["event"] == "step"]
    assert f"interrupted after step {steps[-1]};" in done.stderr
    assert last_of(tmp_path / "c").name == f"step-{steps[-1]:08}.pt"


def test_what_cannot_go_on_is_one_line(commands, tmp_path):
    train(commands, tmp_path, *example())
    for arguments, message in [
        ([], "has checkpoints up to step 6; --resume auto continues from there"),
        (["--resume", "auto", "--seed", 2], "belongs to a training with seed 1, this one has 2"),
        (["--resume", "auto", "--model", "linear"], 'with model "toy", this one has "linear"'),
        (["--resume", "auto", "--validation", 0.5], 'with validation "own", this one has 0.5'),
        (["--resume", "auto", "--samples", 46], "belongs to a training on other data"),
        (["--resume", "auto", "--max-steps", 5], "is of step 6, and the training ends at step 5"),
        (["--resume", "nowhere.pt"], "--resume nowhere.pt: no such file; expected auto, none"),
        (["--strategy", "single,ddp"], "--checkpoint-dir: these options make 2 trainings"),
    ]:
        done = train(commands, tmp_path, *example(*arguments), code=2)
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
    path = last_of(tmp_path)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        tensor = archive.read("archive/data/0")
    for damaged, message in [(whole[:-100], "is not a complete file of torch.save"),
                             (whole.replace(tensor, tensor[::-1]), "is damaged: ")]:  # fmt: skip
        path.write_bytes(damaged)
        done = train(commands, tmp_path, *example("--resume", "auto"), code=2)
        assert f"{path}: {message}" in done.stderr


def steps_in(folder) -> list[int]:
    return sorted(int(path.stem.removeprefix("step-")) for path in folder.glob("step-*.pt"))


def test_a_training_that_continues_from_an_earlier_step_owns_its_folder(commands, tmp_path):
    kept, log = tmp_path / "kept", tmp_path / "run.log"
    files = ["--checkpoint-every", 10, "--log", log]
    arguments = [*example("--epochs", 5), *files]
    train(commands, kept, *arguments)
    assert steps_in(kept) == [10, 20, 30]
    changed = ["--resume", kept / "step-00000010.pt", "--max-steps", 15, "--keep", 1]
    other = example("--epochs", 5, "--learning-rate", 0.5)
    done = train(commands, kept, *other, *files, *changed, code=2)
    assert "learning_rate 0.01, this one has 0.5; --learning-rate must not change" in done.stderr
    assert steps_in(kept) == [10, 20, 30], "a refused training changes nothing"
    assert told(log)[-1]["step"] == 30

    done = train(commands, kept, *arguments, *changed)
    assert f"checkpoints that do not lead from step 10 are now in {kept}/abandoned-1" in done.stdout
    assert steps_in(kept) == [15], "the newest belongs to this course, whatever the other's number"
    assert steps_in(kept / "abandoned-1") == [20, 30]
    done = train(commands, kept, *arguments, "--resume", "auto")
    assert f"continues from {kept}/step-00000015.pt" in done.stdout


def test_a_log_that_is_shorter_than_its_checkpoint_stays(commands, tmp_path):
    kept, log = tmp_path / "kept", tmp_path / "run.log"
    arguments = [*example("--epochs", 2), "--log", log]
    train(commands, kept, *arguments, "--max-steps", 6)
    lines = log.read_text().splitlines(keepends=True)
    cut = [line for line in lines if json.loads(line).get("step", 0) <= 4][:-1]
    log.write_text("".join(cut))
    done = train(commands, kept, *arguments, "--resume", "auto")
    assert f"{log} ends at step 4: its lines up to step 6 are missing" in done.stdout
    assert log.read_text().startswith("".join(cut))
    steps = [line["step"] for line in told(log) if line["event"] == "step"]
    assert steps == [1, 2, 3, 4, *range(7, 13)]


def test_resume_auto_without_a_checkpoint_keeps_the_earlier_log(commands, tmp_path):
    log = tmp_path / "run.log"
    arguments = [*example(), "--log", log, "--resume", "auto"]
    train(commands, tmp_path / "one", *arguments)
    text = log.read_text()
    done = train(commands, tmp_path / "two", *arguments)
    assert f"the earlier log is now {log}.1" in done.stdout
    assert (tmp_path / "run.log.1").read_text() == text
    assert len(told(log)) == len(text.splitlines()) - 2


def started(commands, folder, *arguments):
    """A training without end, once it has trained a step; its log is folder/run.log."""
    log = folder / "run.log"
    process = commands.start("stratagem", "train", *example("--epochs", 100_000), "--log", log,
                             "--checkpoint-every", 1000_000, *arguments)  # fmt: skip
    commands.wait_until(lambda: log.exists() and '"step"' in log.read_text())
    return process


@TORCH
@pytest.mark.parametrize("strategy", ["single", "ddp"])
def test_sigusr1_saves_and_the_training_goes_on(commands, tmp_path, strategy):
    kept = tmp_path / "kept"
    process = started(commands, tmp_path, "--strategy", strategy, "--checkpoint-dir", kept)
    for wanted in (1, 2):
        os.kill(process.pid, signal.SIGUSR1)
        commands.wait_until(lambda wanted=wanted: len(list(kept.glob("step-*.pt"))) == wanted)
    os.kill(process.pid, signal.SIGTERM)
    done = commands.finish(process)
    assert done.returncode == 130
    assert f"saved {sorted(kept.glob('step-*.pt'))[0]}" in done.stdout
    saved = [line["step"] for line in told(tmp_path / "run.log") if line["event"] == "checkpoint"]
    assert [f"step-{step:08}.pt" for step in saved] == sorted(each.name for each in kept.glob("step-*"))
    assert len(saved) == 3
    assert state_of(last_of(kept))


def test_sigusr1_without_a_folder_is_one_line_and_ends_nothing(commands, tmp_path):
    log = tmp_path / "run.log"
    process = commands.start("stratagem", "train", *example("--epochs", 100_000, "--log", log))
    commands.wait_until(lambda: log.exists() and '"step"' in log.read_text())
    os.kill(process.pid, signal.SIGUSR1)
    time.sleep(1)
    os.kill(process.pid, signal.SIGTERM)
    done = commands.finish(process)
    assert done.returncode == 130
    assert "SIGUSR1 asks for a checkpoint, but --checkpoint-dir is not given" in done.stderr


def first_loss(commands, *arguments) -> float:
    done = commands.stratagem("train", *example("--max-steps", 1), *arguments)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("first loss")]
    return float(line.split()[2].rstrip(","))


@TORCH
@pytest.mark.parametrize(
    "form", ["plain", "model", "optimizer", "ordered", "state_dict", "module", "pickles", "float32"]
)
def test_a_state_that_python_wrote_begins_a_training(commands, tmp_path, form):
    """Without anything learnt every class is as likely: the loss is ln(classes)."""
    import torch

    train(commands, tmp_path / "own", *example("--max-steps", 1))
    state = {name: torch.zeros_like(tensor)
             for name, tensor in state_of(last_of(tmp_path / "own"))["model"].items()}  # fmt: skip
    classes = list(state.values())[-1].numel()
    written = {
        "plain": state,
        "model": {"model": state},
        "optimizer": {"model": state, "epoch": 3, "optimizer": optimizer_state(state)},
        "ordered": module_of(state).state_dict(),
        "state_dict": {"state_dict": state, "device": torch.device("cpu")},
        "module": {f"module._orig_mod.{name}": tensor for name, tensor in state.items()},
        "pickles": state,
        "float32": {name: tensor.float() for name, tensor in state.items()},
    }[form]
    path = tmp_path / "python.pt"
    torch.save(written, path, _use_new_zipfile_serialization=form != "pickles")
    for strategy in ("single", "ddp"):
        loss = first_loss(commands, "--strategy", strategy, "--initial-state", path)
        assert loss == pytest.approx(math.log(classes), rel=5e-3)
    assert first_loss(commands) != pytest.approx(math.log(classes), rel=5e-3)


def optimizer_state(state) -> dict:
    import torch

    parameters = [torch.nn.Parameter(tensor) for tensor in state.values()]
    optimizer = torch.optim.AdamW(parameters)
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    return optimizer.state_dict()


def module_of(state):
    """A module with parameters of these names: its state_dict is an OrderedDict with versions."""
    import torch

    whole = torch.nn.Module()
    for name, tensor in state.items():
        *path, last = name.split(".")
        at = whole
        for part in path:
            if part not in at._modules:
                at.add_module(part, torch.nn.Module())
            at = at._modules[part]
        at.register_parameter(last, torch.nn.Parameter(tensor))
    return whole


@TORCH
def test_a_state_of_another_model_is_one_line(commands, tmp_path):
    import torch
    import torchvision

    torch.save(torchvision.models.resnet18(num_classes=10).state_dict(), tmp_path / "resnet18.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    (tmp_path / "text.pt").write_text("hello")
    for name, message in [
        ("resnet18.pt", 'is of another model: it has no tensor "'),
        ("list.pt", 'is of another model: it has no tensor "'),
        ("text.pt", "is not a complete file of torch.save or of stratagem train"),
        ("missing.pt", "no such file"),
    ]:
        done = commands.stratagem("train", *example(), "--initial-state", tmp_path / name)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr and name in done.stderr
        assert done.stderr.count("\n") == 1
    arguments = ["--model", "resnet18", "--data", "shapes", "--samples", 4, "--loss",
                 "cross_entropy", "--global-batch-size", 4, "--no-verify"]  # fmt: skip
    done = commands.stratagem("train", *arguments, "--initial-state", tmp_path / "resnet18.pt")
    assert done.returncode == 0, done.stderr
    state = torchvision.models.resnet18(num_classes=10).state_dict()
    kept = {name: each for name, each in state.items() if "num_batches_tracked" not in name}
    torch.save(kept, tmp_path / "older.pt")
    done = commands.stratagem("train", *arguments, "--initial-state", tmp_path / "older.pt")
    assert done.returncode == 0, done.stderr
    torch.save(torchvision.models.resnet18(num_classes=11).state_dict(), tmp_path / "eleven.pt")
    done = commands.stratagem("train", *arguments, "--initial-state", tmp_path / "eleven.pt")
    assert 'its "fc.weight" is [11, 512], expected [10, 512]' in done.stderr and done.returncode == 2
