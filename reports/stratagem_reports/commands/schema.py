"""`stratagem schema`: the JSON Schema of a file that the programs write."""

import argparse
import sys
from pathlib import Path

FILES = ("results", "history", "train")
_FOLDER = Path(__file__).parents[1] / "schemas"


def register(commands: argparse._SubParsersAction) -> None:
    """Adds the subcommand's parser."""
    schema = commands.add_parser(
        "schema",
        help="prints the JSON Schema of results, history or training files",
        description="Prints a JSON Schema (draft 2020-12) that describes every field of the files "
        "that this version writes.",
    )
    schema.add_argument(
        "file", nargs="?", choices=FILES, default="results", metavar="KIND",
        help="results: results.json (default); history: a line of the history; train: the file of "
        "`stratagem train --out`, whose events are the lines of --log",
    )  # fmt: skip
    schema.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the schema."""
    sys.stdout.write((_FOLDER / f"{options.file}.schema.json").read_text(encoding="utf-8"))
    return 0
