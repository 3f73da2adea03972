"""Runs command lines of train.py as several_ways.py does, and prints the same list of answers, but
in float64 and with plain SGD: AdamW would hide a gradient that is a multiple of the right one.
"""

import functools
import json
import sys

from several_ways import RANKS, run_all  # first: it puts the others on the path
from torch_peers import ranks
from torch_peers.placement import place


def run_exactly(lines: list[str], rank: int) -> list[dict]:
    """The answers of a rank."""
    import torch
    from torch_peers.gpt import Gpt

    torch.set_default_dtype(torch.float64)
    Gpt.OPTIMIZER, Gpt.OPTIMIZER_OPTIONS = torch.optim.SGD, {"lr": 0.5}
    return run_all(lines, rank)


def main() -> None:
    placement = place("cpu", RANKS)
    found = ranks.answers(placement, functools.partial(run_exactly, sys.argv[1:]))
    answers = [
        ranks.as_one(placement, given) if given[0]["ranks"] == RANKS else given[0]
        for given in zip(*found, strict=True)
    ]
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
