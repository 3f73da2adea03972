"""A model that is not cut, for one device or a data-parallel job."""

import argparse
from collections.abc import Mapping

import torch


FORMATS = {"nchw": torch.contiguous_format, "channels_last": torch.channels_last}


def make_layers(arguments: argparse.Namespace, job) -> dict[str, torch.nn.Module]:
    """Return the job's layers on this rank's device, in the memory format of the options."""
    memory_format = FORMATS[arguments.memory_format]
    return {
        name: layer.to(arguments.place).to(memory_format=memory_format)
        for name, layer in job.make_layers(arguments.seed).items()
    }


def as_model(layers: Mapping[str, torch.nn.Module]) -> torch.nn.Sequential:
    """Return the layers in their order as one module."""
    return torch.nn.Sequential(*layers.values())


def in_memory_format(arguments: argparse.Namespace, inputs, targets) -> tuple:
    """Return the inputs in the memory format of the options, and the targets."""
    is_image = inputs.dim() == 4
    memory_format = FORMATS[arguments.memory_format] if is_image else torch.contiguous_format
    return inputs.contiguous(memory_format=memory_format), targets


def held(arguments: argparse.Namespace, *tensors: torch.Tensor) -> tuple:
    """Return the tensors as they are kept between steps: page-locked if a GPU copies them."""
    return tensors if arguments.device == "cpu" else tuple(t.pin_memory() for t in tensors)


def make_batches(arguments: argparse.Namespace, job) -> list[tuple]:
    """Return this rank's part of each batch: inputs in the chosen memory format, and targets."""

    def part_of(whole: torch.Tensor) -> torch.Tensor:
        return whole.chunk(arguments.ranks)[arguments.rank].clone()

    return [
        held(arguments, *in_memory_format(arguments, *map(part_of, batch)))
        for batch in job.make_batches(arguments)
    ]


def compiled(arguments: argparse.Namespace, model: torch.nn.Module):
    """Return the model, compiled if --compile is given."""
    return torch.compile(model) if arguments.compile else model
