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

    model = resnet_work.make_model(arguments.seed)
    host_images, host_labels = resnet_work.make_batch(
        arguments.batch, arguments.image, arguments.seed
    )
    if arguments.memory_format == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        host_images = host_images.contiguous(memory_format=torch.channels_last)
    optimizer = resnet_work.make_optimizer(model)
    mean_squared_error = torch.nn.MSELoss()
    losses = []

    def step() -> None:
        images, labels = host_images.clone(), host_labels.clone()
        optimizer.zero_grad()
        loss = mean_squared_error(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    resnet_work.warm_up(step)
    step_ms = resnet_work.timed_steps(step, arguments.steps)
    resnet_work.print_result(f"single/{arguments.memory_format}", step_ms, losses[-1].item())


if __name__ == "__main__":
    main()
