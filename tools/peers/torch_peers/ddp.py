"""DistributedDataParallel: each rank trains a replica with its part of the batch.

It averages the gradients of the ranks' means, which for parts of one size is the gradient of the
global mean.
"""

import argparse

from torch.nn.parallel import DistributedDataParallel

from torch_peers.measurement import train
from torch_peers.whole_model import compiled, make_batch, make_model


def run(arguments: argparse.Namespace, job) -> dict:
    """Train one replica."""
    model = make_model(arguments, job)
    optimizer = job.make_optimizer(model.parameters())
    own = None if arguments.device == "cpu" else [arguments.place]
    replica = DistributedDataParallel(model, own, gradient_as_bucket_view=True)
    batch = make_batch(arguments, job)
    return train(arguments, compiled(arguments, replica), job.loss_of, batch, optimizer)
