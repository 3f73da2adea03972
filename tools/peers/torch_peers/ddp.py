"""DistributedDataParallel: each rank trains a replica with its part of the batch.

It averages the gradients of the ranks' mean losses. For parts of equal size the average is the
gradient of the global mean.
"""

import argparse

import torch
from torch.nn.parallel import DistributedDataParallel

from torch_peers.measurement import train
from torch_peers.recomputation import recomputing
from torch_peers.whole_model import compiled, make_batches, make_layers


def replicated(arguments: argparse.Namespace, model: torch.nn.Module) -> DistributedDataParallel:
    """Return the model as a replica that averages gradients by the options of the command."""
    own = None if arguments.device == "cpu" else [arguments.place]
    return DistributedDataParallel(
        model,
        own,
        gradient_as_bucket_view=True,
        bucket_cap_mb=arguments.bucket_mb,
        static_graph=arguments.static_graph,
    )


def run(arguments: argparse.Namespace, job) -> dict:
    """Train one replica."""
    layers = make_layers(arguments, job)
    model = recomputing(arguments, layers)
    optimizer = job.make_optimizer(model.parameters())
    replica = compiled(arguments, replicated(arguments, model))
    batches = make_batches(arguments, job)
    return train(arguments, job, layers, replica, batches, optimizer)
