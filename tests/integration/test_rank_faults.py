"""Ranks that the command has started itself and that are killed, stopped, throw or never come."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TOY = ["--model", "toy", "--global-batch-size", 16, "--devices", 2, "--no-verify", "--no-predict"]
RANK_PIPELINE = ["--split-size", 4, "--ranks", 2]
ROW = ["--repetitions", 2]
# How long the others may take beyond --timeout until they have ended.
GRACE_S = 20


def expect_lost_row(commands, done, out, strategy: str, rank: int, words: list[str]) -> dict:
    """The row failed in one line that says who, where and what came last; nothing is left."""
    commands.marked.expect_none()
    assert done.returncode == 4, done.stderr
    failed = commands.iterations(commands.results(out), strategy)[-1]
    error = failed["stratagem"]["error"]
    assert error["rank"] == rank, error
    assert error["host"] == socket.gethostname()
    told = [line for line in done.stderr.splitlines() if line.startswith(f"{strategy}/")
            and " was disturbed: " not in line]
    shown = [line for line in done.stdout.splitlines() if line.startswith("failed: ")]
    assert len(told) == len(shown) == 1, done.stdout + done.stderr
    for line in (*told, *shown):
        for word in (f"rank {rank}", f"host {error['host']}", error["last_action"], *words):
            assert word in line
    return error


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("throw@0F0@ddp@1", ["an injected fault"]),
        ("throw@0B0@ddp@0", ["an injected fault"]),
        ("throw@0AW@ddp@1", ["an injected fault"]),
        ("throw@1RF0@pipeline@1", ["an injected fault"]),
        ("kill@0B0@ddp@1", ["rank 1 was killed"]),
        ("kill@0AW@ddp@0", ["rank 0 was killed"]),
        ("kill@1RF0@pipeline@1", ["rank 1 was killed"]),
    ],
)
def test_a_lost_rank_is_named_and_the_other_rows_go_on(commands, out, fault, words):
    _, action, strategy, rank = fault.split("@")
    placed = RANK_PIPELINE if strategy == "pipeline" else []
    started = time.monotonic()
    done = commands.stratagem(
        "run", *TOY, *ROW, "--strategy", f"model_parallel,{strategy}", *placed,
        "--timeout", 60, "--out", out, STRATAGEM_TEST_FAULT=fault,
    )  # fmt: skip
    assert time.monotonic() - started < 60, "the others need not wait for --timeout"
    error = expect_lost_row(commands, done, out, strategy, int(rank), words)
    assert action in error["last_action"]
    finished = commands.iterations(commands.results(out), "model_parallel")
    assert [run["stratagem"]["error"] for run in finished] == [None, None]


@pytest.mark.parametrize(
    ("fault", "rank", "options"),
    [
        ("stop@0B0@ddp@1", 1, ["--strategy", "ddp"]),
        ("stop@0AW@ddp@0", 0, ["--strategy", "ddp"]),
        ("stop@1RF0@pipeline@1", 1, ["--strategy", "pipeline", *RANK_PIPELINE]),
        ("stop@0B0@pipeline", 0, ["--strategy", "pipeline", "--split-size", 4]),
    ],
)
def test_a_stopped_rank_ends_within_the_time_limit(commands, out, fault, rank, options):
    process = commands.start(
        "stratagem", "run", *TOY, *ROW, *options, "--timeout", 3, "--out", out,
        STRATAGEM_TEST_FAULT=fault,
    )  # fmt: skip
    commands.wait_until(commands.marked.any_stopped)
    stopped = time.monotonic()
    done = commands.finish(process)
    assert time.monotonic() - stopped < 3 + GRACE_S
    _, action, strategy, *_ = fault.split("@")
    error = expect_lost_row(commands, done, out, strategy, rank, ["was stopped"])
    assert action in error["last_action"]


# Workers of such a command are no forks of it: they begin anew, as those that are timed do.
BEGIN_ANEW = {"OMP_NUM_THREADS": "1"}


def new_ranks(commands, process) -> list[int]:
    """Wait for the next launch of two ranks, and return them before they can have met.

    A child that has not begun its own program yet is none: its parent stands still until it does.
    """
    before = set(commands.children_of(process.pid))

    def ranks() -> list[int]:
        workers = {found.number for found in commands.marked.running() if found.is_worker}
        found = commands.children_of(process.pid)
        return [rank for rank in found if rank not in before and rank in workers]

    commands.wait_until(lambda: len(ranks()) == 2, interval_s=0.005)
    return ranks()


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, "was killed"), (signal.SIGSTOP, "was stopped")]
)
def test_a_rank_that_never_arrives_leaves_the_finished_launches(commands, out, number, words):
    process = commands.start(
        "stratagem", "run", *TOY, "--strategy", "ddp", "--repetitions", 500,
        "--timeout", 3, "--out", out, **BEGIN_ANEW,
    )  # fmt: skip
    commands.wait_until(lambda: commands.finished_launches(out) >= 1)
    lost_rank = new_ranks(commands, process)[1]
    name = Path(f"/proc/{lost_rank}/comm")  # not "exe", as which it is started
    commands.wait_until(lambda: name.read_text() == "stratagem\n", interval_s=0.005)
    os.kill(lost_rank, number)
    lost = time.monotonic()
    done = commands.finish(process)
    assert time.monotonic() - lost < 3 + GRACE_S
    expect_lost_row(commands, done, out, "ddp", 1, [words])
    finished = commands.iterations(commands.results(out), "ddp")[:-1]
    assert len(finished) >= 1
    assert all(run["stratagem"]["step_ms"] for run in finished)
    assert not commands.partial_of(out).exists()


def test_a_rank_that_is_killed_in_a_collective_is_named(commands, out):
    process = commands.start(
        "bench_collectives", "--collectives", "all_reduce", "--min-bytes", "256M",
        "--max-bytes", "256M", "--repetitions", 1, "--timeout", 60, "--out", out, **BEGIN_ANEW,
    )  # fmt: skip
    os.kill(new_ranks(commands, process)[1], signal.SIGKILL)
    lost = time.monotonic()
    done = commands.finish(process)
    assert time.monotonic() - lost < 60, "the other need not wait for --timeout"
    commands.marked.expect_none()
    assert done.returncode == 4
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("all_reduce: ")]
    assert f"rank 1 was killed (out of memory?) (host {socket.gethostname()}" in line


def test_a_quiet_run_names_rank_host_and_action_too(commands):
    done = commands.stratagem(
        "run", *TOY, *ROW, "--strategy", "ddp", "--quiet", STRATAGEM_TEST_FAULT="throw@0B0@ddp@1"
    )
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    for word in ("ddp/", "rank 1", f"host {socket.gethostname()}", "last action: device 0: 0B0"):
        assert word in line


def test_a_lost_connection_is_no_signal_to_a_rank(commands, out):
    """Else a rank that writes to one that was killed ends like it, and may be blamed."""
    process = commands.start(
        "stratagem", "run", *TOY, "--strategy", "ddp", "--out", out,
        STRATAGEM_TEST_FAULT="stop@0B0@ddp@1",
    )  # fmt: skip
    commands.wait_until(commands.marked.any_stopped)
    for rank in commands.children_of(process.pid):
        status = Path(f"/proc/{rank}/status").read_text()
        (ignored,) = [line for line in status.splitlines() if line.startswith("SigIgn:")]
        assert int(ignored.split()[1], base=16) & 1 << (signal.SIGPIPE - 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_rank_outlives_the_command(commands, out, number):
    process = commands.start(
        "stratagem", "run", *TOY, "--strategy", "ddp", "--repetitions", 200, "--out", out,
        STRATAGEM_TEST_FAULT="stop@0B0@ddp@1",
    )  # fmt: skip
    commands.wait_until(commands.marked.any_stopped)
    process.send_signal(number)
    done = commands.finish(process)
    assert done.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    commands.marked.expect_none()


@pytest.mark.parametrize(
    ("strategy", "option", "value", "words"),
    [
        ("ddp", "--mesh", "data=3", "give equal numbers"),
        ("ddp_model_parallel", "--mesh", "data=2/pipeline=2", "give equal numbers"),
        ("ddp", "--ranks", 3, "--ranks 3"),
    ],
)
def test_a_mesh_that_does_not_fit_starts_nothing(commands, out, strategy, option, value, words):
    done = commands.stratagem("run", *TOY, "--strategy", strategy, option, value, "--out", out)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{option} {value}" in line and words in line
    commands.marked.expect_none(limit_s=0)
    assert not out.exists() and not commands.partial_of(out).exists()


@pytest.mark.parametrize(("environment", "begins_anew"), [({}, False), (BEGIN_ANEW, True)])
def test_a_worker_is_a_fork_of_the_command_where_it_can_be(commands, environment, begins_anew):
    process = commands.start(
        "stratagem", "run", *TOY, "--strategy", "ddp", **environment,
        STRATAGEM_TEST_FAULT="stop@0B0@ddp@1",
    )  # fmt: skip
    commands.wait_until(commands.marked.any_stopped)
    workers = [found for found in commands.marked.running() if found.parent == process.pid]
    assert [worker.is_worker for worker in workers] == [begins_anew] * 2
    process.kill()
    commands.finish(process)
    commands.marked.expect_none()
