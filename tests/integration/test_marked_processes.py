"""The search for what a test has left behind finds it, however it was started."""

from __future__ import annotations

import os
import subprocess

import pytest
from marked_processes import MarkedProcesses

SLEEP = "sleep 60 > /dev/null 2>&1 &"


@pytest.fixture
def marked():
    marked = MarkedProcesses()
    yield marked
    marked.kill()


def start(marked: MarkedProcesses, script: str) -> None:
    subprocess.run(["bash", "-c", script], env={**os.environ, **marked.variables}, check=True)


def test_an_orphan_in_a_session_of_its_own_is_found_and_ended(marked):
    start(marked, f"setsid {SLEEP} until grep -q sleep /proc/$!/comm; do :; done")
    with pytest.raises(AssertionError, match=r"left behind.*sleep.*60"):
        marked.expect_none(limit_s=0.2)
    marked.kill()
    marked.expect_none()


def test_a_stopped_process_is_found(marked):
    start(marked, f"{SLEEP} kill -STOP $!; until grep -q State:.T /proc/$!/status; do :; done")
    assert marked.any_stopped()


def test_what_ends_by_itself_in_a_moment_is_not_left_behind(marked):
    start(marked, "sleep 0.3 > /dev/null 2>&1 &")
    marked.expect_none(limit_s=20)


def test_another_tests_processes_are_not_found(marked):
    start(marked, SLEEP)
    MarkedProcesses().expect_none(limit_s=0)
