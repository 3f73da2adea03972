"""Builds that are scripts, and `stratagem compare --interleave` over them, for its tests."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

from stratagem_reports import __main__ as command


def write_build(folder: Path, script: str, **values: object) -> str:
    """Makes a build folder whose stratagem is a Python script with `values` filled in; its path.

    The script always gets `python`, the interpreter, and `tests`, the folder of its helpers.
    """
    path = folder / "bin" / "stratagem"
    path.parent.mkdir(parents=True)
    tests = str(Path(__file__).parent)
    path.write_text(script.format(python=sys.executable, tests=tests, **values), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(folder)


def compare_interleaved(out: Path, *words: object, options: tuple = ("--model", "mlp")) -> tuple:
    """The exit code, and the comparison's document where one was written to `out`."""
    code = command.main(
        ["compare", "--interleave", *map(str, words), "--json", str(out), "--", *options]
    )
    return code, json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
