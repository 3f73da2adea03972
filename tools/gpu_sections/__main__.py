"""Runs the sections in order, continues after a failed one, and writes the page of results."""

import argparse
import contextlib
import math
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gpu_sections.links import Link
from gpu_sections.machine import ROOT, Machine, look
from gpu_sections.page import Result, render
from gpu_sections.runner import run
from gpu_sections.sections import Section, sections_of

DONE, FAILED, BAD_USAGE, NOTHING_MATCHED, INTERRUPTED = 0, 1, 2, 3, 130
NAME = "tools/gpu_check"


class Parser(argparse.ArgumentParser):
    """An argument parser with one-line errors."""

    def error(self, message: str) -> NoReturn:
        """End the command with the message."""
        self.exit(BAD_USAGE, f"{NAME}: {message}: see {NAME} --help\n")


def minutes(text: str) -> float:
    """Return the positive number that `text` holds, for argparse."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")


def regular_expression(text: str) -> re.Pattern:
    """Return the compiled expression, for argparse."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text} is not a regular expression: {error}") from error


def existing_folder(text: str) -> Path:
    """Return the path of a folder that exists, for argparse."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text}: no such folder")
    return Path(text)


def parse_arguments() -> argparse.Namespace:
    """Return the command line that tools/gpu_check passes."""
    parser = Parser(prog=NAME)
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--programs", type=existing_folder)
    parser.add_argument("--only-check-options", action="store_true")
    parser.add_argument("--out-dir", type=Path, required=True)
    parser.add_argument("--minutes", type=minutes, required=True)
    parser.add_argument("--only", type=regular_expression, default=re.compile(""))
    arguments = parser.parse_args()
    if not arguments.programs and not arguments.only_check_options:
        parser.error("--programs is missing")
    return arguments


def report(text: str) -> None:
    """Print a line to standard error at once."""
    print(text, file=sys.stderr, flush=True)


def run_section(section: Section, limit_s: float, machine: Machine) -> Result:
    """Run a section's commands and return the result.

    The commands share `limit_s` seconds; each command has at least 1 s.
    """
    report(f"==> {section.title}" + (f" (at most {limit_s:.0f} s)" if section.commands else ""))
    start = time.monotonic()
    figures, complaints = [], []
    for index, command in enumerate(section.commands):
        left = max(1.0, limit_s - (time.monotonic() - start))
        ended = run(command.words, left, machine.out / f"{section.key}-{index}", ROOT)
        found = command.read(ended.stdout)
        figures.append(found.text)
        complaint = ended.complaint or found.complaint
        complaints += [complaint] if complaint else []
    seconds = time.monotonic() - start
    result = Result(section, seconds, tuple(figures), tuple(complaints))
    report(f"    {result.verdict}; {seconds:.0f} s")
    return result


def run_all(sections: Sequence[Section], machine: Machine, minutes: float, page: Path) -> int:
    """Run the sections and return the exit code.

    The sections share `minutes`: each may take its share of the time left. The page is written
    again after each section.
    """
    end = time.monotonic() + 60 * minutes
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    results: list[Result] = []
    for index, section in enumerate(sections):
        shares = sum(later.share for later in sections[index:])
        limit_s = (end - time.monotonic()) * section.share / shares if shares else 0
        try:
            results.append(run_section(section, limit_s, machine))
        except KeyboardInterrupt:
            results += [Result(later, complaints=("interrupted",)) for later in sections[index:]]
            page.write_text(render(machine, results, when))
            return INTERRUPTED
        page.write_text(render(machine, results, when))
    failed = [result.section.key for result in results if result.complaints]
    if failed:
        report(f"{NAME}: failed: {', '.join(failed)}; see {page}")
    return FAILED if failed else DONE


def keys_of(device: str) -> list[str]:
    """Return the keys of the sections, which are the same on every machine."""
    return [each.key for each in sections_of(Machine(device, 0, Path(), Path(), Link("none")))]


def interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt, so that SIGTERM ends the command like Ctrl-C."""
    raise KeyboardInterrupt


def main() -> int:
    """Run the command and return its exit code."""
    arguments = parse_arguments()
    keys = keys_of(arguments.device)
    if not any(arguments.only.search(key) for key in keys):
        known = ", ".join(keys)
        report(f"{NAME}: --only {arguments.only.pattern}: matches no section; sections: {known}")
        return NOTHING_MATCHED
    signal.signal(signal.SIGTERM, interrupt)
    out = arguments.out_dir.absolute()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        report(f"{NAME}: --out-dir {out}: cannot be made: {error.strerror}; name another folder")
        return BAD_USAGE
    if arguments.only_check_options:
        return DONE
    machine = look(arguments.device, arguments.programs.absolute(), out)
    if arguments.device == "cuda" and machine.gpus == 0:
        report(f"{NAME}: PyTorch sees no GPU: is it built with CUDA, and the driver new enough?")
        return BAD_USAGE
    chosen = [each for each in sections_of(machine) if arguments.only.search(each.key)]
    page = arguments.out_dir / "page.md"
    code = run_all(chosen, machine, arguments.minutes, page)
    print(page)
    return code


if __name__ == "__main__":
    sys.exit(main())
