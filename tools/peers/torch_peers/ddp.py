"""DistributedDataParallel: each rank trains a replica with its part of the batch.

It averages the gradients of the ranks' means, which for parts of one size is the gradient of the
global mean.
"""

import argparse

from torch.nn.parallel import DistributedDataParallel

from torch_peers.measurement import train
from torch_peers.recomputation import recomputing
from torch_peers.whole_model import compiled, make_batches, make_layers


def run(arguments: argparse.Namespace, job) -> dict:
    """Train one replica."""
    layers = make_layers(arguments, job)
    model = recomputing(arguments, layers)
    optimizer = job.make_optimizer(model.parameters())
    own = None if arguments.device == "cpu" else [arguments.place]
    replica = DistributedDataParallel(
        model,
        own,
        gradient_as_bucket_view=True,
        bucket_cap_mb=arguments.bucket_mb,
        static_graph=arguments.static_graph,
    )
    batches = make_batches(arguments, job)
    return train(arguments, job, layers, compiled(arguments, replica), batches, optimizer)
