#!/usr/bin/env python3
"""PyTorch peer: a GPT trained by one thread on one core.

Inside the timed region: copy of tokens and targets, zero_grad, forward, loss, backward,
optimizer.step. Steps warm up before the timed ones. Prints one JSON line.
"""

from __future__ import annotations

import argparse

import gpt_work
import resnet_work


def main() -> None:
    """Train and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    gpt_work.add_work_options(parser)
    arguments = parser.parse_args()

    resnet_work.use_one_thread_on(resnet_work.one_core_per_device(1)[0])
    import torch

    gpt_work.choose_matmul(arguments.matmul)
    model = torch.nn.Sequential(*gpt_work.make_layers(arguments.seed))
    batch = gpt_work.make_batch(arguments.batch, arguments.seed)
    optimizer = gpt_work.make_optimizer(model.parameters())
    peer = f"gpt/single/{arguments.matmul}"
    resnet_work.train(peer, arguments.steps, model, gpt_work.loss_of, batch, optimizer)


if __name__ == "__main__":
    main()
