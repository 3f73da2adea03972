"""Records runs of the README's first command: what readme_runs.jsonl holds.

    python tests/reports/record_readme_runs.py FILE [--beside COMMAND] [--runs 3]

Each line is a run of tools/run: its rows, what the table tells of them, and what was predicted. A
quiet run in which 1% of a row's step is unexplained is refused.
With --beside a command, by default a compiler over a file of this tree, is repeated beside the run
until the run ends.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST_SECONDS = 3600  # of a run
TOLD = ("median_ms", "interval_ms", "cannot_tell", "predicted_ms", "prediction_error", "error")


def compiler_command() -> str:
    """What compiles a file of the tree for about half a minute and keeps nothing."""
    entries = json.loads((ROOT / "build/compile_commands.json").read_text())
    entry = next(e for e in entries if "training/loop" in e["file"] + e["command"])
    words = shlex.split(entry["command"])
    words[words.index("-o") + 1] = "/dev/null"
    return f"cd {shlex.quote(entry['directory'])} && CCACHE_DISABLE=1 {shlex.join(words)}"


class Neighbour:
    """A command that is repeated until the end of a block."""

    def __init__(self, command: str | None) -> None:
        self._command = command
        self._ended = threading.Event()
        self._process: subprocess.Popen | None = None
        self._thread = threading.Thread(target=self._repeat)

    def _repeat(self) -> None:
        while self._command and not self._ended.is_set():
            self._process = subprocess.Popen(
                ["bash", "-c", self._command], start_new_session=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            if self._process.wait() != 0 and not self._ended.is_set():
                print(f"the neighbour failed: {self._command}", file=sys.stderr)
                self._ended.wait(1)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._process and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        self._thread.join()


def of_document(document: dict) -> dict:
    """What a line keeps of a results file."""
    rows = {}
    launches = disturbed = 0
    for entry in document["benchmarks"]:
        own = entry.get("stratagem", {})  # an aggregate has none
        launches += bool(own)
        disturbed += "disturbed" in own.get("marks", [])
        if "summary" in own:  # it stands in a row's first entry
            summary = own["summary"]
            row = rows[entry["run_name"]] = {key: summary[key] for key in TOLD if key in summary}
            row["doubt"] = (own.get("predicted_from") or {}).get("doubt", "")
            if not summary["error"]:
                row["other"] = round(summary["breakdown_ms"]["other"] / summary["median_ms"], 5)
    return {"launches": launches, "disturbed": disturbed, "rows": rows}


def record(file: Path, beside: str | None) -> None:
    """One run, appended to the file."""
    results = ROOT / "results/split_size/results.json"
    results.unlink(missing_ok=True)
    with Neighbour(beside):
        subprocess.run([str(ROOT / "tools/run")], cwd=ROOT, check=True, timeout=LONGEST_SECONDS)
    line = {"neighbour": bool(beside), **of_document(json.loads(results.read_text()))}
    unexplained = [name for name, row in line["rows"].items() if row.get("other", 0) >= 0.01]
    if unexplained and not beside:
        sys.exit(f"a part of the step has no explanation: {', '.join(unexplained)}")
    with file.open("a") as out:
        out.write(json.dumps(line) + "\n")


def main() -> None:
    """Runs the command so many times and appends what was told to the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="appended to")
    parser.add_argument(
        "--beside", nargs="?", const="", help="repeated beside each run (default: a compiler)"
    )
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    beside = compiler_command() if options.beside == "" else options.beside
    for _ in range(options.runs):
        record(options.file, beside)


if __name__ == "__main__":
    main()
