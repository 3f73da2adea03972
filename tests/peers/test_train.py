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
# Stratagem's row of the same work.
WORK = "--global-batch-size 4 --optimizer adamw --learning-rate 0.001"
IMAGES = "--global-batch-size 8 --image-size 64 --loss mse --optimizer sgd --momentum 0 --learning-rate 0.001"
STRATAGEM = Path(__file__).resolve().parents[2] / "build" / "bin" / "stratagem"
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
    "fsdp --wrap blocks",
    "ddp --static-graph --bucket-mb 1",
    "single --recompute full --segments 2",
    "single --recompute full --segments 2 --reentrant",
    "ddp --recompute full",
    "ddp --recompute full --static-graph",
    "ddp --recompute full --reentrant",
    "ddp --recompute full --segments 2",
    "tensor_parallel",
    "ulysses",
    "ring_attention --rotate alltoall",
    "ring_attention --order contiguous",
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


def gpt(way, workloads, model="gpt-tiny"):
    """A command line of the way; other tests of the same way get the same line."""
    options = f"--model {model} --batch 4 --split-size 1 {SHORT}"
    told = f"--workload {workloads[model]} --evidence asked_for"
    return f"train.py {way.format(*CUTS[model])} {options} {told}"


def image_stages(memory_format, told=""):
    return RESNET.format(IMAGE_STAGES.format(memory_format)) + told


def row_of(way, model="gpt-tiny"):
    """The options of the row of Stratagem whose steps the way takes."""
    half = f"--mixed-precision {way.split()[-1]}" if way.startswith("autocast") else ""
    return f"--strategy single --model {model} {half}"


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
    assert len(answer["losses"]) == 3
    assert answer["peak_resident_bytes"] > 100 * 2**20  # PyTorch alone takes more
    return answer["losses"]


def stratagem(*arguments):
    return subprocess.run(
        [STRATAGEM, *map(str, arguments)], capture_output=True, text=True, timeout=300
    )


def proof_of(answer, row, folder, work=WORK):
    """What `stratagem prove` answers of a peer's answer."""
    evidence = folder / "evidence.json"
    told = {"loss": answer["losses"], **{key: answer[key] for key in ("skipped", "state")}}
    evidence.write_text(json.dumps(told))
    return stratagem("prove", evidence, *row.split(), *work.split())


@pytest.fixture(scope="module")
def workloads(tmp_path_factory):
    """What `stratagem export` wrote, by model."""
    files = {}
    works = {"gpt-tiny": WORK, "gpt-small": WORK, "resnet50": IMAGES}
    for model, work in works.items():
        files[model] = tmp_path_factory.mktemp("workload") / f"{model}.pt"
        run = stratagem("export", files[model], "--strategy", "single", "--model", model,
                        *work.split())  # fmt: skip
        assert run.returncode == 0, run.stderr
    return files


def expect_the_steps_of_one_device(answer, row, folder):
    assert len(losses_of(answer)) == 3
    run = proof_of(answer, row, folder)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("one device in float64, 3 batches, 3 steps")


def evidence_of_images(workloads):
    return f" --workload {workloads['resnet50']} --evidence asked_for"


AUTOCASTS = [f"autocast --format {form}" for form in ("bfloat16", "float16")]


@pytest.fixture(scope="module")
def answers(workloads):
    lines = [gpt(way, workloads) for way in ("single", *GPT_WAYS, *AUTOCASTS)]
    lines += [RESNET.format(way) for way in ("ddp", "fsdp")]
    lines.append(image_stages("channels_last", evidence_of_images(workloads)))
    lines += [of_epochs(work) for work in WORKS]
    return answers_of(lines)


@pytest.fixture(scope="module")
def answers_of_the_night(workloads):
    lines = [gpt(way, workloads, "gpt-small") for way in ("single", *GPT_WAYS)]
    lines += [RESNET.format(way) for way in ("ddp", "zero1")]
    lines += [image_stages(layout) for layout in ("nchw", "channels_last")]
    return answers_of(lines)


@TOGETHER
@pytest.mark.parametrize("way", ["single", *GPT_WAYS, *AUTOCASTS])
def test_every_way_takes_the_steps_of_one_device(way, answers, workloads, tmp_path):
    expect_the_steps_of_one_device(answers[gpt(way, workloads)], row_of(way), tmp_path)


@pytest.mark.night
@pytest.mark.xdist_group("peers_at_night")
@pytest.mark.parametrize("way", ["single", *GPT_WAYS])
def test_every_way_takes_the_steps_of_one_device_with_a_larger_model(
    way, answers_of_the_night, workloads, tmp_path
):
    answer = answers_of_the_night[gpt(way, workloads, "gpt-small")]
    expect_the_steps_of_one_device(answer, row_of(way, "gpt-small"), tmp_path)


@TOGETHER
def test_stages_of_images_normalise_nothing_but_the_batches(answers, workloads, tmp_path):
    """torch.distributed.pipelining would find shapes by a pass of zeros that BatchNorm remembers."""
    answer = answers[image_stages("channels_last", evidence_of_images(workloads))]
    row = "--strategy single --model resnet50 --accumulation-steps 4"
    run = proof_of(answer, row, tmp_path, IMAGES)
    assert run.returncode == 0, run.stderr


@TOGETHER
def test_a_program_that_took_other_steps_is_refused(answers, workloads, tmp_path):
    right = answers[gpt("single", workloads)]
    run = proof_of(right, f"{row_of('single')} --seed 2", tmp_path)
    assert run.returncode == 1
    assert "the loss of step 0 is " in run.stderr
    # The losses are those of the work, and one entry of the state is not.
    name = "blocks.1.mlp.up.weight"
    changed = {**right["state"], name: right["state"]["blocks.0.mlp.up.weight"]}
    run = proof_of({**right, "state": changed}, row_of("single"), tmp_path)
    assert run.returncode == 1
    assert f"{name} after step 2 differs from one device's" in run.stderr
    run = proof_of({**right, "skipped": [1]}, row_of("single"), tmp_path)
    assert run.returncode == 1
    assert "step 1 skipped its update without a dynamic loss scale" in run.stderr
    run = proof_of({**right, "losses": []}, row_of("single"), tmp_path)
    assert run.returncode == 2
    assert run.stderr.endswith("loss: has 0 steps, expected 1 to 1000\n")
    short = {"a": {"squares": 1, "projected": [1, 2]}}
    run = proof_of({**right, "state": short}, row_of("single"), tmp_path)
    assert run.returncode == 2
    assert run.stderr.endswith("state.a.projected: has 2 numbers, expected 8\n")


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
@pytest.mark.parametrize("work", WORKS)
def test_epochs_are_timed_one_by_one(work, answers):
    answer = answers[of_epochs(work)]
    assert len(answer["step_ms"]) == 2
    if work.startswith("toy_sgd"):
        assert answer["steps_an_epoch"] == (32 if "--ranks" in work else 64)
        assert 0 < answer["loss"] < 0.5


def expect_the_answer_of(run, way, evidence):
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout.splitlines()[-1])
    assert answer["peer"] == f"gpt-tiny/{way}"
    proof = stratagem("prove", evidence, *row_of(way).split(), *WORK.split())
    assert proof.returncode == 0, proof.stderr
    return answer


@TOGETHER
def test_data_parallel_has_one_device_and_says_so(workloads, tmp_path):
    evidence = tmp_path / "evidence.json"
    run = peer(f"data_parallel {TINY} --workload {workloads['gpt-tiny']} --evidence {evidence}")
    answer = expect_the_answer_of(run, "data_parallel", evidence)
    assert (answer["devices"], answer["threads"]) == (1, 2)


@TOGETHER
def test_ranks_on_two_hosts_take_the_steps_of_one_device(workloads, tmp_path):
    need_network_namespaces()
    evidence = tmp_path / "evidence.json"
    run = subprocess.run(
        [TWO_HOSTS, "--rate", "1gbit", sys.executable, TRAIN, "fsdp", *TINY.split(),
         "--workload", workloads["gpt-tiny"], "--evidence", evidence],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    answer = expect_the_answer_of(run, "fsdp", evidence)
    assert len(answer["per_rank_ms"]) == 2


@pytest.mark.parametrize(("program", "options", "name", "left"), [
    (train, "fsdp --model gpt-tiny", "gpt-tiny/fsdp", {}),
    (epochs, "toy_sgd --ranks 2", "toy_sgd", {"state": {}}),
])  # fmt: skip
def test_the_program_of_ranks_prints_their_answer(
    program, options, name, left, monkeypatch, capsys
):
    answers = []

    def merged(placement, run):
        answers.append(placement)
        return {"loss": 0.5, "state": {}}

    monkeypatch.setattr(program.ranks, "merged", merged)
    monkeypatch.setattr(program, "signal", Mock(), raising=False)
    monkeypatch.setattr(sys, "argv", ["program", *options.split()])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    program.main()
    assert answers == [place("cpu", 2)]
    assert json.loads(capsys.readouterr().out) == {"peer": name, "loss": 0.5, **left}


@pytest.mark.xdist_group("torch")
@pytest.mark.parametrize(
    "model", [pytest.param("gpt-small", marks=pytest.mark.night), "gpt-tiny", "resnet50"]
)
def test_a_model_computes_on_the_gpu_that_it_is_given(model, monkeypatch):
    """With tensors that have a device and no memory: one of another device is refused."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch_peers.measurement import fetched
    from torch_peers.whole_model import as_model, make_layers

    gpu = torch.device("cuda:1")
    arguments = argparse.Namespace(seed=1, batch=2, image=64, memory_format="nchw", place="cuda:1")
    job = train.job_of(model)
    monkeypatch.setattr(
        torch.utils, "swap_tensors", lambda own, moved: setattr(own, "fake_device", gpu)
    )
    with FakeTensorMode():
        model = as_model(make_layers(arguments, job))
        batch, *others = job.make_batches(arguments)
        inputs, targets = (fetched(tensor, arguments.place) for tensor in batch)
        loss = job.loss_of(model(inputs), targets)
    assert len(others) == 7
    assert {tensor.device for tensor in (*model.parameters(), loss)} == {gpu}


@pytest.mark.parametrize(("options", "code", "why"), [
    ("single --device cuda", 2, "--device cuda: PyTorch sees no GPU"),
    ("ddp --device cuda --matmul onednn", 2, "--matmul onednn: of CPUs, and --device is cuda"),
    ("ddp --no-reshard-after-forward", 2, "--no-reshard-after-forward: of fsdp, not of ddp"),
    ("single --format float16", 2, "--format: of autocast, not of single"),
    ("ddp --wrap blocks", 2, "--wrap: of fsdp, not of ddp"),
    ("fsdp --static-graph", 2, "--static-graph: of ddp, ulysses, ring_attention, not of fsdp"),
    ("ddp --bucket-mb 0", 2, "--bucket-mb: 0 is not above 0"),
    ("tensor_parallel --compile", 2, "--compile: not of tensor_parallel"),
    ("single --batch 0", 2, "--batch: 0 is not a whole number of 1 or more"),
    ("single --seed -1", 2, "--seed: -1 is not a whole number of 0 or more"),
    ("single --workload nowhere", 2, "--workload: nowhere: no such file"),
    (f"single --workload {__file__} --seed 1", 2,
     "--seed: not with --workload, whose file has the state and the batches"),
    ("single --evidence nowhere/file", 2, "--evidence: nowhere/file: no such folder"),
])  # fmt: skip
def test_what_cannot_be_done_is_one_line(options, code, why, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    run = peer(options)
    assert run.returncode == code
    assert run.stderr.count("\n") == 1 and run.stderr.endswith(f"{why}\n")


def test_a_rank_that_fails_is_named_in_one_line():
    run = peer(f"pipelining {TINY} --cut nowhere")
    assert run.returncode == 1
    assert "ValueError: --cut: the model has no layer nowhere" in run.stderr.splitlines()[-1]
    assert run.stderr.splitlines()[-1].startswith("rank ")


def test_an_option_that_a_work_does_not_read_is_refused():
    run = peer("loader --ranks 2", TOOLS / "epochs.py")
    assert run.returncode == 2
    assert run.stderr == "epochs.py: unrecognized arguments: --ranks 2\n"
