"""Context parallelism by PyTorch's ring attention: keys and values circulate among the ranks.

The code is from torch.distributed.tensor.experimental. Its context_parallel() refuses CPU tensors.
Its functions take any attention kernel, and here they get the CPU kernel.
"""

import argparse

import torch
from torch import distributed
from torch.distributed.tensor.experimental._context_parallel import _attention as ring
from torch.distributed.tensor.experimental._context_parallel._load_balancer import (
    _HeadTailLoadBalancer,
)

from torch_peers import context_parallel

KERNEL = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
KERNEL_OF_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
POSITIONS = 2  # dimension of queries, keys and values [n, heads, positions, features]


class RingAttention(torch.autograd.Function):
    """Causal attention of this rank's queries with the keys and values of all ranks."""

    @staticmethod
    def forward(ctx, parts: torch.Tensor, group: distributed.ProcessGroup) -> torch.Tensor:
        """Return the output of this rank's positions, [n, positions, heads, features]."""
        query, key, value = parts.permute(3, 0, 2, 1, 4)
        output, logsumexp = ring._templated_ring_attention(
            group, POSITIONS, KERNEL, query, key, value, is_causal=True, dropout_p=0.0
        )
        ctx.group = group
        ctx.save_for_backward(query, key, value, output, logsumexp)
        return output.transpose(1, 2)

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient of query, key and value of this rank's positions."""
        gradients = ring._templated_ring_attention_backward(
            ctx.group,
            POSITIONS,
            KERNEL_OF_BACKWARD,
            gradient.transpose(1, 2),
            "grad_out",
            *ctx.saved_tensors,
            is_causal=True,
            dropout_p=0.0,
        )
        return torch.stack([each.transpose(1, 2) for each in gradients], dim=3), None


def choose_positions(arguments: argparse.Namespace, count: int) -> torch.Tensor:
    """Return this rank's positions out of `count`, and set their order in the ring attention."""
    zigzag = arguments.order == "zigzag"
    ring._cp_options.enable_load_balance = zigzag
    order = torch.arange(count)
    if zigzag:
        balancer = _HeadTailLoadBalancer(count, arguments.ranks, "cpu")
        order = balancer._generate_indices().flatten().long()
    return order.chunk(arguments.ranks)[arguments.rank]


def run(arguments: argparse.Namespace, job) -> dict:
    """Train one rank's part of the positions."""
    ring.set_rotate_method(arguments.rotate)
    ring._cp_options.convert_to_f32 = (
        False  # True would round float64, and leave float32 unchanged
    )
    positions = choose_positions(arguments, job.sequence)
    # A separate group, because the exchange of gradients would delay the attention.
    group = distributed.new_group()

    @torch.compiler.disable
    def mix(parts: torch.Tensor) -> torch.Tensor:
        return RingAttention.apply(parts, group)

    return context_parallel.run(arguments, job, positions, mix)
