"""Command lines of the peers' programs: choice of Python, one-line errors, types of values."""

import argparse
import contextlib
import importlib.util
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

BAD_USAGE = 2
VENV_PYTHON = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "python"


def _imports(python: str, package: str) -> bool:
    nowhere = subprocess.DEVNULL
    try:
        probe = [python, "-c", f"import {package}"]
        done = subprocess.run(probe, stdout=nowhere, stderr=nowhere, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def use_python_with(package: str, command: str) -> None:
    """Run the command again with the environment's Python if this Python lacks the package.

    STRATAGEM_PYTHON names another Python. If that one lacks the package too, SystemExit is raised.
    """
    if importlib.util.find_spec(package) is not None:
        return
    chosen = os.environ.get("STRATAGEM_PYTHON") or str(VENV_PYTHON)
    python = shutil.which(chosen)
    if python and _imports(python, package):
        os.execv(python, [python, *sys.argv])
    print(
        f"{command}: {chosen} is not a Python that has the package {package}; tools/test installs"
        " it, and STRATAGEM_PYTHON names another Python",
        file=sys.stderr,
    )
    sys.exit(BAD_USAGE)


class Parser(argparse.ArgumentParser):
    """An argument parser with one-line errors."""

    def error(self, message: str) -> NoReturn:
        """End the command with the message."""
        self.exit(BAD_USAGE, f"{self.prog}: {message}\n")


def at_least_one(text: str) -> int:
    """Return the positive integer that `text` holds, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(text)


def not_negative(text: str) -> int:
    """Return the whole number of 0 or more that `text` holds, for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 0 or more")
    return int(text)


def seconds(text: str) -> float:
    """Return the positive duration that `text` holds, for argparse."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")


def regular_expression(text: str) -> re.Pattern:
    """Return the compiled expression, for argparse."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text} is not a regular expression: {error}") from error
