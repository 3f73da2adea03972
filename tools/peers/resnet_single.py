#!/usr/bin/env python3
"""PyTorch peer: ResNet-50 trained by one thread on one core.

Inside the timed region: copy of the input and the labels (a plain clone of tensors that the user
holds in the model's memory format), zero_grad, forward, loss, backward, optimizer.step. Steps
warm up before the timed ones. Prints one JSON line.
"""

from __future__ import annotations

import argparse

import resnet_work


def main() -> None:
    """Train and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory-format", choices=("nchw", "channels_last"), default="nchw")
    resnet_work.add_work_options(parser)
    arguments = parser.parse_args()

    resnet_work.use_one_thread_on(resnet_work.one_core_per_device(1)[0])
    import torch

    images, labels = resnet_work.make_batch(arguments.batch, arguments.image, arguments.seed)
    model, images = resnet_work.in_memory_format(
        arguments.memory_format, resnet_work.make_model(arguments.seed), images
    )
    resnet_work.train(
        f"single/{arguments.memory_format}",
        arguments.steps,
        model,
        torch.nn.MSELoss(),
        (images, labels),
        resnet_work.make_optimizer(model),
    )


if __name__ == "__main__":
    main()
