"""Selects the tests of `tools/test --quick`: tests that were quick in the last whole run.

Usage: quick_tests.py BUILD_FOLDER keep | googletest | pytest

keep: writes the seconds of each test in BUILD_FOLDER/test-results to
    BUILD_FOLDER/test-seconds.json.
googletest: prints a value of GTEST_FILTER that leaves out the slow C++ tests.
pytest: prints arguments of pytest, one per line, that leave out the slow Python tests.

A test without recorded seconds runs. Without test-seconds.json all tests run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from durations import tests

MOST_SECONDS = 0.3  # the longest duration of a quick test


def slow_tests(note: Path) -> dict[str, list[str]]:
    """Return the JUnit names of the slow tests in the file `note`, by program."""
    found: dict[str, list[str]] = {}
    seconds = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
    for entry, took in seconds.items():
        program, _, name = entry.partition(": ")
        if took > MOST_SECONDS:
            found.setdefault(program, []).append(name)
    return found


def filter_of(names: list[str]) -> str:
    """Return a GTEST_FILTER that excludes these tests; empty for none."""
    return "-" + ":".join(names) if names else ""


def node_of(name: str) -> str:
    """Return pytest's id of a JUnit name such as "tests.tools.test_setup.test_name[parameter]"."""
    parts, bracket, parameter = name.partition("[")
    *folders, test = parts.split(".")
    return f"{'/'.join(folders)}.py::{test}{bracket}{parameter}"


def main() -> None:
    build, action = Path(sys.argv[1]), sys.argv[2]
    note = build / "test-seconds.json"
    if action == "keep":
        found = tests(sorted((build / "test-results").glob("*.xml")))
        note.write_text(json.dumps(found, indent=0), encoding="utf-8")
        return
    slow = slow_tests(note)
    of_python = slow.pop("pytest", [])
    if action == "googletest":
        print(filter_of([name for names in slow.values() for name in names]))
        return
    for name in of_python:
        print(f"--deselect={node_of(name)}")


if __name__ == "__main__":
    main()
