"""The language-model job of the PyTorch peers: Stratagem's gpt-small with AdamW.

Float32, 8 blocks of 512 features, 8 heads, sequence 128, vocabulary 8192, untied head,
cross-entropy over random tokens made once from a seed. The rows of a query-key-value matrix are
ordered by head, so that a run of them is whole heads.
"""

from __future__ import annotations

import argparse
import os

FEATURES = 512
BLOCKS = 8
HEADS = 8
SEQUENCE = 128
VOCABULARY = 8192
LEARNING_RATE = 0.001


def add_work_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every peer of this job understands."""
    parser.add_argument("--batch", type=int, default=8, help="samples in a step (default 8)")
    parser.add_argument("--steps", type=int, default=2, help="timed steps (default 2)")
    parser.add_argument("--seed", type=int, default=1, help="of weights and data (default 1)")
    parser.add_argument(
        "--matmul",
        choices=("installed", "onednn"),
        default="installed",
        help="onednn: float32 products by oneDNN, through set_float32_matmul_precision",
    )


def choose_matmul(matmul: str) -> None:
    """Switch oneDNN's float32 products on where asked.

    The precision that sends products to oneDNN also allows it bfloat16 units, where the processor
    has them: another arithmetic than this comparison's, 2.5e-3 off in place of 1e-6. The bound on
    the instruction set, read at oneDNN's first product, leaves it the float32 units.
    """
    import torch

    if matmul == "onednn":
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE"
        torch.set_float32_matmul_precision("medium")


def make_layers(seed: int) -> list:
    """Return the model as a list of modules: embedding, blocks, norm, head."""
    import torch
    from torch import nn

    class Embedding(nn.Module):
        """Token plus position."""

        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(VOCABULARY, FEATURES)
            self.position = nn.Embedding(SEQUENCE, FEATURES)

        def forward(self, tokens):
            return self.token(tokens) + self.position(torch.arange(tokens.shape[1]))

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
            wide = self.qkv(self.norm1(x))
            n, sequence, _ = wide.shape
            parts = wide.view(n, sequence, -1, 3, FEATURES // HEADS).permute(3, 0, 2, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + self.projection(mixed.transpose(1, 2).reshape(n, sequence, -1))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    torch.manual_seed(seed)
    head = nn.Linear(FEATURES, VOCABULARY, bias=False)
    return [Embedding(), *(Block() for _ in range(BLOCKS)), nn.LayerNorm(FEATURES), head]


def make_batch(batch: int, seed: int):
    """Return (tokens, targets), both [batch, SEQUENCE]."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(VOCABULARY, (batch, SEQUENCE + 1), generator=generator)
    return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()


def loss_of(output, targets):
    """Return the mean cross-entropy over all positions."""
    import torch

    return torch.nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())


def make_optimizer(parameters):
    """Return the job's optimizer, fused as Stratagem's is."""
    import torch

    return torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.0, fused=True)
