#!/usr/bin/env python3
"""PyTorch peer: trains epochs of a toy, or only makes batches of images, and prints a JSON line.

`toy_sgd` trains the toy of `stratagem train --preset toy_sgd` with DataLoader, and on two ranks
also with DistributedSampler and DistributedDataParallel. Its step time is the time of an epoch,
with loader and loop, divided by the number of steps. The step time of `loader` is the processor
time of a batch. Each process has one thread, pinned to one core.
"""

import argparse
import functools
import importlib
import json

from command_line import Parser, at_least_one, not_negative
from torch_peers import ranks
from torch_peers.placement import place

MODULES = {"toy_sgd": "torch_peers.toy_sgd", "loader": "torch_peers.batches"}


def parse_arguments() -> argparse.Namespace:
    """Return the command line; an option that the work does not read is refused."""
    parser = Parser(description=__doc__.splitlines()[0])
    works = parser.add_subparsers(dest="work", required=True)
    toy, loader = (works.add_parser(work) for work in MODULES)
    toy.add_argument("--ranks", type=int, choices=(1, 2), default=1, help="processes (1)")
    toy.add_argument(
        "--fetch", choices=("samples", "batches"), default="samples", help="one read gets (samples)"
    )
    loader.add_argument("--transform", choices=("pictures", "tensors"), default="pictures")
    for each in (toy, loader):
        each.add_argument("--epochs", type=at_least_one, default=5, help="timed epochs (5)")
        each.add_argument("--seed", type=not_negative, default=1, help="of data and order (1)")
    return parser.parse_args()


def run(arguments: argparse.Namespace, rank: int) -> dict:
    """Do the work as one rank, in a process that is pinned to its core, and return the answer."""
    arguments.rank = rank
    return importlib.import_module(MODULES[arguments.work]).run(arguments)


def main() -> None:
    """Do the work and print the JSON line."""
    arguments = parse_arguments()
    count = getattr(arguments, "ranks", 1)
    if count == 1:
        ranks.use_threads_on(ranks.one_core_per_device(1))
        answer = run(arguments, 0)
    else:
        answer = ranks.merged(place("cpu", count), functools.partial(run, arguments))
    print(json.dumps({"peer": arguments.work, **answer}), flush=True)


if __name__ == "__main__":
    main()
