"""nn.DataParallel, which has no replicas but on GPUs: on CPUs it is its module, on one device.

On GPUs the first of them has the batch, scatters it and gathers the outputs. The one device of CPUs
has all the cores of the job, as the threads of one process.
"""

import argparse

import torch

from torch_peers.measurement import train
from torch_peers.whole_model import as_model, compiled, make_batches, make_layers


def run(arguments: argparse.Namespace, job) -> dict:
    """Train the model that nn.DataParallel wraps; the answer says on how many devices.

    Its device_ids are GPUs, or nothing where there is none.
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
