"""The peers with the real PyTorch: all of them take the same steps."""

import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "peers"
TRAIN = TOOLS / "train.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="no torchvision"),
]
TINY = "--model gpt-tiny --batch 4 --steps 1 --most-warm-up 2"
GPT = "--model gpt-small --batch 4 --split-size 1 --steps 1 --most-warm-up 2"
RESNET = "--batch 8 --image 64 --split-size 2 --steps 1 --most-warm-up 2"


def peer(text, program=TRAIN):
    return subprocess.run(
        [sys.executable, str(program), *text.split()], capture_output=True, text=True, timeout=300
    )


def first_losses(text):
    run = peer(text)
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout.splitlines()[-1])
    assert (answer["device"], answer.get("backend", "gloo")) == ("cpu", "gloo")
    losses = answer["first_losses"]
    assert len(losses) == 3
    return pytest.approx(losses, rel=1e-4)


@pytest.fixture(scope="module")
def single():
    return first_losses(f"single {GPT}")


@pytest.fixture(scope="module")
def resnet_ddp():
    """Replicas normalise their own samples, so that one device is another computation."""
    return first_losses(f"ddp {RESNET}")


@pytest.mark.parametrize("way", [
    "data_parallel",
    "ddp",
    "zero1",
    "fsdp",
    "fsdp --no-reshard-after-forward",
    "tensor_parallel",
    "pipelining --schedule 1f1b --cut blocks.5",
    "pipelining --schedule interleaved_zero_bubble --cut blocks.3+blocks.5+blocks.7",
    "pipelining --schedule zb_v --cut blocks.2+blocks.5+blocks.7",
    "pipelining --schedule dualpipe_v --cut blocks.2+blocks.5+blocks.7",
])  # fmt: skip
def test_every_way_takes_the_steps_of_one_device(way, single):
    assert first_losses(f"{way} {GPT}").expected == single


@pytest.mark.parametrize("way", ["zero1", "fsdp"])
def test_replicas_of_images_take_the_same_steps_however_much_is_sharded(way, resnet_ddp):
    assert first_losses(f"{way} {RESNET}").expected == resnet_ddp


def test_the_memory_format_of_a_stage_changes_no_loss():
    """The first loss: normalisation over few values makes rounding grow from step to step.

    In a V neighbouring stages are on two ranks and on one.
    """
    stages = "--schedule dualpipe_v --cut layer2+layer3+layer4"
    runs = [
        first_losses(f"pipelining {RESNET} --memory-format {layout} {stages}")
        for layout in ("nchw", "channels_last")
    ]
    assert runs[0].expected[0] == pytest.approx(runs[1].expected[0], rel=1e-4)


@pytest.fixture(scope="module")
def float32():
    return first_losses(f"single {TINY}")


@pytest.mark.parametrize(("way", "bound"), [("bfloat16", 2e-3), ("float16", 5e-4)])
def test_autocast_takes_the_steps_of_float32_as_far_as_its_format_goes(way, bound, float32):
    """The first of float16 at its scale of 65536 updates, too: no gradient is beyond its range."""
    losses = first_losses(f"autocast --format {way} {TINY}").expected
    assert losses == pytest.approx(float32.expected, rel=bound)
    assert losses != float32.expected


@pytest.mark.parametrize("model", ["gpt-small", "gpt-tiny", "resnet50"])
def test_a_model_computes_on_the_gpu_that_it_is_given(model, monkeypatch):
    """With tensors that have a device and no memory: one of another device is refused."""
    import torch
    import train
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch_peers.measurement import fetched
    from torch_peers.whole_model import make_model

    place = torch.device("cuda:1")
    arguments = argparse.Namespace(seed=1, batch=2, image=64, memory_format="nchw", place="cuda:1")
    job = train.job_of(model)
    monkeypatch.setattr(
        torch.utils, "swap_tensors", lambda own, moved: setattr(own, "fake_device", place)
    )
    with FakeTensorMode():
        layers = make_model(arguments, job)
        inputs, targets = (fetched(tensor, arguments.place) for tensor in job.make_batch(arguments))
        loss = job.loss_of(layers(inputs), targets)
    assert {tensor.device for tensor in (*layers.parameters(), loss)} == {place}


@pytest.mark.parametrize(("options", "code", "why"), [
    ("single --device cuda", 1, "--device cuda: PyTorch sees no GPU"),
    ("ddp --device cuda --matmul onednn", 2, "--matmul onednn: of CPUs, and --device is cuda"),
    ("ddp --no-reshard-after-forward", 2, "--no-reshard-after-forward: of fsdp, not of ddp"),
    ("single --format float16", 2, "--format: of autocast, not of single"),
])
def test_what_cannot_be_done_is_one_line(options, code, why, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    run = peer(options)
    assert run.returncode == code
    assert run.stderr.splitlines()[-1].endswith(why)


def test_a_rank_that_fails_is_named_in_one_line():
    run = peer(f"pipelining {TINY} --cut nowhere")
    assert run.returncode == 1
    assert "ValueError: 'nowhere' is not in list" in run.stderr.splitlines()[-1]
    assert run.stderr.splitlines()[-1].startswith("rank ")


def test_data_parallel_has_one_device_and_says_so():
    run = peer(f"data_parallel {TINY}")
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout.splitlines()[-1])
    assert (answer["devices"], answer["threads"], answer["device"]) == (1, 2, "cpu")


@pytest.mark.parametrize("work", [
    "toy_sgd", "toy_sgd --fetch batches", "toy_sgd --ranks 2", "loader --transform tensors",
    "loader",
])  # fmt: skip
def test_epochs_are_timed_one_by_one(work):
    run = peer(f"{work} --epochs 2", TOOLS / "epochs.py")
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout.splitlines()[-1])
    assert len(answer["step_ms"]) == 2
    if work.startswith("toy_sgd"):
        assert answer["steps_an_epoch"] == (32 if "--ranks" in work else 64)
        assert 0 < answer["loss"] < 0.5


def test_an_option_that_a_work_does_not_read_is_refused():
    run = peer("loader --ranks 2", TOOLS / "epochs.py")
    assert run.returncode == 2
    assert "unrecognized arguments: --ranks 2" in run.stderr
