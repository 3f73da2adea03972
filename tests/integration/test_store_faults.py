"""Ranks that are started one by one and cannot meet, or say different things of themselves."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest
from launchers import by_hand, finish, free_port

pytestmark = pytest.mark.slow

DDP = ["--strategy", "ddp"]
TIMEOUT_S = 2
# How long a rank may take beyond --timeout until it has ended.
GRACE_S = 20


def expect_one_line(done, code: int, *words: str) -> None:
    """The exit code and its one line; nothing of c10d's beside it."""
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("stratagem: ")
    for word in words:
        assert word in line


def meet_in_vain(commands, port: int, rank: int):
    """Run one rank of two until it gives up, which it does in time and leaves nothing."""
    started = time.monotonic()
    method = f"tcp://127.0.0.1:{port}"
    (done,) = finish(commands, by_hand(commands, method, rank, 2, *DDP, "--timeout", TIMEOUT_S))
    assert time.monotonic() - started < TIMEOUT_S + GRACE_S
    commands.marked.expect_none()
    return done


def test_a_rank_that_never_arrives(commands):
    done = meet_in_vain(commands, free_port(), rank=0)
    expect_one_line(done, 4, "rank 0 of 2", "rank 1", f"{TIMEOUT_S} s")


def test_an_unreachable_master(commands):
    port = free_port()
    done = meet_in_vain(commands, port, rank=1)
    expect_one_line(done, 4, f"127.0.0.1:{port}", f"within {TIMEOUT_S} s")


def test_a_master_whose_host_swallows_everything(commands):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as other, contextlib.ExitStack() as own:
        port = other.getsockname()[1]
        for _ in range(3):  # nobody takes these, so there is no room for a further one
            waiting = own.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        done = meet_in_vain(commands, port, rank=1)
    expect_one_line(done, 4, f"127.0.0.1:{port}", f"within {TIMEOUT_S} s")


def test_another_program_on_the_masters_port_that_says_nothing(commands):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = meet_in_vain(commands, port, rank=1)
    told = f"rank 1: the store at 127.0.0.1:{port} did not answer within {TIMEOUT_S} s"
    expect_one_line(done, 4, told)


def hang_up(listener: socket.socket) -> None:
    """Take every connection and close it, until the listener itself is closed."""
    with contextlib.suppress(OSError):
        while True:
            listener.accept()[0].close()


def test_another_program_on_the_masters_port_that_hangs_up(commands):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        threading.Thread(target=hang_up, args=[other], daemon=True).start()
        done = meet_in_vain(commands, port, rank=1)
        other.shutdown(socket.SHUT_RDWR)
    expect_one_line(done, 4, f"127.0.0.1:{port}", f"within {TIMEOUT_S} s")


def test_a_port_in_use(commands):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = meet_in_vain(commands, port, rank=0)
    expect_one_line(done, 4, f"cannot listen on 127.0.0.1:{port}", "MASTER_PORT")


def test_world_sizes_that_differ(commands):
    started = time.monotonic()
    method = f"tcp://127.0.0.1:{free_port()}"
    options = [*DDP, "--timeout", 30]
    ranks = [by_hand(commands, method, rank, world, *options) for rank, world in ((0, 2), (1, 3))]
    first, second = finish(commands, *ranks)
    assert time.monotonic() - started < 30, "they know as soon as they have met"
    expect_one_line(first, 2, "rank 0 of 2", "rank 1 has --world-size 3")
    # The store may be gone before rank 1 has read rank 0's facts.
    expect_one_line(second, 4 if "is gone" in second.stderr else 2)
    commands.marked.expect_none()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ranks", "3"], ["--ranks", "2 ranks"]),
        (["--mesh", "data=3"], ["--ranks 2", "data=3"]),
        (["--devices", "3"], ["--ranks 2"]),
    ],
)
def test_ranks_that_do_not_fit_are_refused_at_once(commands, options, words):
    started = time.monotonic()
    method = f"tcp://127.0.0.1:{free_port()}"
    ranks = [
        by_hand(commands, method, rank, 2, *DDP, "--timeout", 30, *options) for rank in range(2)
    ]
    told = [done.stderr for done in finish(commands, *ranks) if done.stderr]
    assert told and all(word in text for text in told for word in words)
    assert {process.returncode for process in ranks} == {2}
    assert time.monotonic() - started < 30
    commands.marked.expect_none()
