"""STRATAGEM_PYTHON names the Python of the reports, or a program that is none."""

from __future__ import annotations

import json
import sys

import pytest


def one_line(text: str) -> str:
    assert text.endswith("\n") and text.count("\n") == 1, text
    return text


def test_a_broken_python_is_named(commands, tmp_path):
    done = commands.stratagem("report", "x.json", STRATAGEM_PYTHON=str(tmp_path / "no-python"))
    assert done.returncode == 2
    assert "STRATAGEM_PYTHON" in one_line(done.stderr)


@pytest.mark.parametrize("body", ["exec ls \"$@\"", "exit 0", "echo Python False", "exec yes"])
@pytest.mark.parametrize("subcommand", ["report", "schema"])
def test_a_program_that_is_no_python_is_named_with_the_variable(
    commands, tmp_path, body, subcommand
):
    """Another program, one that ignores its arguments, an old Python, and one that never ends."""
    program = tmp_path / "Python's"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    done = commands.stratagem(subcommand, STRATAGEM_PYTHON=str(program))
    assert (done.returncode, done.stdout) == (2, "")
    assert one_line(done.stderr) == (
        f"stratagem: STRATAGEM_PYTHON={program}: this program is not Python 3.10 or newer; name "
        "one, or unset the variable\n"
    )


def test_a_chosen_python_runs_the_package(commands):
    done = commands.stratagem("schema", STRATAGEM_PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["title"] == "The file"
