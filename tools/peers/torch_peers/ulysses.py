"""Context parallelism by exchanged heads, the method of DeepSpeed-Ulysses (Jacobs et al. 2023).

Before attention each rank gets all positions of a share of the heads. After attention it gets all
heads of its positions. One all-to-all carries query, key and value together.
"""

import argparse

import torch
from torch import distributed

from torch_peers import context_parallel
from torch_peers.gpt import causal


class Exchange(torch.autograd.Function):
    """Sends part r of a tensor [ranks, ...] to rank r, and gradients back to their ranks."""

    @staticmethod
    def forward(ctx, parts: torch.Tensor, group: distributed.ProcessGroup) -> torch.Tensor:
        """Return the parts that the ranks have for this one, in the order of the ranks."""
        ctx.group = group
        return exchanged(parts, group)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient of the parts that this rank sent."""
        return exchanged(gradient, ctx.group), None


def exchanged(parts: torch.Tensor, group: distributed.ProcessGroup) -> torch.Tensor:
    """Return part r of each rank's tensor on rank r, without a gradient."""
    sent = parts.contiguous()
    received = torch.empty_like(sent)
    distributed.all_to_all_single(received, sent, group=group)
    return received


class ExchangedHeads:
    """Causal attention over all positions with a share of the heads.

    It has a separate process group, because the exchange of gradients would delay the attention.
    """

    def __init__(self) -> None:
        self.group = distributed.new_group()
        self.ranks = self.group.size()

    @torch.compiler.disable
    def __call__(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the output of this rank's positions, [n, positions, heads, features]."""
        shares = parts.unflatten(2, (self.ranks, -1)).movedim(2, 0)
        # [ranks, n, positions, heads, 3, features], of this rank's heads
        received = Exchange.apply(shares, self.group)
        mixed = causal(received.movedim(0, 1).flatten(1, 2))
        own = mixed.unflatten(1, (self.ranks, -1)).movedim(1, 0)
        # [ranks, n, positions, heads, features], of this rank's positions
        return Exchange.apply(own, self.group).movedim(0, 2).flatten(2, 3)


def run(arguments: argparse.Namespace, job) -> dict:
    """Train one rank's contiguous part of the positions."""
    positions = torch.arange(job.sequence).chunk(arguments.ranks)[arguments.rank]
    return context_parallel.run(arguments, job, positions, ExchangedHeads())
