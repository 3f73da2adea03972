#!/usr/bin/env python3
"""PyTorch peer: a GPT by torch.distributed.tensor.parallel over Gloo, two ranks of one core each.

The plan is Stratagem's: query, key and value in one column-parallel matrix, row-parallel
projections, embedding and head sharded over the vocabulary, and a loss that does not gather the
logits (loss_parallel). Inside the timed region of each rank: copy of tokens and targets, zero_grad,
forward, loss, backward with their all-reduces, optimizer.step. Steps warm up, a barrier stands
before the timed steps and none between them; the step time is the maximum over the ranks.
"""

from __future__ import annotations

import argparse

import gpt_work
import rank_pair
import resnet_work


def parse_arguments() -> argparse.Namespace:
    """Return the checked command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    gpt_work.add_work_options(parser)
    rank_pair.add_rank_options(parser)
    return parser.parse_args()


def share_out(layers: list, mesh):
    """Return the layers as one module whose matrices are sharded over the mesh."""
    import torch
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    embedding, *blocks, norm, head = layers
    parallelize_module(embedding, mesh, {"token": RowwiseParallel(input_layouts=Replicate())})
    for block in blocks:
        plan = {
            "qkv": ColwiseParallel(),
            "projection": RowwiseParallel(),
            "up": ColwiseParallel(),
            "down": RowwiseParallel(),
        }
        parallelize_module(block, mesh, plan)
    head = parallelize_module(
        head, mesh, ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
    )
    return torch.nn.Sequential(embedding, *blocks, norm, head)


def run_rank(arguments: argparse.Namespace) -> None:
    """Trains one rank's part of the layers and prints its JSON line."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import loss_parallel

    gpt_work.choose_matmul(arguments.matmul)
    mesh = init_device_mesh("cpu", (rank_pair.RANKS,))
    model = share_out(gpt_work.make_layers(arguments.seed), mesh)
    host_tokens, host_targets = gpt_work.make_batch(arguments.batch, arguments.seed)
    # DTensors and plain tensors cannot share one fused call.
    shared = [p for p in model.parameters() if isinstance(p, torch.distributed.tensor.DTensor)]
    whole = [p for p in model.parameters() if not isinstance(p, torch.distributed.tensor.DTensor)]
    optimizers = [gpt_work.make_optimizer(shared), gpt_work.make_optimizer(whole)]
    losses = []

    def step() -> None:
        tokens, targets = host_tokens.clone(), host_targets.clone()
        for optimizer in optimizers:
            optimizer.zero_grad()
        with loss_parallel():
            loss = gpt_work.loss_of(model(tokens), targets)
            loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.detach())

    def last_loss() -> float:
        last = losses[-1]
        return (last.full_tensor() if hasattr(last, "full_tensor") else last).item()

    resnet_work.measure("tensor_parallel", step, arguments.steps, last_loss)


if __name__ == "__main__":
    parsed = parse_arguments()
    rank_pair.main(parsed, f"gpt/tensor_parallel/{parsed.matmul}", run_rank)
