"""What of a command's output belongs on the page, and what in it cannot be right."""

import json
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpu_sections.links import Link

# A measured bandwidth so far above the link's own is no bandwidth: short bursts are below that.
MOST_OF_A_LINK = 1.1


@dataclass(frozen=True)
class Figures:
    """Text for the page, and why it cannot be right; None where nothing speaks against it."""

    text: str
    complaint: str | None = None


Reader = Callable[[str], Figures]  # of a command's standard output


def as_printed(stdout: str) -> Figures:
    """Return all of it."""
    return Figures(stdout.strip("\n"))


def nothing(_: str) -> Figures:
    """Return nothing: the command leaves files."""
    return Figures("")


def of_tests(stdout: str) -> Figures:
    """Return a GoogleTest program's counts, and the names of the tests that failed."""
    counted = r"\[(?:==========\] .* ran\.|  PASSED  \]|  SKIPPED \] \d|  FAILED  \]).*"
    lines = [line for line in stdout.splitlines() if re.match(counted, line)]
    return Figures("\n".join(dict.fromkeys(lines)))


def bus_rates(results: dict) -> dict[str, tuple[int, float]]:
    """Return each collective's largest message, in bytes, and the bus GB/s that it had."""
    rates: dict[str, dict[int, list[float]]] = {}
    for row in results["benchmarks"]:
        if row["run_type"] == "iteration" and not row.get("error_occurred"):
            of_size = rates.setdefault(row["stratagem"]["strategy"], {})
            of_size.setdefault(int(row["bytes"]), []).append(row["bus_gb_per_s"])
    largest = {name: max(sizes) for name, sizes in rates.items()}
    return {name: (size, statistics.median(rates[name][size])) for name, size in largest.items()}


def against(link: Link, path: Path) -> Reader:
    """Return a reader that adds what the largest messages had of the link, from a results file."""

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
