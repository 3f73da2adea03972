"""Selects the part of a command's output for the page, and finds impossible figures in it."""

import json
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpu_sections.links import Link

# The highest plausible ratio of a measured bandwidth to the link's. Short bursts are below it.
MOST_OF_A_LINK = 1.1


@dataclass(frozen=True)
class Figures:
    """The text for the page, and the reason why it cannot be right or None."""

    text: str
    complaint: str | None = None


Reader = Callable[[str], Figures]  # reads a command's standard output


def as_printed(stdout: str) -> Figures:
    """Return the whole output."""
    return Figures(stdout.strip("\n"))


def nothing(_: str) -> Figures:
    """Return an empty text, for a command that writes files."""
    return Figures("")


def of_tests(stdout: str) -> Figures:
    """Return a GoogleTest program's counts, and the names of the tests that failed."""
    counted = r"\[(?:==========\] .* ran\.|  PASSED  \]|  SKIPPED \] \d|  FAILED  \]).*"
    lines = [line for line in stdout.splitlines() if re.match(counted, line)]
    return Figures("\n".join(dict.fromkeys(lines)))


def bus_rates(results: dict) -> dict[str, tuple[int, float]]:
    """Return each collective's largest message in bytes, and its median bus bandwidth in GB/s."""
    rates: dict[str, dict[int, list[float]]] = {}
    for row in results["benchmarks"]:
        if row["run_type"] == "iteration" and not row.get("error_occurred"):
            of_size = rates.setdefault(row["stratagem"]["strategy"], {})
            of_size.setdefault(int(row["bytes"]), []).append(row["bus_gb_per_s"])
    largest = {name: max(sizes) for name, sizes in rates.items()}
    return {name: (size, statistics.median(rates[name][size])) for name, size in largest.items()}


def against(link: Link, path: Path) -> Reader:
    """Return a reader that adds the share of the link's bandwidth of each largest message.

    The bandwidths are from the results file `path`. An unreadable file, or a share above
    MOST_OF_A_LINK, is a complaint.
    """

    def read(stdout: str) -> Figures:
        printed = as_printed(stdout).text
        try:
            rates = bus_rates(json.loads(path.read_text()))
        except (OSError, ValueError, KeyError, TypeError) as error:
            return Figures(printed, f"{path.name}: no readable results: {error}")
        lines, complaint = [f"link: {link.text}"], None
        for name, (size, rate) in rates.items() if link.gb_per_s else ():
            part = rate / link.gb_per_s
            lines.append(
                f"{name} of {size} bytes: {rate:.4g} of {link.gb_per_s:.4g} GB/s, {part:.0%}"
            )
            if part > MOST_OF_A_LINK:
                complaint = f"{name}: {rate:.4g} GB/s over a link of {link.gb_per_s:.4g} GB/s"
        return Figures("\n".join([printed, "", *lines]), complaint)

    return read
