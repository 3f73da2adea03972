"""Runs several command lines of the peers' programs one after another in one pair of ranks, so that
PyTorch is imported once for all of them. Prints their answers as one JSON list.

  python tests/peers/several_ways.py "train.py ddp --model gpt-tiny" "epochs.py toy_sgd"

A way of one device is run by both ranks alike, and the first answers.
"""

import functools
import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "peers"))

from torch_peers import ranks  # noqa: E402
from torch_peers.placement import RANKED, place  # noqa: E402

RANKS = 2
SAMPLES = 640  # of the loader, in place of ten thousand


def run_one(line: str, rank: int) -> dict:
    """The answer of a rank, and as "ranks" how many the line asks for."""
    sys.argv = line.split()
    name = Path(sys.argv[0]).stem
    program = importlib.import_module(name)
    arguments = program.parse_arguments()
    if name == "trainer":
        return {"ranks": 1, **program.train(arguments, rank)}
    if name == "train":
        count = RANKS if arguments.strategy in RANKED else 1
        arguments.placement = place("cpu", count)
    else:
        count = getattr(arguments, "ranks", 1)
        if arguments.work == "loader":
            importlib.import_module("torch_peers.batches").SAMPLES = SAMPLES
    return {"ranks": count, **program.run(arguments, rank if count == RANKS else 0)}


def run_all(lines: list[str], rank: int) -> list[dict]:
    """The answers of a rank."""
    answers = []
    for line in lines:
        try:
            answers.append(run_one(line, rank))
        except Exception as error:
            raise RuntimeError(f"{line}: {type(error).__name__}: {error}") from error
    return answers


def main(run=run_all) -> None:
    """Print the answers that `run` gives for the lines of the command."""
    placement = place("cpu", RANKS)
    found = ranks.answers(placement, functools.partial(run, sys.argv[1:]))
    answers = [
        ranks.as_one(placement, given) if given[0]["ranks"] == RANKS else given[0]
        for given in zip(*found, strict=True)
    ]
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
