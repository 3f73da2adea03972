"""nn.DataParallel, which has replicas on GPUs; on CPUs it runs its module on one device.

The first GPU has the batch, scatters it and gathers the outputs. The one device on CPUs has all
cores of the job, as the threads of one process.
"""

import argparse

import torch

from torch_peers.measurement import train
from torch_peers.whole_model import as_model, compiled, make_batches, make_layers


def run(arguments: argparse.Namespace, job) -> dict:
    """Train the model that nn.DataParallel wraps; the answer has the number of devices.

    device_ids are GPUs, and are empty without a GPU.
    """
    layers = make_layers(arguments, job)
    model = as_model(layers)
    optimizer = job.make_optimizer(model.parameters())
    batches = make_batches(arguments, job)
    devices = arguments.placement.devices
    gpus = None if arguments.device == "cpu" else [torch.device(name) for name in devices]
    wrapped = torch.nn.DataParallel(compiled(arguments, model), gpus)
    answer = train(arguments, job, layers, wrapped, batches, optimizer)
    return {**answer, "devices": max(1, len(wrapped.device_ids)), "threads": torch.get_num_threads()}
