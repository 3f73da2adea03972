"""Records tables of eleven rows of equal work: what control_tables.jsonl holds.

    python tests/reports/record_control_tables.py STRATAGEM FILE [--neighbour] [--tables 20]

Each line is a table of seven rounds: the samples of each row in milliseconds, and whether another
program kept the cores busy meanwhile. Rows differ in their seed alone. Without a neighbour a table
is made as a user makes one: disturbed launches are repeated and are no samples. With --neighbour
two loops come and go beside the launches, and every launch is a sample, the disturbed ones, too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 11
ROUNDS = 7
LONGEST_SECONDS = 600  # of a table


def record(stratagem: str, neighbour: bool) -> list[list[float]]:
    """The samples of a table in milliseconds, [row][launch]."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        command = [
            stratagem, "run", "--strategy", "single", "--model", "mlp", "--devices", "1",
            "--seed", ",".join(str(seed) for seed in range(1, ROWS + 1)),
            "--global-batch-size", "8", "--steps", "20", "--repetitions", str(ROUNDS),
            "--no-verify", "--no-predict", "--out", str(out),
        ]  # fmt: skip
        if neighbour:
            command.append("--no-repeat-disturbed")
        subprocess.run(command, check=True, timeout=LONGEST_SECONDS, stdout=sys.stderr)
        return samples_of(json.loads(out.read_text()), neighbour)


def samples_of(document: dict, with_disturbed: bool) -> list[list[float]]:
    """The rows of a results file in its order."""
    rows: dict[str, list[float]] = {}
    for entry in document["benchmarks"]:
        if entry.get("run_type") == "aggregate":
            continue
        own = entry["stratagem"]
        samples = rows.setdefault(entry["run_name"], [])
        if with_disturbed:
            samples.append(statistics.median(own["step_ms"]))
        elif "summary" in own:  # it stands in a row's first entry
            samples += own["summary"]["samples_ms"]
    return [[round(sample, 3) for sample in samples] for samples in rows.values()]


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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what runs here is ended, too
    neighbours = []
    if options.neighbour:
        script = (
            "import sys, time; sys.path.insert(0, sys.argv[1]); "
            "import record_control_tables as own; "
            f"own.busy_now_and_then(time.monotonic() + {options.tables * LONGEST_SECONDS})"
        )
        folder = str(Path(__file__).resolve().parent)
        neighbours = [
            subprocess.Popen([sys.executable, "-c", script, folder]) for _ in range(2)
        ]
    try:
        for _ in range(options.tables):
            table = {
                "neighbour": options.neighbour,
                "ms": record(options.stratagem, options.neighbour),
            }
            with options.file.open("a") as file:
                file.write(json.dumps(table) + "\n")
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


if __name__ == "__main__":
    main()
