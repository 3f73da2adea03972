"""nn.DataParallel, which has no replicas but on GPUs: on CPUs it is its module, on one device.

That device has all the cores of the job, as the threads of one process.
"""

import argparse

import torch

from torch_peers.measurement import train
from torch_peers.whole_model import compiled, make_batch, make_model


def run(arguments: argparse.Namespace, job) -> dict:
    """Train the model that nn.DataParallel wraps; the answer says on how many devices."""
    model = make_model(arguments, job)
    optimizer = job.make_optimizer(model.parameters())
    batch = make_batch(arguments, job)
    wrapped = torch.nn.DataParallel(compiled(arguments, model))
    answer = train(arguments, wrapped, job.loss_of, batch, optimizer)
    return {**answer, "devices": max(1, len(wrapped.device_ids)), "threads": torch.get_num_threads()}
