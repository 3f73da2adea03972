"""Records a whole results file of a real run: what tests/approved/measured_results.json is.

    python tests/reports/record_results.py STRATAGEM FILE

Names of the machine and its folders are replaced, numbers are not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

ROW = (
    "run --model mlp --strategy single,model_parallel,pipeline,ddp --devices 2 "
    "--global-batch-size 8 --split-size 4 --steps 2 --repetitions 4 --seed 7"
).split()
LONGEST_SECONDS = 600
EXAMPLE = "example"
NAMES = ("cpu_model", "kernel", "microcode", "environment")  # of the machine


def main() -> None:
    """Runs the rows and writes what the program wrote of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stratagem", help="the program that measures")
    parser.add_argument("file", type=Path, help="overwritten")
    options = parser.parse_args()
    command = [options.stratagem, *ROW, "--out", str(options.file)]
    subprocess.run(command, check=True, timeout=LONGEST_SECONDS)
    document = json.loads(options.file.read_text())
    context = document["context"]
    context["host_name"] = context["executable"] = EXAMPLE
    context["stratagem"]["command_line"] = " ".join(["stratagem", *ROW])
    for part in context["stratagem"]["fingerprint"].values():
        part |= {key: EXAMPLE for key in NAMES if key in part}
    options.file.write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
