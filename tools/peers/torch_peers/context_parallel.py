"""Context parallelism of a GPT: each rank has a part of the positions of every sample.

Each rank has whole layers, and its attention exchanges tensors with the other ranks. A rank's loss
is the mean over its own positions. All ranks have the same number of positions, so that
DistributedDataParallel's average of their gradients is the gradient of the mean over all positions.
"""

import argparse
from collections.abc import Callable

import torch

from torch_peers.ddp import replicated
from torch_peers.measurement import train
from torch_peers.whole_model import as_model, compiled, held, make_layers


def run(
    arguments: argparse.Namespace,
    job,
    positions: torch.Tensor,
    mix: Callable[[torch.Tensor], torch.Tensor],
) -> dict:
    """Train one rank's `positions`; `mix` is attention that exchanges tensors with other ranks.

    `mix` takes query, key and value of this rank's positions, [n, positions, heads, 3, features],
    and returns the output of these positions, [n, positions, heads, features].
    """
    layers = make_layers(arguments, job)
    layers["embedding"].positions = positions
    for name, layer in layers.items():
        if name.startswith("blocks."):
            layer.attention.mix = mix
    model = as_model(layers)
    optimizer = job.make_optimizer(model.parameters())
    replica = compiled(arguments, replicated(arguments, model))
    batches = [
        held(arguments, *(whole[:, positions].contiguous() for whole in batch))
        for batch in job.make_batches(arguments)
    ]
    return train(arguments, job, layers, replica, batches, optimizer)
