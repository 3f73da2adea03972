"""Where the peers and Stratagem's rows compute, with GPUs and without; no PyTorch, and no GPU."""

import argparse

import pytest
import train
from peer_comparison.contenders import Settings
from peer_comparison.scenarios import SCENARIOS
from torch_peers.placement import Placement, place
from torch_peers.ranks import as_one

ON_CUDA = [name for name, entry in SCENARIOS.items() if "device" not in entry.lacks]


@pytest.mark.parametrize(("kind", "count", "gpus", "devices", "backend"), [
    ("cpu", 1, 0, ["cpu"], "gloo"),
    ("cpu", 2, 4, ["cpu", "cpu"], "gloo"),
    ("cuda", 1, 1, ["cuda:0"], "nccl"),
    ("cuda", 4, 8, ["cuda:0", "cuda:1", "cuda:2", "cuda:3"], "nccl"),
    ("cuda", 2, 1, ["cuda:0", "cuda:0"], "gloo"),
    ("cuda", 3, 2, ["cuda:0", "cuda:1", "cuda:0"], "gloo"),
])  # fmt: skip
def test_a_rank_has_a_device_and_nccl_a_gpu_for_each(kind, count, gpus, devices, backend):
    assert place(kind, count, gpus) == Placement(tuple(devices), backend)


def test_without_a_gpu_there_is_no_place_on_one():
    with pytest.raises(SystemExit, match="--device cuda: PyTorch sees no GPU"):
        place("cuda", 1, 0)


@pytest.mark.parametrize(("strategy", "gpus", "devices"), [
    ("single", 1, 1), ("ddp", 1, 2), ("ddp", 2, 2), ("data_parallel", 2, 2), ("pipelining", 4, 2),
    ("data_parallel", 1, None), ("pipelining", 1, None), ("fsdp", 1, None),
    ("tensor_parallel", 1, None),
])  # fmt: skip
def test_a_gpu_is_shared_only_by_ranks_that_gloo_can_serve(strategy, gpus, devices):
    arguments = argparse.Namespace(strategy=strategy, device="cuda", devices=2)
    if devices is None:
        why = f"{strategy}: --devices 2 needs as many GPUs, found 1"
        with pytest.raises(SystemExit, match=why):
            train.placement_of(arguments, gpus)
    else:
        assert len(train.placement_of(arguments, gpus).devices) == devices


def commands(scenario, **changes):
    """Each contender's command, by name."""
    made = SCENARIOS[scenario].build(Settings(**changes))
    return {each.name: " ".join(each.timed.command) for each in made.contenders}


def test_every_way_on_cpus_is_each_peer_with_and_without_the_allocator():
    found = commands("every_way")
    ours = [name for name in found if name.startswith("stratagem/")]
    assert len(ours) == 4 and len(found) == 12
    for name, command in found.items():
        assert "--device cpu" in command and "cuda" not in command
        assert ("--cores-per-device 1" in command) == (name in ours)
    assert "--cut layer3 --split-size 24" in found["torch/pipelining"]


def test_every_way_on_gpus_has_as_many_devices_and_stages():
    found = commands("every_way", device="cuda", devices=4, gpus=4)
    assert [*found] == [
        f"{side}/{way}" for side, way in [
            *(("stratagem", way) for way in ("single", "data_parallel", "ddp", "pipeline")),
            *(("torch", way) for way in ("single", "data_parallel", "ddp", "pipelining")),
        ]
    ]  # fmt: skip
    stages = "--cut layer2.1+layer3.1+layer3.5"
    assert "--devices 4 --ranks 4" in found["stratagem/pipeline"]
    assert stages in found["stratagem/pipeline"] and stages in found["torch/pipelining"]
    assert "--device cuda --devices 4" in found["torch/ddp"]
    assert not any("--device-ids" in command or "gloo" in command for command in found.values())


def test_devices_of_one_gpu_share_it_and_what_cannot_is_left_out():
    found = commands("every_way", device="cuda", devices=2, gpus=1)
    assert {name for name in found if name.startswith("torch/")} == {"torch/single", "torch/ddp"}
    for way in ("ddp", "pipeline"):
        assert "--device-ids 0+0 --backend gloo" in found[f"stratagem/{way}"]
    assert "--device-ids 0+0" in found["stratagem/data_parallel"]
    assert "gloo" not in found["stratagem/data_parallel"] + found["stratagem/single"]


@pytest.mark.parametrize("scenario", ON_CUDA)
def test_no_contender_on_gpus_has_what_is_of_cpus(scenario):
    for name, command in commands(scenario, device="cuda", gpus=2).items():
        assert "--device cuda" in command, name
        assert not name.endswith("/allocator")
        assert not any(word in command for word in ("onednn", "--cores-per-device", "one_device"))
        assert ("--tf32 off" in command) == name.startswith("stratagem/")


@pytest.mark.parametrize("scenario", ON_CUDA)
def test_every_ratio_on_gpus_is_of_contenders_that_there_are(scenario):
    made = SCENARIOS[scenario].build(Settings(device="cuda", gpus=2))
    known = {each.name for each in made.contenders}
    sides = [side for ratio in made.ratios for side in (ratio.slower, ratio.faster)]
    assert set().union(*sides) <= known


def test_a_step_lasts_from_the_last_ranks_end_to_the_last_ranks_end():
    """The jitter of two ranks that take turns in being late is not counted."""
    answers = [
        {"step_ms": times, "losses": [1.0, 2.0], "state": {}, "peak_resident_bytes": 1}
        for times in ([10.0, 14.0, 10.0], [12.0, 10.0, 13.0])
    ]
    found = as_one(place("cpu", 2, 0), answers)
    assert found["step_ms"] == [12.0, 12.0, 11.0]
    assert found["per_rank_ms"] == [answer["step_ms"] for answer in answers]
