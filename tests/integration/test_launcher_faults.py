"""Ranks of a launcher, or started by hand, of which one is lost: the others end, and none is left.

docs/guide/several_hosts.md has the launchers' own grace, by which the limits here are chosen.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time

import pytest
from launchers import by_hand, finish, free_port, mpirun, rows_of, run_under, srun, torchrun

pytestmark = pytest.mark.slow

TIMEOUT_S = 3
GRACE_S = 20  # for a busy machine
LONG = ["--strategy", "ddp", "--no-verify", "--no-predict", "--timeout", TIMEOUT_S]
LONG += ["--repetitions", 500]


def wait_until_measuring(commands, out) -> None:
    commands.wait_until(lambda: commands.finished_launches(out) >= 1)


def start_under(launcher: str, commands, out, request) -> subprocess.Popen:
    """Start two ranks and return when a first launch is finished."""
    variables = {}
    if launcher == "torchrun":
        command = torchrun("--standalone", "--nproc-per-node", 2)
    elif launcher == "mpirun":
        command = mpirun("-n", 2)
    else:
        command = srun("-K", "-n", 2)
        variables = request.getfixturevalue("slurm").environment
    process = run_under(commands, command, *LONG, "--out", out, **variables)
    wait_until_measuring(commands, out)
    return process


@pytest.mark.parametrize(
    ("launcher", "code", "grace_s"),
    [
        ("torchrun", 1, 30),
        ("mpirun", 137, 30),
        pytest.param("srun", 137, 30, marks=pytest.mark.xdist_group("slurm")),
    ],
)
def test_a_launcher_ends_the_others_of_a_killed_rank(
    commands, out, launcher, code, grace_s, request
):
    process = start_under(launcher, commands, out, request)
    os.kill(commands.marked.controller(rank=1).number, signal.SIGKILL)
    lost = time.monotonic()
    (done,) = finish(commands, process)
    assert time.monotonic() - lost < grace_s
    commands.marked.expect_none()
    assert done.returncode == code, done.stderr
    assert commands.finished_launches(out) >= 1, "what is finished is kept"


def test_mpirun_ends_a_stopped_rank_when_the_other_has_given_it_up(commands, out, request):
    process = start_under("mpirun", commands, out, request)
    os.kill(commands.marked.controller(rank=1).number, signal.SIGSTOP)
    lost = time.monotonic()
    (done,) = finish(commands, process)
    assert time.monotonic() - lost < 30
    commands.marked.expect_none()
    assert done.returncode == 4, done.stderr
    *finished, failed = rows_of(commands.results(out))["ddp"]
    assert len(finished) >= 1
    assert failed["stratagem"]["error"]["rank"] == 1
    assert "did not respond" in failed["stratagem"]["error"]["message"]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_worker_that_is_killed_fails_its_row_alone(commands, out, lost):
    method = f"tcp://127.0.0.1:{free_port()}"
    ranks = [
        by_hand(
            commands, method, rank, 2, "--strategy", "pipeline,ddp", "--split-size", 4,
            "--no-verify", "--no-predict", "--timeout", 10, "--repetitions", 2, "--out", out,
            STRATAGEM_TEST_FAULT=f"kill@0B0@ddp@{lost}",
        )
        for rank in range(2)
    ]  # fmt: skip
    done = finish(commands, *ranks)
    assert [process.returncode for process in done] == [4, 4], [d.stderr for d in done]
    commands.marked.expect_none()
    rows = rows_of(commands.results(out))
    assert len(rows["pipeline"]) == 2
    (failed,) = rows["ddp"]
    assert failed["stratagem"]["error"]["rank"] == lost
    assert f"rank {lost} was killed" in failed["stratagem"]["error"]["message"]


def lose_a_rank_by_hand(commands, out, rank: int, number: int) -> subprocess.CompletedProcess:
    """Send one of two ranks a signal while they measure, and return what became of the other."""
    method = f"tcp://127.0.0.1:{free_port()}"
    ranks = [by_hand(commands, method, each, 2, *LONG, "--out", out, "--quiet") for each in (0, 1)]
    wait_until_measuring(commands, out)
    lost = ranks.pop(rank)
    lost.send_signal(number)
    since = time.monotonic()
    (done,) = finish(commands, *ranks)
    # Rank 0 gives the others 2 s for their last words, and the lost one 1 s to come back.
    assert time.monotonic() - since < TIMEOUT_S + 2 + 1 + GRACE_S
    lost.kill()
    lost.wait()
    commands.marked.expect_none()
    return done


def test_a_rank_that_is_lost_whole_is_named(commands, out):
    done = lose_a_rank_by_hand(commands, out, 1, signal.SIGKILL)
    assert done.returncode == 4
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("ddp/")]
    assert "rank 1" in line and f"host {socket.gethostname()}" in line
    assert len(rows_of(commands.results(out))["ddp"]) >= 2, "the finished launches are kept"


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, "is gone"), (signal.SIGSTOP, "did not answer")]
)
def test_without_rank_zero_the_others_leave(commands, out, number, words):
    done = lose_a_rank_by_hand(commands, out, 0, number)
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert line.startswith("stratagem: rank 1") and words in line
    assert commands.finished_launches(out) >= 1, "what is finished is kept"
