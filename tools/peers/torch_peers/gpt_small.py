"""The language-model job of the PyTorch peers: Stratagem's gpt-small with AdamW.

Float32, 8 blocks of 512 features, 8 heads, sequence 128, vocabulary 8192, untied head,
cross-entropy over random tokens made once from a seed. The rows of a query-key-value matrix are
ordered by head, so that a run of them is whole heads.
"""

import argparse

import torch
from torch import nn

FEATURES = 512
BLOCKS = 8
HEADS = 8
SEQUENCE = 128
VOCABULARY = 8192
OPTIMIZER = torch.optim.AdamW
OPTIMIZER_OPTIONS = {"lr": 0.001, "weight_decay": 0.0, "fused": True}


class Embedding(nn.Module):
    """Token plus position."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, FEATURES)
        self.position = nn.Embedding(SEQUENCE, FEATURES)

    def forward(self, tokens):
        """Return [batch, sequence, FEATURES]."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.token(tokens) + self.position(positions)


class Block(nn.Module):
    """Attention and MLP, each after a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(FEATURES)
        self.qkv = nn.Linear(FEATURES, 3 * FEATURES)
        self.projection = nn.Linear(FEATURES, FEATURES)
        self.norm2 = nn.LayerNorm(FEATURES)
        self.up = nn.Linear(FEATURES, 4 * FEATURES)
        self.down = nn.Linear(4 * FEATURES, FEATURES)

    def forward(self, x):
        """Return a tensor of the shape of `x`."""
        wide = self.qkv(self.norm1(x))
        n, sequence, _ = wide.shape
        parts = wide.view(n, sequence, -1, 3, FEATURES // HEADS).permute(3, 0, 2, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(n, sequence, -1))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def make_layers(seed: int) -> dict[str, nn.Module]:
    """Return the layers in order, by the names that a cut gives them."""
    torch.manual_seed(seed)
    head = nn.Linear(FEATURES, VOCABULARY, bias=False)
    blocks = {f"blocks.{index}": Block() for index in range(BLOCKS)}
    return {"embedding": Embedding(), **blocks, "norm": nn.LayerNorm(FEATURES), "head": head}


def make_batch(arguments: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (tokens, targets), both [batch, SEQUENCE]."""
    generator = torch.Generator().manual_seed(arguments.seed)
    size = (arguments.batch, SEQUENCE + 1)
    drawn = torch.randint(VOCABULARY, size, generator=generator)
    return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()


def loss_of(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy over all positions."""
    return nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())


def make_optimizer(parameters) -> torch.optim.Optimizer:
    """Return the job's optimizer, fused as Stratagem's is."""
    return OPTIMIZER(parameters, **OPTIMIZER_OPTIONS)
