"""ZeroRedundancyOptimizer: each replica of DistributedDataParallel updates a part.

A rank has only the optimizer's state of its part. It sends the parameters that it updated to the
other ranks in one buffer; the parameters are views of the buffer.
"""

import argparse

from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from torch_peers.measurement import train
from torch_peers.whole_model import as_model, compiled, make_batches, make_layers


def run(arguments: argparse.Namespace, job) -> dict:
    """Train one replica, with an optimizer that is sharded over the ranks."""
    layers = make_layers(arguments, job)
    model = as_model(layers)
    own = None if arguments.device == "cpu" else [arguments.place]
    replica = DistributedDataParallel(model, own, gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(),
        optimizer_class=job.OPTIMIZER,
        parameters_as_bucket_view=True,
        **job.OPTIMIZER_OPTIONS,
    )
    batches = make_batches(arguments, job)
    return train(arguments, job, layers, compiled(arguments, replica), batches, optimizer)
