"""One device: one thread on one core, or a GPU."""

import argparse

from torch_peers.measurement import train
from torch_peers.whole_model import compiled, make_batch, make_model


def run(arguments: argparse.Namespace, job) -> dict:
    """Train the whole model."""
    model = make_model(arguments, job)
    optimizer = job.make_optimizer(model.parameters())
    batch = make_batch(arguments, job)
    return train(arguments, compiled(arguments, model), job.loss_of, batch, optimizer)
