"""FSDP2: each rank holds a part of every layer, and gathers a layer when it computes it.

Gradients are averaged as in DistributedDataParallel. The parameters of a group are gathered
together. Each layer, or with --wrap blocks only each block, is a group. The other parameters are in
the group of the whole model. A layer is gathered again for its backward pass, unless
--no-reshard-after-forward keeps it after its forward pass.
"""

import argparse

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from torch_peers.measurement import train
from torch_peers.whole_model import as_model, compiled, make_batches, make_layers


BLOCKS = ("blocks.", "layer")


def run(arguments: argparse.Namespace, job) -> dict:
    """Train with sharded layers."""
    mesh = init_device_mesh(arguments.device, (arguments.ranks,))
    layers = make_layers(arguments, job)
    model = as_model(layers)
    reshard = not arguments.no_reshard_after_forward
    for name, layer in layers.items():
        wrapped = name.startswith(BLOCKS) or arguments.wrap == "layers"
        if wrapped and any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh)
    optimizer = job.make_optimizer(model.parameters())
    batches = make_batches(arguments, job)
    return train(arguments, job, layers, compiled(arguments, model), batches, optimizer)
