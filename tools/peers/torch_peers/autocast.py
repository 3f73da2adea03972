"""One device in mixed precision: autocast's half format in products, parameters of float32.

Of float16 the loss is scaled by GradScaler, whose scale is dynamic.
"""

import argparse

import torch

from torch_peers.measurement import fetched, measure
from torch_peers.whole_model import compiled, make_batch, make_model


def run(arguments: argparse.Namespace, job) -> dict:
    """Train the whole model."""
    model = make_model(arguments, job)
    called = compiled(arguments, model)
    optimizer = job.make_optimizer(model.parameters())
    batch = make_batch(arguments, job)
    scaler = torch.amp.GradScaler(arguments.device, enabled=arguments.format == "float16")
    dtype = getattr(torch, arguments.format)

    def step() -> torch.Tensor:
        inputs, targets = (fetched(tensor, arguments.place) for tensor in batch)
        optimizer.zero_grad()
        with torch.autocast(arguments.device, dtype):
            loss = job.loss_of(called(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    answer = measure(arguments, step)
    return answer | ({"loss_scale": scaler.get_scale()} if scaler.is_enabled() else {})
