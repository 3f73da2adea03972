"""The fuzzers, for two minutes in all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PYTHON_READERS = ["results", "simulation", "training", "history"]


@pytest.mark.parametrize("reader", PYTHON_READERS)
def test_python_readers_read_or_refuse(reader):
    """Some hundred files; the seed is printed where one fails."""
    done = subprocess.run(
        [sys.executable, HERE / "fuzz_python.py", reader, "0.3"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.night
def test_every_reader_for_two_minutes_in_all():
    """Under AddressSanitizer, with a memory limit of 1 GiB."""
    if shutil.which("clang++") is None:
        pytest.skip("no clang++, which has libFuzzer")
    done = subprocess.run([HERE / "run", "--seconds", "9"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
