"""Context parallelism by exchanged heads, the method of DeepSpeed-Ulysses (Jacobs et al. 2023).

Before attention each rank gets all positions of a share of the heads; after it, all heads of its
own positions. One all-to-all carries query, key and value together.
"""

import argparse

import torch
from torch import distributed

from torch_peers import context_parallel
from torch_peers.gpt import causal


class Exchange(torch.autograd.Function):
    """Sends part r of a tensor [ranks, ...] to rank r; gradients take the same ways back."""

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

    Its group is not that of the gradients, whose exchange would delay it.
    """

    def __init__(self) -> None:
        self.group = distributed.new_group()
        self.ranks = self.group.size()

    @torch.compiler.disable
    def __call__(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the output of the own positions, [n, positions, heads, features]."""
        shares = parts.unflatten(2, (self.ranks, -1)).movedim(2, 0)
        # [ranks, n, positions, heads, 3, features], of this rank's heads
        received = Exchange.apply(shares, self.group)
        mixed = causal(received.movedim(0, 1).flatten(1, 2))
        own = mixed.unflatten(1, (self.ranks, -1)).movedim(1, 0)
        # [ranks, n, positions, heads, features], of this rank's positions
        return Exchange.apply(own, self.group).movedim(0, 2).flatten(2, 3)


def run(arguments: argparse.Namespace, job) -> dict:
    """Train one rank's run of the positions."""
    positions = torch.arange(job.sequence).chunk(arguments.ranks)[arguments.rank]
    return context_parallel.run(arguments, job, positions, ExchangedHeads())
