"""Blocks that repeat their forward passes: how often, to which gradients, and who cannot."""

import importlib.util
import sys

import pytest
import train
from peer_comparison.contenders import Settings
from peer_comparison.scenarios import SCENARIOS

ONCE, TWICE = 1, 2


def needs_torch(test):
    """Mark a test of the real PyTorch."""
    no_torch = importlib.util.find_spec("torchvision") is None
    marked = pytest.mark.skipif(no_torch, reason="no torchvision")(test)
    return pytest.mark.slow(pytest.mark.xdist_group("torch")(marked))


def parsed(options, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", *options.split()])
    return train.parse_arguments()


def one_step(model, options, monkeypatch):
    """The forward passes of each block, and the gradients, of the options' first step."""
    from torch_peers.recomputation import recomputing

    arguments = parsed(f"single --model {model} --batch 2 {options}", monkeypatch)
    job = train.job_of(model)
    layers = job.make_layers(arguments.seed)
    passes = dict.fromkeys([name for name in layers if name.startswith("blocks.")], 0)

    def count(name):
        passes[name] += 1

    for name in passes:
        layers[name].register_forward_pre_hook(lambda *_, name=name: count(name))
    tokens, targets = job.make_batches(arguments)[0]
    job.loss_of(recomputing(arguments, layers)(tokens), targets).backward()
    parameters = [p for layer in layers.values() for p in layer.parameters()]
    return [*passes.values()], [parameter.grad for parameter in parameters]


@pytest.mark.parametrize("model", ["gpt-tiny", "llama-tiny"])
@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ("--recompute none", [ONCE, ONCE]),
        ("--recompute full", [TWICE, TWICE]),
        ("--recompute full --reentrant", [TWICE, TWICE]),
        ("--recompute full --segments 2", [TWICE, ONCE]),
        ("--recompute full --segments 2 --reentrant", [TWICE, ONCE]),
    ],
)
@needs_torch
def test_a_repeated_pass_changes_no_gradient(model, options, passes, monkeypatch):
    _, expected = one_step(model, "", monkeypatch)
    counted, gradients = one_step(model, options, monkeypatch)
    assert counted == passes
    for own, other in zip(gradients, expected, strict=True):
        assert own.equal(other)


@needs_torch
def test_each_model_has_the_blocks_that_segments_are_checked_with():
    found = {name: train.job_of(name) for name in train.MODELS if name != "resnet50"}
    assert {name: job.blocks for name, job in found.items()} == train.BLOCKS


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("fsdp --recompute full", "--recompute: of single and ddp, not of fsdp"),
        ("autocast --recompute full", "--recompute: of single and ddp, not of autocast"),
        (
            "single --recompute full",
            "of gpt-small, gpt-long, gpt-tiny, llama-small, llama-tiny, not of resnet50",
        ),
        ("single --segments 2", "--segments: of --recompute full"),
        ("ddp --reentrant", "--reentrant: of --recompute full"),
        (
            "single --model gpt-tiny --recompute full --segments 1",
            "--segments: 1 is not from 2 to 2",
        ),
        ("ddp --model gpt-small --recompute full --segments 9", "--segments: 9 is not from 2 to 8"),
        (
            "single --model gpt-tiny --recompute full --compile --reentrant",
            "--reentrant: not of --compile",
        ),
        (
            "single --model gpt-tiny --recompute full --compile --segments 2",
            "--segments: not of --compile",
        ),
        ("single --recompute selective", "argument --recompute: invalid choice: 'selective'"),
    ],
)
def test_what_cannot_be_repeated_is_one_line(options, why, monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        parsed(options, monkeypatch)
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert why in message
    assert message.count("\n") == 1


def test_both_sides_repeat_passes_in_their_own_ways():
    scenario = SCENARIOS["recomputation"].build(Settings(batch=8))
    commands = {each.name: " ".join(each.timed.command) for each in scenario.contenders}
    for name, options in (
        ("stratagem/single/full", "--strategy single --devices 1 --recompute full"),
        ("stratagem/ddp/full/bucket:5", "ddp --devices 2 --recompute full --bucket-mb 5"),
        ("torch/single/full/segments:8", "single --recompute full --segments 8 --model gpt-small"),
        ("torch/single/full/segments:4/reentrant/onednn/allocator",
         "single --recompute full --segments 4 --reentrant --matmul onednn"),
        ("torch/ddp/full/installed/static_graph/allocator",
         "ddp --recompute full --matmul installed --static-graph"),
    ):  # fmt: skip
        assert options in commands[name]
    proven = {each.name: each.row for each in scenario.contenders if each.row}
    assert proven["torch/ddp/full/installed/allocator"] == proven["torch/ddp/installed/allocator"]
    ratios = {ratio.name: ratio for ratio in scenario.ratios}
    assert len(ratios) == len(scenario.ratios)
    # PyTorch's best repeats half of the blocks, which the ratio of a block a segment leaves out.
    best = ratios["single: PyTorch's best over ours"].slower
    alike = ratios["single: PyTorch's best of a block a segment over ours"].slower
    assert {name.split("/")[3] for name in best} == {"segments:8", "segments:4", "segments:2"}
    assert {name.split("/")[3] for name in alike} == {"segments:8"}
