"""Prints where the time of a build and of its tests goes, slowest first.

Usage: durations.py BUILD_FOLDER [--most N] [--markdown]

Reads what the last build and the last test run left in BUILD_FOLDER: .ninja_log, and the JUnit
files in test-results/. A step's or a test's time is wall-clock seconds of one process; two run at a
time on two cores, so that the sums are larger than the wait.
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

Times = dict[str, float]  # name -> seconds


def build_steps(log: Path) -> Times:
    """Seconds of each step of a .ninja_log (ninja's format 5), by the step's first output.

    A step that ran several times counts with its last run. A step with several outputs has a line
    for each, all of which end with the hash of its command.
    """
    steps: dict[str, tuple[str, float]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        start, end, _, output, command = line.split("\t")
        first = steps.get(command, (output, 0))[0]
        steps[command] = (first, (int(end) - int(start)) / 1000)
    return dict(steps.values())


def tests(files: Iterable[Path]) -> Times:
    """Seconds of each test of JUnit files, set-up of fixtures included where the runner counts it."""
    found: Times = {}
    for path in files:
        for case in ElementTree.parse(path).iter("testcase"):
            name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
            found[f"{path.name.split('.')[0]}: {name}"] = float(case.get("time", 0))
    return found


def by_group(times: Times, group_of) -> Times:
    """Sums by group, largest first."""
    sums: Times = defaultdict(float)
    for name, seconds in times.items():
        sums[group_of(name)] += seconds
    return dict(sorted(sums.items(), key=lambda entry: -entry[1]))


def step_group(output: str) -> str:
    """What kind of work a build step is."""
    if output.endswith(".gch") or output.endswith(".pch"):
        return "precompiled headers"
    if output.endswith((".o", ".a")):
        return "compiling tests" if output.startswith("tests/") else "compiling the product"
    return "linking" if output.startswith("bin/") else "generating"


def test_group(name: str) -> str:
    """The program, or pytest's folder and file."""
    program, _, test = name.partition(": ")
    if program != "pytest":
        return program
    parts = test.split(".")[1:]
    last = next((index for index, part in enumerate(parts) if part.startswith("test_")), 0)
    return "pytest: " + "/".join(parts[: last + 1])


def table(title: str, rows: Times, most: int, markdown: bool) -> list[str]:
    """A heading and its rows, as aligned text or as Markdown."""
    shown = sorted(rows.items(), key=lambda entry: -entry[1])[:most]
    if not shown:
        return []
    if markdown:
        head = [f"| {title} | seconds |", "| --- | --- |"]
        return [*head, *(f"| {name} | {seconds:.1f} |" for name, seconds in shown), ""]
    return [title, *(f"{seconds:9.1f} s  {name}" for name, seconds in shown), ""]


def report(folder: Path, most: int, markdown: bool) -> str:
    """The four tables of a build folder; those without data are left out."""
    log = folder / ".ninja_log"
    steps = build_steps(log) if log.is_file() else {}
    cases = tests(sorted((folder / "test-results").glob("*.xml")))
    tables = [
        ("build, sums", by_group(steps, step_group)),
        ("slowest build steps", steps),
        ("tests, sums", by_group(cases, test_group)),
        ("slowest tests", cases),
    ]
    return "\n".join(line for title, rows in tables for line in table(title, rows, most, markdown))


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def count(text: str) -> int:
    """The positive integer that `text` holds, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(text)


def main() -> None:
    """Reads the command line and prints."""
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=count, default=10, help="rows of each table")
    parser.add_argument("--markdown", action="store_true", help="as Markdown tables")
    options = parser.parse_args()
    print(report(options.folder, options.most, options.markdown))


if __name__ == "__main__":
    main()
