"""The toy of `stratagem train --preset toy_sgd`: 2048 samples of 20 numbers, one target, SGD."""

import argparse
import time

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from torch_peers.measurement import loaded_allocator, peak_resident_bytes, slowest

SAMPLES, FEATURES, BATCH, LEARNING_RATE = 2048, 20, 32, 0.01


def make_loader(arguments: argparse.Namespace) -> tuple[DataLoader, DistributedSampler | None]:
    """Return the loader of one rank, and its sampler if there are several ranks."""
    torch.manual_seed(arguments.seed)
    data = TensorDataset(torch.rand(SAMPLES, FEATURES), torch.rand(SAMPLES, 1))
    sampler = DistributedSampler(data, seed=arguments.seed) if arguments.ranks > 1 else None
    order = sampler or RandomSampler(data)
    if arguments.fetch == "batches":
        batches = BatchSampler(order, BATCH, drop_last=False)
        return DataLoader(data, sampler=batches, batch_size=None), sampler
    return DataLoader(data, BATCH, sampler=order), sampler


def run(arguments: argparse.Namespace) -> dict:
    """Train all epochs.

    The `step_ms` of the answer are the milliseconds per step, with loader and loop, one for each
    epoch.
    """
    loader, sampler = make_loader(arguments)
    layer = torch.nn.Linear(FEATURES, 1)
    model = DistributedDataParallel(layer) if sampler else layer
    optimizer = torch.optim.SGD(layer.parameters(), lr=LEARNING_RATE)
    step_ms = []
    for epoch in range(arguments.epochs):
        start = time.perf_counter()
        if sampler:
            sampler.set_epoch(epoch)
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
        step_ms.append(1e3 * slowest(time.perf_counter() - start) / len(loader))
    if sampler:
        distributed.barrier()
    return {
        "step_ms": step_ms,
        "peak_resident_bytes": peak_resident_bytes(),
        "loss": loss.item(),
        "losses": [loss.item()],
        "steps_an_epoch": len(loader),
        "torch": torch.__version__,
        "allocator": loaded_allocator(),
    }
