"""Context parallelism of the peers: exact steps, whatever the exchange, and what is refused."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import train
from peer_comparison.contenders import Settings
from peer_comparison.scenarios import SCENARIOS

EXACTLY = Path(__file__).with_name("context_steps.py")
WAYS = [
    "ulysses",
    "ulysses --bucket-mb 0.01 --static-graph",
    "ring_attention",
    "ring_attention --rotate alltoall --bucket-mb 0.01",
    "ring_attention --order contiguous",
    "ring_attention --order contiguous --rotate alltoall",
]
ROUNDING = 1e-12  # of float64, over three steps


def of_tiny(way):
    return f"train.py {way} --model gpt-tiny --batch 3 --steps 1 --most-warm-up 2 --evidence asked"


@pytest.fixture(scope="module")
def answers():
    """The answer of each way, in float64 and with plain SGD."""
    lines = [of_tiny(way) for way in ("single", *WAYS)]
    run = subprocess.run(
        [sys.executable, EXACTLY, *lines], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return dict(zip(lines, json.loads(run.stdout.splitlines()[-1]), strict=True))


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="no torchvision")
@pytest.mark.xdist_group("context_peers")
@pytest.mark.parametrize("way", WAYS)
def test_ranks_that_share_positions_take_exactly_the_steps_of_one_device(way, answers):
    single, own = answers[of_tiny("single")], answers[of_tiny(way)]
    assert own["losses"] == pytest.approx(single["losses"], rel=ROUNDING)
    assert own["state"].keys() == single["state"].keys()
    for name, expected in single["state"].items():
        size = expected["squares"] ** 0.5
        found = own["state"][name]["projected"]
        assert found == pytest.approx(expected["projected"], rel=0, abs=ROUNDING * size), name


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="no torchvision")
@pytest.mark.xdist_group("torch")
def test_each_model_has_the_positions_and_heads_that_devices_are_checked_with():
    jobs = {name: train.job_of(name) for name in train.POSITIONS}
    assert {name: job.sequence for name, job in jobs.items()} == train.POSITIONS
    assert {name: job.heads for name, job in jobs.items()} == train.HEADS


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("ddp --order zigzag", "--order: of ring_attention, not of ddp"),
        ("ulysses --order contiguous", "--order: of ring_attention, not of ulysses"),
        ("ulysses --rotate alltoall", "--rotate: of ring_attention, not of ulysses"),
        ("ring_attention --rotate heads", "argument --rotate: invalid choice: 'heads'"),
        ("ulysses --model gpt-tiny --device cuda", "--device: ulysses is of cpu, not of cuda"),
        ("ulysses", "--model: ulysses is of gpt-small, gpt-long, gpt-tiny, not of resnet50"),
        (
            "ring_attention --model llama-tiny",
            "--model: ring_attention is of gpt-small, gpt-long, gpt-tiny, not of llama-tiny",
        ),
        (
            "ulysses --model gpt-tiny --devices 8",
            "--devices: 8 cannot share the positions and heads of gpt-tiny evenly;"
            " use one of 1, 2, 4",
        ),
        (
            "ring_attention --model gpt-tiny --devices 32",
            "--devices: 32 cannot share the positions of gpt-tiny evenly;"
            " use one of 1, 2, 4, 8, 16",
        ),
        (
            "ring_attention --model gpt-tiny --order contiguous --devices 3",
            "--devices: 3 cannot share the positions of gpt-tiny evenly;"
            " use one of 1, 2, 4, 8, 16, 32",
        ),
    ],
)
def test_positions_that_cannot_be_shared_are_one_line(options, why, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["train.py", *options.split()])
    with pytest.raises(SystemExit) as ended:
        train.parse_arguments()
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert why in message
    assert message.count("\n") == 1


@pytest.mark.parametrize("options", ["", "--devices 16", "--order contiguous --devices 32"])
def test_a_ring_takes_as_many_ranks_as_have_positions(options, monkeypatch):
    words = f"train.py ring_attention --model gpt-tiny {options}".split()
    monkeypatch.setattr(sys, "argv", words)
    arguments = train.parse_arguments()
    assert arguments.rotate == "allgather"
    assert arguments.order == ("contiguous" if options.startswith("--order") else "zigzag")


def test_both_sides_share_positions_in_their_own_ways():
    scenario = SCENARIOS["context"].build(Settings(batch=8))
    found = {each.name: each for each in scenario.contenders}
    for name, options in (
        ("stratagem/context_parallel/heads", "--devices 2 --context-exchange heads"),
        (
            "stratagem/context_parallel/gather/contiguous",
            "--context-exchange gather --context-order contiguous",
        ),
        ("torch/ulysses/onednn/bucket:5/allocator", "ulysses --matmul onednn --bucket-mb 5"),
        (
            "torch/ring_attention/zigzag/alltoall/compiled/installed/allocator",
            "ring_attention --order zigzag --rotate alltoall --matmul installed --compile",
        ),
    ):
        assert options in " ".join(found[name].timed.command)
        assert found[name].ranks == 2
    row = found["torch/ulysses/installed/allocator"].row
    assert row[-2:] == ("--strategy", "single")
    # A rotation's ratio has the rings of that rotation alone.
    ratios = {ratio.name.strip(): ratio for ratio in scenario.ratios}
    assert all("/alltoall/" in name for name in ratios["that passes on"].slower)
    assert all("/allgather/" in name for name in ratios["that gathers"].slower)
