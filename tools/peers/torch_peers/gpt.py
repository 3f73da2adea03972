"""The language-model jobs of the PyTorch peers: Stratagem's GPTs with AdamW.

The jobs have float32, an untied head, and cross-entropy over random tokens. The rows of a
query-key-value matrix are ordered by head, so that a part of the rows has whole heads. In Stratagem
all queries come first.
"""

import argparse
from dataclasses import dataclass

import torch
from torch import nn

from torch_peers.measurement import BATCHES


class Embedding(nn.Module):
    """Token plus position embedding. `positions` is None for 0, 1, 2 and so on."""

    def __init__(self, size: "Gpt") -> None:
        super().__init__()
        self.positions = None
        self.token = nn.Embedding(size.vocabulary, size.features)
        self.position = nn.Embedding(size.longest or size.sequence, size.features)

    def forward(self, tokens):
        """Return [batch, sequence, features]."""
        positions = self.positions
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.token(tokens) + self.position(positions)


def causal(parts: torch.Tensor) -> torch.Tensor:
    """Return attention's output [n, positions, heads, features].

    `parts` has query, key and value: [n, positions, heads, 3, features].
    """
    query, key, value = parts.permute(3, 0, 2, 1, 4)
    mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return mixed.transpose(1, 2)


class Attention(nn.Module):
    """Causal attention. `mix` computes the output from query, key and value of the positions."""

    def __init__(self, size: "Gpt") -> None:
        super().__init__()
        self.head_features = size.features // size.heads
        self.mix = causal
        self.qkv = nn.Linear(size.features, 3 * size.features)
        self.projection = nn.Linear(size.features, size.features)

    def forward(self, x):
        """Return a tensor of the shape of `x`."""
        wide = self.qkv(x)
        n, sequence, _ = wide.shape
        parts = wide.view(n, sequence, -1, 3, self.head_features)
        return self.projection(self.mix(parts).reshape(n, sequence, -1))


class Mlp(nn.Module):
    """Two matrices with a GELU between them."""

    def __init__(self, size: "Gpt") -> None:
        super().__init__()
        self.up = nn.Linear(size.features, 4 * size.features)
        self.down = nn.Linear(4 * size.features, size.features)

    def forward(self, x):
        """Return a tensor of the shape of `x`."""
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    """Attention and MLP, each after a normalisation. The names match Stratagem's layers."""

    def __init__(self, size: "Gpt") -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(size.features)
        self.attention = Attention(size)
        self.norm2 = nn.LayerNorm(size.features)
        self.mlp = Mlp(size)

    def forward(self, x):
        """Return a tensor of the shape of `x`."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


@dataclass(frozen=True)
class Gpt:
    """A job, defined by the sizes of its model."""

    features: int
    blocks: int
    heads: int
    sequence: int
    vocabulary: int
    longest: int = 0  # rows of the position embedding; 0: as many as the sequence has

    OPTIMIZER = torch.optim.AdamW
    OPTIMIZER_OPTIONS = {"lr": 0.001, "weight_decay": 0.0, "fused": True}  # noqa: RUF012

    def make_layers(self, seed: int) -> dict[str, nn.Module]:
        """Return the layers in order, by the names that a cut gives them."""
        torch.manual_seed(seed)
        head = nn.Linear(self.features, self.vocabulary, bias=False)
        blocks = {f"blocks.{index}": Block(self) for index in range(self.blocks)}
        norm = nn.LayerNorm(self.features)
        return {"embedding": Embedding(self), **blocks, "norm": norm, "head": head}

    def make_batches(self, arguments: argparse.Namespace) -> list[tuple]:
        """Return batches of (tokens, targets), both [batch, sequence]."""
        generator = torch.Generator().manual_seed(arguments.seed)
        size = (BATCHES, arguments.batch, self.sequence + 1)
        drawn = torch.randint(self.vocabulary, size, generator=generator)
        return [(batch[:, :-1].contiguous(), batch[:, 1:].contiguous()) for batch in drawn]

    def loss_of(self, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy over all positions."""
        return nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())

    def imported(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """Return an entry of Stratagem's state in this model's order of rows."""
        if ".attention.qkv." not in name:
            return tensor
        rows = tensor.unflatten(0, (3, self.heads, self.features // self.heads))
        return rows.transpose(0, 1).flatten(0, 2)

    def exported(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """Return an entry of this model's state in Stratagem's order of rows."""
        if ".attention.qkv." not in name:
            return tensor
        rows = tensor.unflatten(0, (self.heads, 3, self.features // self.heads))
        return rows.transpose(0, 1).flatten(0, 2)

    def make_optimizer(self, parameters) -> torch.optim.Optimizer:
        """Return the job's optimizer, fused as Stratagem's is."""
        return self.OPTIMIZER(parameters, **self.OPTIMIZER_OPTIONS)


JOBS = {
    "gpt-small": Gpt(features=512, blocks=8, heads=8, sequence=128, vocabulary=8192),
    "gpt-long": Gpt(
        features=512, blocks=4, heads=8, sequence=4096, vocabulary=256, longest=16384
    ),
    "gpt-tiny": Gpt(features=64, blocks=2, heads=4, sequence=32, vocabulary=256),
}
