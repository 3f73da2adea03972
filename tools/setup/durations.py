"""Prints where the time of a build and of its tests goes, slowest first.

Usage: durations.py BUILD_FOLDER [--most N] [--markdown]

The times are from two places in BUILD_FOLDER: .ninja_log of the last build, and the JUnit files of
the last test run in test-results/. A time is the wall-clock seconds of one process. Two processes
run at a time on two cores, so the sums are longer than the build and the test run.
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
    """Return the seconds of each step of a .ninja_log (ninja's format 5), by its first output.

    A step that ran several times counts with its last run. A step with several outputs has a line
    for each output, and these lines end with the hash of its command.
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
    """Return the seconds of each test of JUnit files, with fixtures if the runner counts them."""
    found: Times = {}
    for path in files:
        for case in ElementTree.parse(path).iter("testcase"):
            name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
            found[f"{path.name.split('.')[0]}: {name}"] = float(case.get("time", 0))
    return found


def by_group(times: Times, group_of) -> Times:
    """Return the seconds of each group, largest first."""
    sums: Times = defaultdict(float)
    for name, seconds in times.items():
        sums[group_of(name)] += seconds
    return dict(sorted(sums.items(), key=lambda entry: -entry[1]))


def step_group(output: str) -> str:
    """Return the kind of work of a build step."""
    if output.endswith(".gch") or output.endswith(".pch"):
        return "precompiled headers"
    if output.endswith((".o", ".a")):
        return "compiling tests" if output.startswith("tests/") else "compiling the product"
    return "linking" if output.startswith("bin/") else "generating"


def test_group(name: str) -> str:
    """Return the program of a test, or for pytest the folder and file."""
    program, _, test = name.partition(": ")
    if program != "pytest":
        return program
    parts = test.split(".")[1:]
    last = next((index for index, part in enumerate(parts) if part.startswith("test_")), 0)
    return "pytest: " + "/".join(parts[: last + 1])


def table(title: str, rows: Times, most: int, markdown: bool) -> list[str]:
    """Return a heading and its `most` largest rows, as aligned text or as Markdown."""
    shown = sorted(rows.items(), key=lambda entry: -entry[1])[:most]
    if not shown:
        return []
    if markdown:
        head = [f"| {title} | seconds |", "| --- | --- |"]
        return [*head, *(f"| {name} | {seconds:.1f} |" for name, seconds in shown), ""]
    return [title, *(f"{seconds:9.1f} s  {name}" for name, seconds in shown), ""]


def report(folder: Path, most: int, markdown: bool) -> str:
    """Return the four tables of a build folder; tables without data are left out."""
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
    """An argument parser with one-line errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def count(text: str) -> int:
    """Return the positive integer that `text` holds, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(text)


def main() -> None:
    """Read the command line and print the tables."""
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=count, default=10, help="rows of each table")
    parser.add_argument("--markdown", action="store_true", help="as Markdown tables")
    options = parser.parse_args()
    print(report(options.folder, options.most, options.markdown))


if __name__ == "__main__":
    main()
