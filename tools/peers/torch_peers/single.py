"""One device: one thread on one core, or a GPU."""

import argparse

from torch_peers.measurement import train
from torch_peers.recomputation import recomputing
from torch_peers.whole_model import compiled, make_batches, make_layers


def run(arguments: argparse.Namespace, job) -> dict:
    """Train the whole model."""
    layers = make_layers(arguments, job)
    model = recomputing(arguments, layers)
    optimizer = job.make_optimizer(model.parameters())
    batches = make_batches(arguments, job)
    return train(arguments, job, layers, compiled(arguments, model), batches, optimizer)
