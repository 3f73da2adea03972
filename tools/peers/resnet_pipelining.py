#!/usr/bin/env python3
"""PyTorch peer: ResNet-50 by torch.distributed.pipelining over Gloo, two ranks of one core each.

The model is cut before layer3, or where --cut says. Inside the timed region of each rank: copy of
the rank's input (the images on the first, the labels on the last), zero_grad, schedule.step
(forward, loss, backward of all micro-batches and their sends and receives), optimizer.step. Steps
warm up, a barrier stands before the timed steps and none between them; the step time is the maximum
over the ranks. The loss of a micro-batch is its mean and the schedule divides the gradients by the
number of micro-batches (scale_grads, its default), so a step is the update of one process that
accumulates over the same micro-batches. Tensors between the stages are NCHW, because the library
demands the strides that contiguous tensors have; with --memory-format channels_last the stages
convert inside.
"""

from __future__ import annotations

import argparse

import rank_pair
import resnet_work
from rank_pair import RANKS


def parse_arguments() -> argparse.Namespace:
    """Return the checked command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedule", choices=("gpipe", "1f1b"), default="1f1b")
    parser.add_argument("--split", type=int, default=12, help="micro-batch size (default 12)")
    parser.add_argument(
        "--cut",
        choices=resnet_work.BLOCKS[1:],
        metavar="LAYER",
        default="layer3",
        help="the second stage's first layer (default layer3)",
    )
    parser.add_argument("--memory-format", choices=("nchw", "channels_last"), default="nchw")
    resnet_work.add_work_options(parser)
    rank_pair.add_rank_options(parser)
    arguments = parser.parse_args()
    rank_pair.check_split(parser, arguments)
    if arguments.batch // arguments.split < RANKS:
        parser.error(f"--split {arguments.split} must leave at least {RANKS} micro-batches")
    return arguments


def make_stage_module(rank: int, cut: str, memory_format: str, seed: int):
    """Return the rank's half of ResNet-50, in training mode."""
    import torch

    class ChannelsLastInside(torch.nn.Module):
        """Runs `layers` in channels_last between contiguous input and output."""

        def __init__(self, layers: torch.nn.Module) -> None:
            super().__init__()
            self.layers = layers.to(memory_format=torch.channels_last)

        def forward(self, value):
            return self.layers(value.contiguous(memory_format=torch.channels_last)).contiguous()

    model = resnet_work.make_model(seed)
    blocks = [*model.layer1, *model.layer2, *model.layer3, *model.layer4]
    boundary = resnet_work.BLOCKS.index(cut)
    if rank == 0:
        layers = [model.conv1, model.bn1, model.relu, model.maxpool, *blocks[:boundary]]
    else:
        layers = [*blocks[boundary:], model.avgpool, torch.nn.Flatten(1), model.fc]
    stage = torch.nn.Sequential(*layers)
    return ChannelsLastInside(stage) if memory_format == "channels_last" else stage


def run_rank(arguments: argparse.Namespace) -> None:
    """Trains one stage and print its JSON line; the last rank's holds the loss."""
    import torch
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    schedule_class = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}[arguments.schedule]
    module = make_stage_module(
        arguments.rank, arguments.cut, arguments.memory_format, arguments.seed
    )
    stage = PipelineStage(module, arguments.rank, RANKS, torch.device("cpu"))
    schedule = schedule_class(
        stage, n_microbatches=arguments.batch // arguments.split, loss_fn=torch.nn.MSELoss()
    )
    optimizer = resnet_work.make_optimizer(module)
    batch = resnet_work.make_batch(arguments.batch, arguments.image, arguments.seed)
    rank_pair.train_pipeline(arguments, schedule, batch, optimizer)


if __name__ == "__main__":
    parsed = parse_arguments()
    rank_pair.main(
        parsed,
        f"pipelining/{parsed.memory_format}/{parsed.schedule}/split:{parsed.split}",
        run_rank,
    )
