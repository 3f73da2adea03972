"""Strategies of several processes, through the command: results, and what a lost rank does."""

from __future__ import annotations

import signal
import time

import pytest

TOY = ["--model", "toy", "--global-batch-size", 16, "--devices", 2, "--no-verify"]


def test_ddp_stands_in_one_table_with_single(commands, out):
    done = commands.stratagem(
        "run", "--model", "resnet18", "--image-size", 64, "--global-batch-size", 8,
        "--strategy", "single,ddp", "--repetitions", 2, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ddp" in done.stdout and "single" in done.stdout
    runs = commands.iterations(commands.results(out), "ddp")
    assert len(runs) == 2
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
        assert traffic["all_reduce"]["payload_bytes"] == 4 * 11_689_512
        assert traffic["broadcast"]["calls"] == 2


def test_what_a_rank_sends_does_not_depend_on_overlap(commands, out):
    done = commands.stratagem(
        "run", *TOY, "--strategy", "ddp", "--no-overlap", "--repetitions", 1, "--out", out
    )
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "ddp")
    assert run["stratagem"]["communication"]["all_reduce"]["calls"] == 1
    assert "/no_overlap" in run["name"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("throw@0F0@ddp@1", ["rank 1", "a fault on purpose"]),
        ("throw@0B0@ddp@0", ["a fault on purpose"]),
        ("throw@0R@ddp@1", ["a fault on purpose"]),
        ("kill@0B0@ddp@1", ["rank 1 was killed"]),
        ("kill@0B0@ddp@0", ["rank 0 was killed"]),
    ],
)
def test_a_lost_rank_is_named_and_the_other_rows_go_on(commands, out, fault, words):
    started = time.monotonic()
    done = commands.stratagem(
        "run", *TOY, "--strategy", "model_parallel,ddp", "--repetitions", 2, "--timeout", 20,
        "--out", out, STRATAGEM_TEST_FAULT=fault,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert time.monotonic() - started < 25
    results = commands.results(out)
    assert len(commands.iterations(results, "model_parallel")) == 2
    (failed,) = commands.iterations(results, "ddp")
    error = failed["stratagem"]["error"]
    told = f"rank {error['rank']} {error['message']}"
    for word in words:
        assert word in told, error
    assert error["last_action"]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("failed: ")]
    for word in (f"rank {error['rank']}", f"host {error['host']}", error["last_action"]):
        assert word in line
    assert "\n" not in error["message"]


def test_a_stopped_rank_ends_within_the_time_limit(commands, out):
    started = time.monotonic()
    done = commands.stratagem(
        "run", *TOY, "--strategy", "ddp", "--repetitions", 1, "--timeout", 3,
        "--out", out, STRATAGEM_TEST_FAULT="stop@0B0@ddp@1",
    )  # fmt: skip
    assert done.returncode == 4
    assert time.monotonic() - started < 3 + 5 + 5, "and the time to start"
    (failed,) = commands.iterations(commands.results(out), "ddp")
    assert failed["stratagem"]["error"]["rank"] == 1
    assert "stopped" in failed["stratagem"]["error"]["message"]


def test_an_interrupt_leaves_no_rank_behind(commands, out):
    process = commands.start(
        "stratagem", "run", *TOY, "--strategy", "ddp", "--repetitions", 200, "--out", out
    )
    commands.wait_until(lambda: len(commands.children_of(process.pid)) == 2)
    ranks = commands.children_of(process.pid)
    process.send_signal(signal.SIGINT)
    done = commands.finish(process)
    assert done.returncode == 130
    assert not any(commands.is_running(rank) for rank in ranks)


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


def test_a_straggler_is_waited_for(commands, out, tmp_path):
    done = commands.stratagem(
        "run", *TOY, "--strategy", "ddp", "--repetitions", 1, "--straggler", "1:40", "--out", out
    )
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "ddp")
    assert "straggler" in run["stratagem"]["marks"]
    wait = {device["rank"]: device["breakdown_ms"]["wait"] for device in run["stratagem"]["devices"]}
    assert wait[0] > 20 > wait[1], "rank 1 sleeps for 40 ms a step, and rank 0 waits for it"
    report = commands.stratagem("report", out, "--out-dir", tmp_path / "report")
    assert report.returncode == 0, report.stderr
    text = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert " waited " in text and " of each step for " in text


def test_ranks_may_share_devices_and_are_marked(commands, out):
    done = commands.stratagem(
        "run", "--model", "toy", "--global-batch-size", 16, "--devices", 4, "--device-ids", "0+1+1+0",
        "--strategy", "ddp_model_parallel", "--repetitions", 1, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "ddp_model_parallel")
    assert "shared" in run["stratagem"]["marks"]
    assert run["stratagem"]["verification"]["passed"]
