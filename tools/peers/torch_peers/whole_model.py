"""A model that is not cut, as the user of one device or of a data-parallel job holds it."""

import argparse

import torch


def make_model(arguments: argparse.Namespace, job) -> torch.nn.Sequential:
    """Return the job's model on this rank's device, in the memory format asked for."""
    model = torch.nn.Sequential(*job.make_layers(arguments.seed).values()).to(arguments.place)
    last = arguments.memory_format == "channels_last"
    return model.to(memory_format=torch.channels_last) if last else model


def in_memory_format(arguments: argparse.Namespace, inputs, targets) -> tuple:
    """Return the inputs in the memory format asked for, and the targets."""
    if arguments.memory_format == "channels_last":
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    return inputs, targets


def held(arguments: argparse.Namespace, *tensors: torch.Tensor) -> tuple:
    """Return the tensors as they lie before a step: page-locked where a GPU copies them."""
    return tensors if arguments.device == "cpu" else tuple(t.pin_memory() for t in tensors)


def make_batch(arguments: argparse.Namespace, job) -> tuple:
    """Return this rank's part of the inputs, in the memory format asked for, and of the targets."""
    parts = (whole.chunk(arguments.ranks)[arguments.rank] for whole in job.make_batch(arguments))
    return held(arguments, *in_memory_format(arguments, *(part.clone() for part in parts)))


def compiled(arguments: argparse.Namespace, model: torch.nn.Module):
    """Return the model, compiled where the user asks for it."""
    return torch.compile(model) if arguments.compile else model
