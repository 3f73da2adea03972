"""Tensor parallelism of a GPT by torch.distributed.tensor.parallel.

The plan is Stratagem's: query, key and value in one column-parallel matrix, row-parallel
projections, embedding and head sharded over the vocabulary, and a loss that does not gather the
logits (loss_parallel).
"""

import argparse

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)

from torch_peers.measurement import fetched, in_turn, measure
from torch_peers.whole_model import held, make_layers


def shard(layers: list, mesh) -> torch.nn.Sequential:
    """Return the layers as one module with its matrices sharded over the mesh."""
    embedding, *blocks, _, head = layers
    parallelize_module(embedding, mesh, {"token": RowwiseParallel(input_layouts=Replicate())})
    for block in blocks:
        plan = {
            "attention.qkv": ColwiseParallel(),
            "attention.projection": RowwiseParallel(),
            "mlp.up": ColwiseParallel(),
            "mlp.down": RowwiseParallel(),
        }
        parallelize_module(block, mesh, plan)
    kept = ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
    return torch.nn.Sequential(*layers[:-1], parallelize_module(head, mesh, kept))


def run(arguments: argparse.Namespace, job) -> dict:
    """Train one rank's part of the layers."""
    mesh = init_device_mesh(arguments.device, (arguments.ranks,))
    layers = make_layers(arguments, job)
    model = shard([*layers.values()], mesh)
    turns = in_turn([held(arguments, *batch) for batch in job.make_batches(arguments)])
    # DTensors and plain tensors cannot share one fused call.
    sharded = [p for p in model.parameters() if isinstance(p, DTensor)]
    whole = [p for p in model.parameters() if not isinstance(p, DTensor)]
    optimizers = [job.make_optimizer(sharded), job.make_optimizer(whole)]

    def step() -> torch.Tensor:
        tokens, targets = (fetched(tensor, arguments.place) for tensor in next(turns))
        for optimizer in optimizers:
            optimizer.zero_grad()
        with loss_parallel():
            loss = job.loss_of(model(tokens), targets)
            loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss

    return measure(arguments, job, step, layers)
