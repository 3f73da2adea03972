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
    core = resnet_work.one_core_per_device(rank_pair.RANKS)[arguments.rank]
    resnet_work.use_one_thread_on(core)
    import torch
    import torch.distributed as distributed
    from torch.nn.parallel import DistributedDataParallel

    rank_pair.join_process_group(arguments)
    model = resnet_work.make_model(arguments.seed)
    images, labels = resnet_work.make_batch(arguments.batch, arguments.image, arguments.seed)
    own = slice(
        arguments.rank * arguments.batch // rank_pair.RANKS,
        (arguments.rank + 1) * arguments.batch // rank_pair.RANKS,
    )
    host_images, host_labels = images[own].clone(), labels[own].clone()
    if arguments.memory_format == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        host_images = host_images.contiguous(memory_format=torch.channels_last)
    replica = DistributedDataParallel(model)
    optimizer = resnet_work.make_optimizer(model)
    mean_squared_error = torch.nn.MSELoss()
    losses = []

    def step() -> None:
        inputs, targets = host_images.clone(), host_labels.clone()
        optimizer.zero_grad()
        loss = mean_squared_error(replica(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    resnet_work.warm_up(step)
    distributed.barrier()
    step_ms = resnet_work.timed_steps(step, arguments.steps)
    resnet_work.print_result("ddp", step_ms, losses[-1].item())
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    parsed = parse_arguments()
    rank_pair.main(parsed, f"ddp/{parsed.memory_format}", run_rank)
