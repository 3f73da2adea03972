"""The peers with the real PyTorch: all of them take the same steps."""

import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import epochs
import pytest
import train
from launchers import need_network_namespaces
from peer_comparison.cable import TWO_HOSTS
from torch_peers.placement import place

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "peers"
TRAIN = TOOLS / "train.py"
SEVERAL = Path(__file__).with_name("several_ways.py")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="no torchvision"),
]
# Tests that read the answers of one process: it imports PyTorch once for all of them.
TOGETHER = pytest.mark.xdist_group("peers")

TOLERANCE = 1e-4
SHORT = "--steps 1 --most-warm-up 2"
TINY = f"--model gpt-tiny --batch 4 {SHORT}"
RESNET = f"train.py {{}} --batch 8 --image 64 --split-size 2 {SHORT}"
# Where each model is cut into two stages, and into four.
CUTS = {
    "gpt-tiny": ("blocks.1", "blocks.0+blocks.1+norm", "blocks.0+blocks.1+norm"),
    "gpt-small": ("blocks.5", "blocks.3+blocks.5+blocks.7", "blocks.2+blocks.5+blocks.7"),
}
GPT_WAYS = [
    "ddp",
    "zero1",
    "fsdp",
    "fsdp --no-reshard-after-forward",
    "tensor_parallel",
    "pipelining --schedule 1f1b --cut {0}",
    "pipelining --schedule interleaved_zero_bubble --cut {1}",
    "pipelining --schedule zb_v --cut {2}",
    "pipelining --schedule dualpipe_v --cut {2}",
]
IMAGE_STAGES = "pipelining --schedule dualpipe_v --cut layer2+layer3+layer4 --memory-format {}"
WORKS = [
    "toy_sgd", "toy_sgd --fetch batches", "toy_sgd --ranks 2", "loader --transform tensors",
    "loader",
]  # fmt: skip


def gpt(way, model="gpt-tiny"):
    """A command line of the way; other tests of the same way get the same line."""
    options = f"--model {model} --batch 4 --split-size 1 {SHORT}"
    return f"train.py {way.format(*CUTS[model])} {options}"


def image_stages(memory_format):
    return RESNET.format(IMAGE_STAGES.format(memory_format))


def autocast(form):
    return f"train.py autocast --format {form} {TINY}"


def of_epochs(work):
    return f"epochs.py {work} --epochs 2"


def run_program(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


def peer(text, program=TRAIN):
    return run_program(program, *text.split())


def answers_of(lines):
    """What several_ways.py answers to each line."""
    run = run_program(SEVERAL, *lines)
    assert run.returncode == 0, run.stderr
    return dict(zip(lines, json.loads(run.stdout.splitlines()[-1]), strict=True))


def losses_of(answer):
    assert (answer["device"], answer.get("backend", "gloo")) == ("cpu", "gloo")
    assert len(answer["first_losses"]) == 3
    assert answer["peak_resident_bytes"] > 100 * 2**20  # PyTorch alone takes more
    return answer["first_losses"]


def expect_the_steps_of(losses, expected):
    assert losses == pytest.approx(expected, rel=TOLERANCE)
    # So far that a step left out or taken otherwise would be noticed.
    assert abs(losses[2] / losses[0] - 1) > 10 * TOLERANCE


@pytest.fixture(scope="module")
def answers():
    lines = [gpt(way) for way in ("single", *GPT_WAYS)]
    lines += [RESNET.format(way) for way in ("ddp", "fsdp")]
    lines += [autocast(form) for form in ("bfloat16", "float16")]
    lines += [of_epochs(work) for work in WORKS]
    return answers_of(lines)


@pytest.fixture(scope="module")
def answers_of_the_night():
    lines = [gpt(way, "gpt-small") for way in ("single", *GPT_WAYS)]
    lines += [RESNET.format(way) for way in ("ddp", "zero1")]
    lines += [image_stages(layout) for layout in ("nchw", "channels_last")]
    return answers_of(lines)


@TOGETHER
@pytest.mark.parametrize("way", GPT_WAYS)
def test_every_way_takes_the_steps_of_one_device(way, answers):
    expect_the_steps_of(losses_of(answers[gpt(way)]), losses_of(answers[gpt("single")]))


@pytest.mark.night
@pytest.mark.xdist_group("peers_at_night")
@pytest.mark.parametrize("way", GPT_WAYS)
def test_every_way_takes_the_steps_of_one_device_with_a_larger_model(way, answers_of_the_night):
    expect_the_steps_of(
        losses_of(answers_of_the_night[gpt(way, "gpt-small")]),
        losses_of(answers_of_the_night[gpt("single", "gpt-small")]),
    )


def expect_the_steps_of_ddp_on_images(way, answers):
    """Replicas normalise their own samples, so that one device is another computation."""
    expected = losses_of(answers[RESNET.format("ddp")])
    assert losses_of(answers[RESNET.format(way)]) == pytest.approx(expected, rel=TOLERANCE)


@TOGETHER
def test_sharded_replicas_of_images_take_the_steps_of_ddp(answers):
    expect_the_steps_of_ddp_on_images("fsdp", answers)


@pytest.mark.night
@pytest.mark.xdist_group("peers_at_night")
def test_replicas_of_images_with_a_sharded_optimizer_take_the_steps_of_ddp(answers_of_the_night):
    expect_the_steps_of_ddp_on_images("zero1", answers_of_the_night)


@pytest.mark.night
@pytest.mark.xdist_group("peers_at_night")
def test_the_memory_format_of_a_stage_changes_no_loss(answers_of_the_night):
    """The first loss: normalisation over few values makes rounding grow from step to step.

    In a V neighbouring stages are on two ranks and on one.
    """
    first, second = (
        losses_of(answers_of_the_night[image_stages(layout)])[0] for layout in ("nchw", "channels_last")
    )
    assert first == pytest.approx(second, rel=TOLERANCE)


@TOGETHER
@pytest.mark.parametrize(("form", "bound"), [("bfloat16", 2e-3), ("float16", 5e-4)])
def test_autocast_takes_the_steps_of_float32_as_far_as_its_format_goes(form, bound, answers):
    """The first of float16 at its scale of 65536 updates, too: no gradient is beyond its range."""
    losses, float32 = losses_of(answers[autocast(form)]), losses_of(answers[gpt("single")])
    assert losses == pytest.approx(float32, rel=bound)
    assert losses != pytest.approx(float32, rel=1e-7)


@TOGETHER
@pytest.mark.parametrize("work", WORKS)
def test_epochs_are_timed_one_by_one(work, answers):
    answer = answers[of_epochs(work)]
    assert len(answer["step_ms"]) == 2
    if work.startswith("toy_sgd"):
        assert answer["steps_an_epoch"] == (32 if "--ranks" in work else 64)
        assert 0 < answer["loss"] < 0.5


def expect_the_answer_of(run, way, answers):
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout.splitlines()[-1])
    assert answer["peer"] == f"gpt-tiny/{way}"
    expect_the_steps_of(losses_of(answer), losses_of(answers[gpt("single")]))
    return answer


@TOGETHER
def test_data_parallel_has_one_device_and_says_so(answers):
    answer = expect_the_answer_of(peer(f"data_parallel {TINY}"), "data_parallel", answers)
    assert (answer["devices"], answer["threads"]) == (1, 2)


@TOGETHER
def test_ranks_on_two_hosts_take_the_steps_of_one_device(answers):
    need_network_namespaces()
    run = subprocess.run(
        [TWO_HOSTS, "--rate", "1gbit", sys.executable, TRAIN, "fsdp", *TINY.split()],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    answer = expect_the_answer_of(run, "fsdp", answers)
    assert len(answer["per_rank_ms"]) == 2


@pytest.mark.parametrize(("program", "options", "name"), [
    (train, "fsdp --model gpt-tiny", "gpt-tiny/fsdp"),
    (epochs, "toy_sgd --ranks 2", "toy_sgd"),
])  # fmt: skip
def test_the_program_of_ranks_prints_their_answer(program, options, name, monkeypatch, capsys):
    answers = []

    def merged(placement, run):
        answers.append(placement)
        return {"loss": 0.5}

    monkeypatch.setattr(program.ranks, "merged", merged)
    monkeypatch.setattr(program, "signal", Mock(), raising=False)
    monkeypatch.setattr(sys, "argv", ["program", *options.split()])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    program.main()
    assert answers == [place("cpu", 2)]
    assert json.loads(capsys.readouterr().out) == {"peer": name, "loss": 0.5}


@pytest.mark.xdist_group("torch")
@pytest.mark.parametrize(
    "model", [pytest.param("gpt-small", marks=pytest.mark.night), "gpt-tiny", "resnet50"]
)
def test_a_model_computes_on_the_gpu_that_it_is_given(model, monkeypatch):
    """With tensors that have a device and no memory: one of another device is refused."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch_peers.measurement import fetched
    from torch_peers.whole_model import make_model

    gpu = torch.device("cuda:1")
    arguments = argparse.Namespace(seed=1, batch=2, image=64, memory_format="nchw", place="cuda:1")
    job = train.job_of(model)
    monkeypatch.setattr(
        torch.utils, "swap_tensors", lambda own, moved: setattr(own, "fake_device", gpu)
    )
    with FakeTensorMode():
        layers = make_model(arguments, job)
        inputs, targets = (fetched(tensor, arguments.place) for tensor in job.make_batch(arguments))
        loss = job.loss_of(layers(inputs), targets)
    assert {tensor.device for tensor in (*layers.parameters(), loss)} == {gpu}


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


def test_an_option_that_a_work_does_not_read_is_refused():
    run = peer("loader --ranks 2", TOOLS / "epochs.py")
    assert run.returncode == 2
    assert "unrecognized arguments: --ranks 2" in run.stderr
