"""Strategies of several processes, through the command."""

from __future__ import annotations

import pytest

TOY = ["--model", "toy", "--global-batch-size", 16, "--devices", 2, "--no-verify", "--no-predict"]


@pytest.mark.parametrize(("model", "sent", "broadcasts"), [
    (["toy"], 832, 0),  # 165 parameters, each tensor in whole pieces of 64 bytes
    pytest.param(["resnet18", "--image-size", 32], 46_758_080, 2, marks=pytest.mark.night),
])
def test_ddp_stands_in_one_table_with_single(commands, out, model, sent, broadcasts):
    done = commands.stratagem(
        "run", "--model", *model, "--global-batch-size", 4, "--steps", 1,
        "--strategy", "single,ddp", "--repetitions", 1, "--no-predict", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ddp" in done.stdout and "single" in done.stdout
    runs = commands.iterations(commands.results(out), "ddp")
    assert len(runs) == 1
    for run in runs:
        measured = run["stratagem"]
        assert measured["mesh"] == "data=2/pipeline=1/tensor=1"
        assert measured["verification"]["passed"] is True
        assert "2 ranks" in measured["verification"]["oracle"]
        assert len(measured["per_rank_ms"]) == 2
        assert [device["rank"] for device in measured["devices"]] == [0, 1]
        assert [device["device"] for device in measured["devices"]] == [0, 1]
        for device in measured["devices"]:
            parts = device["breakdown_ms"]
            total = sum(parts.values()) - parts["communication_hidden"]
            assert total == pytest.approx(run["real_time"], rel=1e-6)
        assert {event["device"] for event in measured["timeline"]} == {0, 1}
        traffic = measured["communication"]
        assert traffic["all_reduce"]["payload_bytes"] == sent
        assert traffic.get("broadcast", {"calls": 0})["calls"] == broadcasts


def test_what_a_rank_sends_does_not_depend_on_overlap(commands, out):
    done = commands.stratagem(
        "run", *TOY, "--strategy", "ddp", "--no-overlap", "--repetitions", 1, "--out", out
    )
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "ddp")
    assert run["stratagem"]["communication"]["all_reduce"]["calls"] == 1
    assert "/no_overlap" in run["name"]


@pytest.mark.night
def test_a_stage_may_have_its_successor_on_an_earlier_rank(commands, out):
    done = commands.stratagem(
        "run", "--model", "mlp", "--global-batch-size", 6, "--strategy", "pipeline",
        "--schedule", "zb_v", "--split-size", 2, "--devices", 3, "--ranks", 3,
        "--oversubscribe", "--repetitions", 1, "--steps", 1, "--no-predict", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "pipeline")
    assert run["stratagem"]["verification"]["passed"] is True


def test_several_runs_at_once_do_not_meet(commands, tmp_path):
    for index in range(2):
        (tmp_path / f"locks{index}").mkdir()
    processes = [
        commands.start(
            "stratagem", "run", *TOY, "--strategy", "ddp", "--repetitions", 2,
            "--timeout", 30, "--out", tmp_path / f"{index}.json",
            STRATAGEM_LOCK_FOLDER=str(tmp_path / f"locks{index}"),
        )
        for index in range(2)
    ]  # fmt: skip
    for process in processes:
        done = commands.finish(process)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--strategy", "ddp", "--global-batch-size", 1], ["--global-batch-size", "1"]),
        (["--strategy", "ddp", "--backend", "mpi"], ["--backend", "gloo"]),
        (["--strategy", "ddp", "--bucket-mb", "0"], ["--bucket-mb"]),
        (["--strategy", "ddp", "--accumulation-steps", "0"], ["--accumulation-steps"]),
        (["--strategy", "single", "--bucket-mb", "1"], ["--bucket-mb"]),
        (["--strategy", "ddp", "--interface", "nosuch0"], ["--interface", "nosuch0"]),
    ],
)
def test_bad_input_is_one_line(commands, options, words):
    done = commands.stratagem("run", "--model", "toy", "--devices", 2, "--no-verify", *options)
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_variable_that_names_no_interface_is_named(commands):
    row = [*TOY, "--strategy", "ddp"]
    done = commands.stratagem("run", *row, GLOO_SOCKET_IFNAME="^lo,docker")
    assert done.returncode == 2, done.stderr
    assert "GLOO_SOCKET_IFNAME=^lo,docker: this network interface does not exist" in done.stderr
    assert "--interface" not in done.stderr


def test_a_straggler_is_late_wherever_its_first_stage_is(commands, out):
    """Groups of layers are stages of their own, so the last rank begins with none of the first."""
    done = commands.stratagem(
        "run", "--model", "gpt-tiny", "--global-batch-size", 4, "--strategy", "zero3", "--devices", 4,
        "--oversubscribe", "--mesh", "data=2/pipeline=2", "--ranks", 4, "--split-size", 1,
        "--no-verify", "--no-predict", "--repetitions", 1, "--steps", 2, "--straggler", "3:300",
        "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "zero3")
    assert min(run["stratagem"]["step_ms"]) > 290


def test_a_straggler_is_waited_for(commands, out, tmp_path):
    done = commands.stratagem(
        "run", *TOY, "--strategy", "ddp", "--repetitions", 1, "--steps", 2, "--straggler",
        "1:150", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "ddp")
    assert "straggler" in run["stratagem"]["marks"]
    wait = {device["rank"]: device["breakdown_ms"]["wait"] for device in run["stratagem"]["devices"]}
    assert wait[0] > 75 > wait[1], "rank 1 sleeps for 150 ms a step, and rank 0 waits for it"
    report = commands.stratagem("report", out, "--out-dir", tmp_path / "report")
    assert report.returncode == 0, report.stderr
    text = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert " waited " in text and " of each step for " in text


def test_ranks_may_share_devices_and_are_marked(commands, out):
    done = commands.stratagem(
        "run", "--model", "toy", "--global-batch-size", 16, "--devices", 4, "--device-ids", "0+1+1+0",
        "--strategy", "ddp_model_parallel", "--repetitions", 1, "--no-predict", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "ddp_model_parallel")
    assert "shared" in run["stratagem"]["marks"]
    assert run["stratagem"]["verification"]["passed"]


@pytest.mark.parametrize("command", ["verify", "run"])
def test_a_step_that_exchanges_more_than_its_costs_is_not_verified(commands, command):
    done = commands.stratagem(
        command, "--model", "toy", "--global-batch-size", 16, "--devices", 2, "--strategy", "ddp",
        STRATAGEM_TEST_FAULT="verify:all_reduce@0F0@ddp",
    )  # fmt: skip
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "all_reduce: 2 calls and 1" in said and "a step, by formula 1 calls" in said
