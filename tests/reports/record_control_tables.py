"""Records tables of eleven rows of equal work: what control_tables.jsonl holds.

    python tests/reports/record_control_tables.py STRATAGEM FILE [--neighbour] [--tables 20]

Each line is a table: the rounds it asked for, the median step of each launch of each row in
milliseconds, first of the rounds and then of the disturbed launches that were made again, which of
each row's launches were disturbed, and whether another program kept the cores busy meanwhile. Rows
differ in their seed alone. Without a neighbour a table is made as a user makes one. With
--neighbour two loops come and go beside the launches, and none is repeated.
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
ROUNDS = 8
STEPS = 100  # of 14 ms: more than a second a launch
LONGEST_SECONDS = 900  # of a table


def record(stratagem: str, neighbour: bool) -> dict:
    """A line of the file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        command = [
            stratagem, "run", "--strategy", "single", "--model", "mlp", "--devices", "1",
            "--seed", ",".join(str(seed) for seed in range(1, ROWS + 1)),
            "--global-batch-size", "8", "--steps", str(STEPS), "--repetitions", str(ROUNDS),
            "--no-verify", "--no-predict", "--out", str(out),
        ]  # fmt: skip
        if neighbour:
            command.append("--no-repeat-disturbed")
        subprocess.run(command, check=True, timeout=LONGEST_SECONDS, stdout=sys.stderr)
        return {"neighbour": neighbour, "rounds": ROUNDS, **launches(json.loads(out.read_text()))}


def launches(document: dict) -> dict:
    """The launches of a results file by row, in its order, and the places of the disturbed ones."""
    rows: dict[str, list[dict]] = {}
    for entry in document["benchmarks"]:
        if entry.get("run_type") != "aggregate":
            rows.setdefault(entry["run_name"], []).append(entry)
    for row in rows.values():
        row.sort(key=lambda entry: entry["repetition_index"])
    return {
        "ms": [
            [round(statistics.median(entry["stratagem"]["step_ms"]), 3) for entry in row]
            for row in rows.values()
        ],
        "disturbed": [
            [
                place
                for place, entry in enumerate(row)
                if "disturbed" in entry["stratagem"].get("marks", [])
            ]
            for row in rows.values()
        ],
    }


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
    parser.add_argument("--tables", type=int, default=20, help=f"of {ROUNDS} rounds each")
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
            table = record(options.stratagem, options.neighbour)
            with options.file.open("a") as file:
                file.write(json.dumps(table) + "\n")
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


if __name__ == "__main__":
    main()
