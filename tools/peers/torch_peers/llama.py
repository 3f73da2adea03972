"""The Llama jobs of the PyTorch peers: Stratagem's Llamas with AdamW.

The rows of a query-key-value matrix are ordered by group: its query heads, its key head, its value
head. Stratagem has the same order.
"""

from dataclasses import dataclass

import torch
from torch import nn

from torch_peers.gpt import Gpt


def rotated(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Return heads [n, heads, sequence, features] turned by `angles` [sequence, features]."""
    first, second = x.chunk(2, dim=3)
    return x * angles.cos() + torch.cat((-second, first), dim=3) * angles.sin()


class Attention(nn.Module):
    """Causal attention of query heads that share keys and values in groups."""

    def __init__(self, size: "Llama") -> None:
        super().__init__()
        self.queries = size.heads // size.groups
        self.head_features = size.features // size.heads
        rows = (size.heads + 2 * size.groups) * self.head_features
        self.qkv = nn.Linear(size.features, rows, bias=False)
        self.projection = nn.Linear(size.features, size.features, bias=False)
        steps = torch.arange(0, self.head_features, 2, dtype=torch.float64) / self.head_features
        angles = torch.outer(torch.arange(size.sequence, dtype=torch.float64), 10_000.0**-steps)
        angles = torch.cat((angles, angles), dim=1).float()
        self.register_buffer("angles", angles, persistent=False)

    def forward(self, x):
        """Return a tensor of the shape of `x`."""
        n, sequence, _ = x.shape
        wide = self.qkv(x).view(n, sequence, -1, self.queries + 2, self.head_features)
        query = wide[:, :, :, : self.queries].flatten(2, 3).transpose(1, 2)
        key, value = (wide[:, :, :, self.queries + part].transpose(1, 2) for part in (0, 1))
        angles = self.angles[:sequence]
        mixed = nn.functional.scaled_dot_product_attention(
            rotated(query, angles), rotated(key, angles), value, is_causal=True, enable_gqa=True
        )
        return self.projection(mixed.transpose(1, 2).reshape(n, sequence, -1))


class Mlp(nn.Module):
    """Two matrices with a gated SiLU between them."""

    def __init__(self, size: "Llama") -> None:
        super().__init__()
        self.gate_up = nn.Linear(size.features, 2 * size.hidden, bias=False)
        self.down = nn.Linear(size.hidden, size.features, bias=False)

    def forward(self, x):
        """Return a tensor of the shape of `x`."""
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(nn.functional.silu(gate) * up)


class Block(nn.Module):
    """Attention and MLP, each after a normalisation. The names match Stratagem's layers."""

    def __init__(self, size: "Llama") -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(size.features, eps=1e-5)
        self.attention = Attention(size)
        self.norm2 = nn.RMSNorm(size.features, eps=1e-5)
        self.mlp = Mlp(size)

    def forward(self, x):
        """Return a tensor of the shape of `x`."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Embedding(nn.Module):
    """The token embedding."""

    def __init__(self, size: "Llama") -> None:
        super().__init__()
        self.token = nn.Embedding(size.vocabulary, size.features)

    def forward(self, tokens):
        """Return [batch, sequence, features]."""
        return self.token(tokens)


@dataclass(frozen=True, kw_only=True)
class Llama(Gpt):
    """A job, defined by the sizes of its model, with the batches, loss and optimizer of a GPT."""

    groups: int
    hidden: int

    def make_layers(self, seed: int) -> dict[str, nn.Module]:
        """Return the layers in order, by the names that a cut gives them."""
        torch.manual_seed(seed)
        head = nn.Linear(self.features, self.vocabulary, bias=False)
        blocks = {f"blocks.{index}": Block(self) for index in range(self.blocks)}
        norm = nn.RMSNorm(self.features, eps=1e-5)
        return {"embedding": Embedding(self), **blocks, "norm": norm, "head": head}

    def imported(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor unchanged: Stratagem's rows have this model's order."""
        return tensor

    def exported(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor unchanged: Stratagem's rows have this model's order."""
        return tensor


JOBS = {
    "llama-small": Llama(
        features=512, blocks=8, heads=8, groups=4, hidden=1408, sequence=128, vocabulary=8192
    ),
    "llama-tiny": Llama(
        features=64, blocks=2, heads=4, groups=2, hidden=176, sequence=32, vocabulary=256
    ),
}
