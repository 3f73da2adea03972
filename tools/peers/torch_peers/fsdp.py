"""FSDP2: each rank holds a part of every layer, and gathers a layer when it computes it.

Gradients are averaged as in DistributedDataParallel. A layer is gathered again for its backward
pass, unless it is kept from its forward pass on.
"""

import argparse

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from torch_peers.measurement import train
from torch_peers.whole_model import compiled, make_batch, make_model


def run(arguments: argparse.Namespace, job) -> dict:
    """Train with sharded layers."""
    mesh = init_device_mesh(arguments.device, (arguments.ranks,))
    model = make_model(arguments, job)
    reshard = not arguments.no_reshard_after_forward
    for layer in model:
        if any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh)
    optimizer = job.make_optimizer(model.parameters())
    batch = make_batch(arguments, job)
    return train(arguments, compiled(arguments, model), job.loss_of, batch, optimizer)
