#!/usr/bin/env python3
"""PyTorch peer: ResNet-50 by DistributedDataParallel over Gloo, two ranks of one core each.

Each rank trains half of the global batch. Inside the timed region of each rank: copy of its input
and labels, zero_grad, forward, loss, backward with its all-reduces, optimizer.step. Steps warm
up, a barrier stands before the timed steps and none between them; the step time is the maximum over
the ranks. DistributedDataParallel averages the gradients of the ranks' means, which for shards of
one size is the gradient of the global mean.
"""

from __future__ import annotations

import argparse

import rank_pair
import resnet_work


def parse_arguments() -> argparse.Namespace:
    """Return the checked command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory-format", choices=("nchw", "channels_last"), default="nchw")
    resnet_work.add_work_options(parser)
    rank_pair.add_rank_options(parser)
    arguments = parser.parse_args()
    if arguments.batch % rank_pair.RANKS != 0:
        parser.error(f"--batch {arguments.batch} must be a multiple of {rank_pair.RANKS}")
    return arguments


def run_rank(arguments: argparse.Namespace) -> None:
    """Trains one replica and prints its JSON line."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    whole = resnet_work.make_batch(arguments.batch, arguments.image, arguments.seed)
    images, labels = (tensor.chunk(rank_pair.RANKS)[arguments.rank].clone() for tensor in whole)
    model, images = resnet_work.in_memory_format(
        arguments.memory_format, resnet_work.make_model(arguments.seed), images
    )
    replica, optimizer = DistributedDataParallel(model), resnet_work.make_optimizer(model)
    resnet_work.train(
        "ddp", arguments.steps, replica, torch.nn.MSELoss(), (images, labels), optimizer
    )


if __name__ == "__main__":
    parsed = parse_arguments()
    rank_pair.main(parsed, f"ddp/{parsed.memory_format}", run_rank)
