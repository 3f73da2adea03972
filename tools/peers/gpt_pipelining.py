#!/usr/bin/env python3
"""PyTorch peer: a GPT by torch.distributed.pipelining over Gloo, two ranks of one core each.

1f1b has two stages, interleaved four; the head weighs as much as two blocks, so the cuts are
uneven. Inside the timed region of each rank: copy of its tokens or targets, zero_grad,
schedule.step, optimizer.step. Steps warm up, a barrier stands before the timed steps and none
between them; the step time is the maximum over the ranks.
"""

from __future__ import annotations

import argparse

import gpt_work
import rank_pair

# First block of every stage but the first, of which the embedding is a part.
CUTS = {"1f1b": (5,), "interleaved": (3, 5, 7)}


def parse_arguments() -> argparse.Namespace:
    """Return the checked command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedule", choices=tuple(CUTS), default="1f1b")
    parser.add_argument("--split", type=int, default=1, help="micro-batch size (default 1)")
    gpt_work.add_work_options(parser)
    rank_pair.add_rank_options(parser)
    arguments = parser.parse_args()
    rank_pair.check_split(parser, arguments)
    return arguments


def make_stages(arguments: argparse.Namespace) -> list:
    """Return this rank's stages; stage s of n lies on rank s modulo the number of ranks."""
    import torch
    from torch.distributed.pipelining import PipelineStage

    layers = gpt_work.make_layers(arguments.seed)
    bounds = [0, *(1 + block for block in CUTS[arguments.schedule]), len(layers)]
    count = len(bounds) - 1
    return [
        PipelineStage(
            torch.nn.Sequential(*layers[bounds[index] : bounds[index + 1]]),
            index,
            count,
            torch.device("cpu"),
        )
        for index in range(arguments.rank, count, rank_pair.RANKS)
    ]


def run_rank(arguments: argparse.Namespace) -> None:
    """Trains this rank's stages and prints its JSON line; the last rank's holds the loss."""
    from torch.distributed.pipelining import Schedule1F1B, ScheduleInterleaved1F1B

    gpt_work.choose_matmul(arguments.matmul)
    stages = make_stages(arguments)
    micro_batches = arguments.batch // arguments.split
    if arguments.schedule == "1f1b":
        schedule = Schedule1F1B(stages[0], micro_batches, loss_fn=gpt_work.loss_of)
    else:
        schedule = ScheduleInterleaved1F1B(stages, micro_batches, loss_fn=gpt_work.loss_of)
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    optimizer = gpt_work.make_optimizer(parameters)
    batch = gpt_work.make_batch(arguments.batch, arguments.seed)
    rank_pair.train_pipeline(arguments, schedule, batch, optimizer)


if __name__ == "__main__":
    parsed = parse_arguments()
    rank_pair.main(
        parsed, f"gpt/pipelining/{parsed.schedule}/{parsed.matmul}/split:{parsed.split}", run_rank
    )
