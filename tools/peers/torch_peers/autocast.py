"""One device in mixed precision: autocast's half format in products, parameters of float32.

Of float16 the loss is scaled by GradScaler, whose scale is dynamic.
"""

import argparse

import torch

from torch_peers.measurement import fetched, in_turn, measure
from torch_peers.whole_model import as_model, compiled, make_batches, make_layers


def run(arguments: argparse.Namespace, job) -> dict:
    """Train the whole model."""
    layers = make_layers(arguments, job)
    model = as_model(layers)
    called = compiled(arguments, model)
    optimizer = job.make_optimizer(model.parameters())
    batches = make_batches(arguments, job)
    turns = in_turn(batches)
    scaler = torch.amp.GradScaler(arguments.device, enabled=arguments.format == "float16")
    skips: list[bool] = []
    dtype = getattr(torch, arguments.format)

    def step() -> torch.Tensor:
        inputs, targets = (fetched(tensor, arguments.place) for tensor in next(turns))
        optimizer.zero_grad()
        with torch.autocast(arguments.device, dtype):
            loss = job.loss_of(called(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        before = scaler.get_scale()
        scaler.update()
        skips.append(scaler.get_scale() < before)
        return loss

    answer = measure(arguments, job, step, layers)
    answer["skipped"] = [step for step, skipped in enumerate(skips) if skipped]
    return answer | ({"loss_scale": scaler.get_scale()} if scaler.is_enabled() else {})
