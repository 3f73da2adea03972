"""The language-model jobs of the PyTorch peers: Stratagem's GPTs with AdamW.

Float32, untied head, cross-entropy over random tokens made once from a seed. The rows of a
query-key-value matrix are ordered by head, so that a run of them is whole heads.
"""

import argparse
from dataclasses import dataclass

import torch
from torch import nn


class Embedding(nn.Module):
    """Token plus position."""

    def __init__(self, size: "Gpt") -> None:
        super().__init__()
        self.token = nn.Embedding(size.vocabulary, size.features)
        self.position = nn.Embedding(size.sequence, size.features)

    def forward(self, tokens):
        """Return [batch, sequence, features]."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.token(tokens) + self.position(positions)


class Block(nn.Module):
    """Attention and MLP, each after a normalisation."""

    def __init__(self, size: "Gpt") -> None:
        super().__init__()
        features = size.features
        self.head_features = features // size.heads
        self.norm1 = nn.LayerNorm(features)
        self.qkv = nn.Linear(features, 3 * features)
        self.projection = nn.Linear(features, features)
        self.norm2 = nn.LayerNorm(features)
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, features)

    def forward(self, x):
        """Return a tensor of the shape of `x`."""
        wide = self.qkv(self.norm1(x))
        n, sequence, _ = wide.shape
        parts = wide.view(n, sequence, -1, 3, self.head_features).permute(3, 0, 2, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(n, sequence, -1))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


@dataclass(frozen=True)
class Gpt:
    """A job by its sizes."""

    features: int
    blocks: int
    heads: int
    sequence: int
    vocabulary: int

    OPTIMIZER = torch.optim.AdamW
    OPTIMIZER_OPTIONS = {"lr": 0.001, "weight_decay": 0.0, "fused": True}  # noqa: RUF012

    def make_layers(self, seed: int) -> dict[str, nn.Module]:
        """Return the layers in order, by the names that a cut gives them."""
        torch.manual_seed(seed)
        head = nn.Linear(self.features, self.vocabulary, bias=False)
        blocks = {f"blocks.{index}": Block(self) for index in range(self.blocks)}
        norm = nn.LayerNorm(self.features)
        return {"embedding": Embedding(self), **blocks, "norm": norm, "head": head}

    def make_batch(self, arguments: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (tokens, targets), both [batch, sequence]."""
        generator = torch.Generator().manual_seed(arguments.seed)
        size = (arguments.batch, self.sequence + 1)
        drawn = torch.randint(self.vocabulary, size, generator=generator)
        return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()

    def loss_of(self, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy over all positions."""
        return nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())

    def make_optimizer(self, parameters) -> torch.optim.Optimizer:
        """Return the job's optimizer, fused as Stratagem's is."""
        return self.OPTIMIZER(parameters, **self.OPTIMIZER_OPTIONS)


JOBS = {
    "gpt-small": Gpt(features=512, blocks=8, heads=8, sequence=128, vocabulary=8192),
    "gpt-tiny": Gpt(features=64, blocks=2, heads=4, sequence=32, vocabulary=256),
}
