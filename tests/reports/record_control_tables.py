"""Records rounds in which eleven rows do equal work: what control_tables.jsonl holds.

    python tests/reports/record_control_tables.py STRATAGEM FILE [--neighbour] [--tables 20]

Each line is a round: the median step of each row's launch in milliseconds, and whether another
program kept the cores busy meanwhile. Rows differ in their seed alone. With --neighbour two loops
of matrix products come and go beside the launches. Twenty tables take a quarter of an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 11
ROUNDS_OF_A_TABLE = 7
LONGEST_SECONDS = 7200


def launches(stratagem: str, rounds: int) -> list[list[float]]:
    """The launches' median steps in milliseconds, [round][row]."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        command = [
            stratagem, "run", "--strategy", "single", "--model", "mlp", "--devices", "1",
            "--seed", ",".join(str(seed) for seed in range(1, ROWS + 1)), "--steps", "2",
            "--repetitions", str(rounds), "--no-verify", "--no-predict", "--no-repeat-disturbed",
            "--out", str(out),
        ]  # fmt: skip
        subprocess.run(command, check=True, timeout=LONGEST_SECONDS, stdout=sys.stderr)
        return rounds_of(json.loads(out.read_text()))


def rounds_of(document: dict) -> list[list[float]]:
    """The rounds of a results file; rows in the order of the file."""
    rows: dict[str, list[float]] = {}
    for entry in document["benchmarks"]:
        if entry.get("run_type") != "aggregate":
            median = statistics.median(entry["stratagem"]["step_ms"])
            rows.setdefault(entry["run_name"], []).append(round(median, 3))
    return [list(launch) for launch in zip(*rows.values(), strict=True)]


def busy_now_and_then(until: float) -> None:
    """Keeps a core busy for seconds, then rests for seconds."""
    order = random.Random(os.getpid())
    while time.monotonic() < until:
        end = time.monotonic() + order.uniform(1, 8)
        while time.monotonic() < end:
            pass
        time.sleep(order.uniform(1, 8))


def main() -> None:
    """Runs the rounds and appends them to the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stratagem", help="the program that measures")
    parser.add_argument("file", type=Path, help="appended to")
    parser.add_argument("--neighbour", action="store_true", help="with other work on the cores")
    parser.add_argument("--tables", type=int, default=20, help="of seven rounds each")
    options = parser.parse_args()
    neighbours = []
    if options.neighbour:
        script = (
            "import sys, time; sys.path.insert(0, sys.argv[1]); "
            "import record_control_tables as own; "
            f"own.busy_now_and_then(time.monotonic() + {LONGEST_SECONDS})"
        )
        folder = str(Path(__file__).resolve().parent)
        neighbours = [
            subprocess.Popen([sys.executable, "-c", script, folder]) for _ in range(2)
        ]
    try:
        found = launches(options.stratagem, options.tables * ROUNDS_OF_A_TABLE)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    with options.file.open("a") as file:
        for launch in found:
            file.write(json.dumps({"neighbour": options.neighbour, "ms": launch}) + "\n")


if __name__ == "__main__":
    main()
