"""The fuzzers of Python readers, for a moment each."""

from __future__ import annotations

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
