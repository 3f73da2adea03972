"""Blocks that keep only their inputs, and repeat their forward passes in the backward pass.

The method is Chen, Xu, Zhang, Guestrin 2016, "Training Deep Nets with Sublinear Memory Cost"; the
code is PyTorch's torch.utils.checkpoint. No checkpoint saves the state of the random generator,
because the models have no random layers.
"""

import argparse
from collections.abc import Mapping

import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from torch_peers.whole_model import as_model

BLOCK = "blocks."  # prefix of a transformer block's name


class Recomputed(torch.nn.Module):
    """The layers of a language model in their order, with the blocks in checkpoints.

    Without `segments` each block is a checkpoint. With `segments`, checkpoint_sequential cuts the
    blocks into that many runs, and each run but the last is a checkpoint. The last run keeps its
    activations, because its backward pass comes first. A `reentrant` checkpoint repeats its whole
    forward pass inside a separate backward pass. Another checkpoint stops as soon as it has the
    tensors that the backward pass reads.
    """

    def __init__(
        self, layers: Mapping[str, torch.nn.Module], segments: int | None, reentrant: bool
    ) -> None:
        super().__init__()
        blocks = [name for name in layers if name.startswith(BLOCK)]
        first = [*layers].index(blocks[0])
        end = first + len(blocks)
        parts = [*layers.values()]
        self.before = torch.nn.Sequential(*parts[:first])
        self.blocks = torch.nn.Sequential(*parts[first:end])
        self.after = torch.nn.Sequential(*parts[end:])
        self.segments = segments
        self.how = {"use_reentrant": reentrant, "preserve_rng_state": False}

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits [batch, sequence, vocabulary] of tokens [batch, sequence]."""
        x = self.before(tokens)
        if self.segments is not None:
            return self.after(checkpoint_sequential(self.blocks, self.segments, x, **self.how))
        for block in self.blocks:
            x = checkpoint(block, x, **self.how)
        return self.after(x)


def recomputing(
    arguments: argparse.Namespace, layers: Mapping[str, torch.nn.Module]
) -> torch.nn.Module:
    """Return the layers as one module, with checkpoints unless --recompute is none."""
    if arguments.recompute == "none":
        return as_model(layers)
    return Recomputed(layers, arguments.segments, arguments.reentrant)
