#!/usr/bin/env python3
"""PyTorch peer: trains one linear layer on random numbers, and prints the losses as a JSON line.

The training begins with the first checkpoint of `stratagem train`, and uses
DistributedDataParallel, DataLoader and DistributedSampler. The line has the loss of every step. The
data are those of `--data random --targets real`, number by number.
"""

import argparse
import functools
import json
from pathlib import Path

import torch
import torch.distributed as dist
from command_line import Parser, at_least_one, not_negative
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torch_peers import ranks
from torch_peers.placement import place

BITS = (1 << 64) - 1


class RandomBits:
    """splitmix64 (Steele, Lea and Flood 2014), seeded as in models/datasets/random_bits.h."""

    def __init__(self, seed: int, number: int) -> None:
        """Seed the generator for sample `number` of a data set with this seed."""
        self.state = seed
        self.state = (self.next() + number) & BITS
        self.state = self.next()

    def next(self) -> int:
        """Return the next 64 bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & BITS
        bits = self.state
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & BITS
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & BITS
        return bits ^ (bits >> 31)

    def uniform(self) -> float:
        """Return a number in [0, 1) with 24 bits."""
        return (self.next() >> 40) / (1 << 24)


def parse_arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = Parser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("checkpoint", type=Path, help="step-00000000.pt, of --checkpoint-first")
    add("--ranks", type=at_least_one, default=1, help="processes (1)")
    add("--samples", type=at_least_one, required=True, help="of the training set")
    add("--global-batch-size", type=at_least_one, required=True, help="over all ranks")
    add("--epochs", type=at_least_one, default=1, help="times through the set (1)")
    add("--optimizer", choices=("sgd", "adam", "adamw"), default="sgd")
    add("--learning-rate", type=float, default=0.001)
    add("--momentum", type=float, default=0, help="of SGD (0)")
    add("--seed", type=not_negative, default=1, help="of data and order (1)")
    return parser.parse_args()


def random_numbers(seed: int, samples: int, features: int, outputs: int) -> TensorDataset:
    """Return the features and targets of every sample, in float64."""
    drawn = [RandomBits(seed, number) for number in range(samples)]
    inputs = [[bits.uniform() for _ in range(features)] for bits in drawn]
    targets = [[bits.uniform() for _ in range(outputs)] for bits in drawn]
    return TensorDataset(*(torch.tensor(part, dtype=torch.float64) for part in (inputs, targets)))


def optimizer_of(arguments: argparse.Namespace, parameters) -> torch.optim.Optimizer:
    """Return the optimizer of the command line, without weight decay, otherwise with defaults."""
    rate = {"lr": arguments.learning_rate, "weight_decay": 0}
    if arguments.optimizer == "sgd":
        return torch.optim.SGD(parameters, momentum=arguments.momentum, **rate)
    made = torch.optim.Adam if arguments.optimizer == "adam" else torch.optim.AdamW
    return made(parameters, **rate)


def train(arguments: argparse.Namespace, rank: int) -> dict:
    """Train as one rank; return the mean loss of all ranks at every step."""
    state = torch.load(arguments.checkpoint)["model"]
    outputs, features = state["linear.weight"].shape
    bias = "linear.bias" in state
    layer = torch.nn.Linear(features, outputs, bias=bias, dtype=torch.float64)
    model = torch.nn.ModuleDict({"linear": layer})
    model.load_state_dict(state, strict=True)
    replicated = torch.nn.parallel.DistributedDataParallel(layer)
    optimizer = optimizer_of(arguments, replicated.parameters())
    data = random_numbers(arguments.seed, arguments.samples, features, outputs)
    sampler = DistributedSampler(data, seed=arguments.seed)
    loader = DataLoader(data, arguments.global_batch_size // arguments.ranks, sampler=sampler)
    losses = []
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(replicated(inputs), targets)
            loss.backward()
            optimizer.step()
            whole = loss.detach().clone()
            dist.all_reduce(whole)
            losses.append(whole.item() / arguments.ranks)
    return {"losses": losses}


def main() -> None:
    """Start the ranks and print the answer of the first."""
    arguments = parse_arguments()
    answers = ranks.answers(place("cpu", arguments.ranks), functools.partial(train, arguments))
    print(json.dumps(answers[0]))


if __name__ == "__main__":
    main()
