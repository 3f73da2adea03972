"""Contenders of two ranks on two hosts, joined by a cable; most without root and PyTorch."""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import train
from launchers import need_network_namespaces
from peer_comparison import cable
from peer_comparison.contenders import Settings
from peer_comparison.scenarios import SCENARIOS
from torch_peers.launched import Launch, launch_of

PEERS = Path(__file__).resolve().parents[2] / "tools" / "peers"
TORCH = pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="no torchvision")
WHOLE = "--init-method tcp://10.77.0.1:29500 --rank 1 --world-size 2"


def run_program(*command, **environment):
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
    )


def compare(*arguments, **environment):
    return run_program(sys.executable, PEERS / "compare", *arguments, **environment)


def joined(name, rate="1gbit", **changes):
    settings = Settings(cable=rate, **changes)
    return cable.over_a_cable(SCENARIOS[name].build(settings), rate)


def test_both_sides_are_started_once_on_each_host():
    scenario, left_out = joined("zero", "100mbit")
    assert left_out == []
    start = (str(cable.TWO_HOSTS), "--rate", "100mbit")
    for contender in scenario.contenders:
        ours = contender.name.startswith("stratagem/")
        for launchable in filter(None, (contender.timed, contender.preflight)):
            assert launchable.command[:3] == start
            program = launchable.command[4 - ours : 6 - ours]
            assert [Path(word).name for word in program] == (
                ["stratagem", "run"] if ours else ["train.py", contender.timed.command[5]]
            )
        assert (contender.preflight is not None) == ours


@pytest.mark.parametrize(("name", "out", "within"), [
    ("resnet_ddp", {"stratagem/single"}, {"stratagem/ddp", "torch/ddp/channels_last/compiled"}),
    ("data_parallel_gpt",
     {"stratagem/single", "stratagem/data_parallel", "torch/data_parallel_on_one_device/onednn"},
     {"stratagem/ddp", "torch/ddp/onednn"}),
    ("resnet_single_and_pipeline",
     {"stratagem/pipeline/1f1b/split:8", "stratagem/model_parallel", "torch/single/nchw"},
     {"stratagem/pipeline/ranks:2/1f1b/split:8", "torch/pipelining/nchw/zb_v/split:8"}),
    ("gpt", {"stratagem/single", "torch/single"},
     {"stratagem/tensor_parallel", "torch/tensor_parallel/onednn/allocator"}),
])  # fmt: skip
def test_what_is_one_process_is_left_out_with_its_ratios(name, out, within):
    scenario, left_out = joined(name)
    names = {contender.name for contender in scenario.contenders}
    assert out <= set(left_out) and within <= names and not names & set(left_out)
    for ratio in scenario.ratios:
        assert ratio.slower and ratio.faster and {*ratio.slower, *ratio.faster} <= names
        assert ratio.aim is None


def aims_of(scenario):
    return {ratio.name: ratio.aim for ratio in scenario.ratios if ratio.aim}


def test_aims_are_those_of_the_cable():
    wanted = {
        "zero3: torch's fsdp as installed": 1.30,
        "zero3: torch's fsdp with allocator": 1.30,
        "zero3: torch's fsdp with allocator, oneDNN": 1.30,
        "zero3: our float32 over bfloat16": 1.80,
    }
    assert aims_of(joined("zero")[0]) == wanted
    assert aims_of(joined("zero", "100mbit")[0]) == {}
    assert aims_of(joined("zero_resnet")[0]) == {}
    on_one_machine = SCENARIOS["zero"].build(Settings())
    assert aims_of(on_one_machine)["zero3: torch's fsdp as installed"] == 1.40
    assert "stratagem/zero3/bfloat16" not in {each.name for each in on_one_machine.contenders}


def test_more_ranks_than_hosts_have_no_place():
    assert joined("every_way", devices=4)[0].contenders == ()


def test_the_list_has_the_cable_and_says_who_is_left_out():
    run = compare("--list", "--scenario", "resnet_ddp", "--cable", "1gbit")
    assert run.returncode == 0
    assert run.stderr == "left out, not of two ranks: stratagem/single\n"
    assert "two_hosts --rate 1gbit" in run.stdout
    listed = compare("--list", "--scenario", "zero", "--cable", "1gbit", "--only", "zero3/b|zero3$")
    assert "zero3: our float32 over bfloat16: at least 1.80" in listed.stdout
    assert "--strategy zero3 --mixed-precision bfloat16" in listed.stdout


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["--scenario", "train"], 3, "--cable: no contender is of two ranks: see --list"),
    (["--only", "single"], 3, "--cable: no contender is of two ranks: see --list"),
    (["--scenario", "zero", "--device", "cuda"], 2, "--cable: of CPUs, and --device is cuda"),
])  # fmt: skip
def test_where_a_cable_has_no_place_is_one_line(arguments, code, message):
    run = compare("--cable", "1gbit", *arguments)
    assert (run.returncode, run.stdout) == (code, "")
    assert run.stderr.endswith(f"{message}\n") and run.stderr.count("\n") == 1


def test_without_iproute2_there_is_no_cable(tmp_path):
    for program in ("bash", "id", "env"):
        (tmp_path / program).symlink_to(shutil.which(program))
    run = compare("--cable", "1gbit", "--scenario", "zero", PATH=str(tmp_path))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.endswith("--cable: two_hosts: needs root and iproute2\n")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(("lines", "code", "why"), [
    ([], 0, None),
    (["mount failed", "two_hosts: not allowed"], 2, "two_hosts: not allowed"),
    (['Illegal "rate"', "Usage: ... tbf"], 1, 'Illegal "rate"'),
    ([], 1, "no message"),
])  # fmt: skip
def test_why_a_cable_is_refused_is_one_line(tmp_path, lines, code, why):
    program = tmp_path / "two_hosts"
    program.write_text("\n".join(["#!/bin/sh", *(f"echo '{line}' >&2" for line in lines),
                                  f"exit {code}"]))  # fmt: skip
    program.chmod(0o755)
    assert cable.why_refused("1gbit", program) == why
    assert cable.why_refused("1gbit", tmp_path / "none").startswith("cannot start")


def arguments_of(text, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", *text.split()])
    return train.parse_arguments()


def test_a_rank_of_a_launch_is_told_which_it_is(monkeypatch):
    launch = arguments_of(f"fsdp {WHOLE} --interface veth0", monkeypatch).launch
    assert launch == Launch("tcp://10.77.0.1:29500", 1, 2, "veth0")
    assert arguments_of(f"fsdp {WHOLE}", monkeypatch).launch.interface == "lo"
    assert arguments_of("fsdp", monkeypatch).launch is None


@pytest.mark.parametrize(("options", "why"), [
    ("ddp --rank 1", "--init-method and --world-size: missing; a rank of a launch has "
                     "--init-method, --rank and --world-size"),
    ("ddp --init-method env:// --rank 1", "--world-size: missing; a rank of a launch has "
                                          "--init-method, --rank and --world-size"),
    ("ddp --interface veth0", "--interface: of one rank of a launch, which has --init-method, "
                              "--rank and --world-size"),
    (f"single {WHOLE}", "--init-method: of several ranks, and single has one"),
    (f"ddp {WHOLE} --device cuda", "--init-method: of CPUs, and --device is cuda"),
    (f"ddp {WHOLE} --devices 4", "--world-size: 2 ranks have as many devices, and --devices is 4"),
    (f"ddp {WHOLE} --rank 2", "--rank: 2 is not from 0 to 1"),
])  # fmt: skip
def test_a_launch_that_cannot_be_is_refused_in_one_line(options, why, monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        arguments_of(options, monkeypatch)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"train.py: {why}\n"


def test_a_command_without_the_options_of_a_launch_is_all_ranks():
    nothing = {"init_method": None, "rank": None, "world_size": None, "interface": None}
    assert launch_of(argparse.Namespace(**nothing)) is None


ONE_RANK = """
import atexit, json, os, sys
from torch_peers.launched import Launch, take_part
from torch_peers.placement import place

def run(rank):
    import torch
    from torch import distributed
    atexit.register(os.abort)
    print(f"rank {rank} has cores {sorted(os.sched_getaffinity(0))}", file=sys.stderr)
    if rank == int(sys.argv[3]):
        raise ValueError("no luck")
    distributed.all_reduce(torch.ones(1))
    return dict(step_ms=[1.0 + rank], losses=[float(rank)], state={}, peak_resident_bytes=rank)

take_part(Launch(f"file://{sys.argv[1]}", int(sys.argv[2]), 2, "lo"), place("cpu", 2), run,
          lambda answer: print(json.dumps(answer)))
"""


def two_ranks(folder, failing=None):
    return [
        subprocess.Popen(
            [sys.executable, "-c", ONE_RANK, folder / "store", str(rank), str(-1 if failing is None else failing)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PEERS)},
        )
        for rank in range(2)
    ]


@TORCH
@pytest.mark.slow
def test_an_answer_is_not_lost_by_how_a_rank_ends(tmp_path):
    first, second = two_ranks(tmp_path)
    outputs = [process.communicate(timeout=120) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], outputs
    answer = json.loads(outputs[0][0])
    assert (answer["step_ms"], answer["per_rank_ms"]) == ([2.0], [[1.0], [2.0]])
    assert (answer["loss"], answer["losses"]) == (0.5, [0.5])
    assert answer["peak_resident_bytes"] == 1
    assert outputs[1][0] == ""
    pinned = [line for _, text in outputs for line in text.splitlines() if "has cores" in line]
    assert len({line.partition("cores")[2] for line in pinned}) == 2
    assert not any("," in line for line in pinned)


@TORCH
@pytest.mark.slow
def test_the_rank_that_failed_speaks_before_the_one_that_lost_it(tmp_path):
    first, second = two_ranks(tmp_path, failing=1)
    _, why = second.communicate(timeout=120)
    assert second.returncode == 1
    assert why.splitlines()[-1] == "rank 1: ValueError: no luck"
    time.sleep(1)
    assert first.poll() is None
    _, lost = first.communicate(timeout=120)
    assert first.returncode == 1
    assert lost.splitlines()[-1].startswith("rank 0: ")


ONE_ROW = """#!{python}
import json, sys
options = dict(zip(sys.argv, sys.argv[1:]))
row = dict(name="n", run_type="iteration", stratagem=dict(
    strategy=options["--strategy"], config=dict(cores_per_device=1), loss=[0.5],
    step_ms=[100.0], verification=dict(passed=True), proof=dict(passed=True)))
with open(options["--out"], "w") as file:
    json.dump(dict(context=dict(), benchmarks=[row]), file)
print("rank", options["--rank"], options["--interface"], file=sys.stderr)
"""


@pytest.mark.slow
def test_a_comparison_over_a_cable_says_so(tmp_path):
    need_network_namespaces()
    program, out = tmp_path / "stratagem", tmp_path / "peers.json"
    program.write_text(ONE_ROW.format(python=sys.executable))
    program.chmod(0o755)
    run = compare("--scenario", "zero", "--cable", "1gbit", "--only", "stratagem/zero1$",
                  "--rounds", 1, "--steps", 1, "--stratagem", program, "--out", out)  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "; two hosts, cable: 1gbit; " in run.stdout
    content = json.loads(out.read_text())
    assert content["cable"] == "1gbit"
    assert [sample["step_ms"] for sample in content["samples"]] == [[100.0]]


@TORCH
@pytest.mark.slow
@pytest.mark.night
def test_a_comparison_of_larger_models_over_a_cable(tmp_path):
    need_network_namespaces()
    out = tmp_path / "peers.json"
    run = compare("--scenario", "zero", "--cable", "1gbit", "--only", "torch/fsdp/installed$",
                  "--rounds", 1, "--steps", 1, "--batch", 2, "--out", out)  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    (sample,) = json.loads(out.read_text())["samples"]
    assert sample["proof"].startswith("one device in float64")
    assert len(sample["details"]["per_rank_ms"]) == 2
