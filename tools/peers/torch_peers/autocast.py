"""One device in mixed precision: autocast computes products in a half format.

Parameters are in float32. With float16, GradScaler scales the loss dynamically.
"""

import argparse
from itertools import pairwise

import torch

from torch_peers.measurement import fetched, in_turn, measure
from torch_peers.whole_model import as_model, compiled, make_batches, make_layers

FIRST_SCALE = 65536.0


def run(arguments: argparse.Namespace, job) -> dict:
    """Train the whole model."""
    layers = make_layers(arguments, job)
    model = as_model(layers)
    called = compiled(arguments, model)
    optimizer = job.make_optimizer(model.parameters())
    batches = make_batches(arguments, job)
    turns = in_turn(batches)
    scaler = torch.amp.GradScaler(arguments.device, FIRST_SCALE, enabled=arguments.format == "float16")
    scales: list[torch.Tensor] = []
    dtype = getattr(torch, arguments.format)

    def step() -> torch.Tensor:
        inputs, targets = (fetched(tensor, arguments.place) for tensor in next(turns))
        optimizer.zero_grad()
        with torch.autocast(arguments.device, dtype):
            loss = job.loss_of(called(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if scaler.is_enabled():
            scales.append(scaler._scale.clone())  # get_scale() would wait for a GPU
        return loss

    answer = measure(arguments, job, step, layers)
    after = [FIRST_SCALE, *(scale.item() for scale in scales)]
    answer["skipped"] = [step for step, (old, new) in enumerate(pairwise(after)) if new < old]
    return answer | ({"loss_scale": scaler.get_scale()} if scaler.is_enabled() else {})
