"""Writes reference_llama.json: what PyTorch computes for llama-tiny, for llama_test.cpp.

Run by hand, with torch installed, when the checks change:
    python tests/models/make_llama_reference.py

Parameters and tokens are a formula of their position; see make_reference.py. Everything is float64.
"""

import torch
from make_gpt_reference import write_reference
from torch import nn

FEATURES, BLOCKS, GROUPS, QUERIES, HIDDEN, SEQUENCE, VOCABULARY = 64, 2, 2, 2, 176, 32, 256
HEAD = FEATURES // (GROUPS * QUERIES)
BASE = 10_000.0


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Rotate [n, heads, sequence, HEAD] by position, as Hugging Face's Llama does."""
    frequencies = 1 / BASE ** (torch.arange(0, HEAD, 2, dtype=torch.float64) / HEAD)
    angles = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), frequencies)
    angles = torch.cat((angles, angles), dim=1)
    first, second = x.chunk(2, dim=3)
    return x * angles.cos() + torch.cat((-second, first), dim=3) * angles.sin()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(FEATURES, GROUPS * (QUERIES + 2) * HEAD, bias=False)
        self.projection = nn.Linear(FEATURES, FEATURES, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, sequence, _ = x.shape
        wide = self.qkv(x).reshape(n, sequence, GROUPS, QUERIES + 2, HEAD)
        query = wide[:, :, :, :QUERIES].flatten(2, 3).transpose(1, 2)
        key, values = (
            wide[:, :, :, QUERIES + part].repeat_interleave(QUERIES, dim=2).transpose(1, 2)
            for part in (0, 1)
        )
        scores = rotated(query) @ rotated(key).transpose(2, 3) / HEAD**0.5
        hidden = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(hidden, float("-inf")).softmax(dim=3) @ values
        return self.projection(mixed.transpose(1, 2).reshape(n, sequence, FEATURES))


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_up = nn.Linear(FEATURES, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, FEATURES, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=2)
        return self.down(nn.functional.silu(gate) * up)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(FEATURES, eps=1e-5)
        self.attention = Attention()
        self.norm2 = nn.RMSNorm(FEATURES, eps=1e-5)
        self.mlp = Mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Embedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, FEATURES)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.token(tokens)


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = Embedding()
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.RMSNorm(FEATURES, eps=1e-5)
        self.head = nn.Linear(FEATURES, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.embedding(tokens))))


if __name__ == "__main__":
    write_reference(Llama().double(), "reference_llama.json", SEQUENCE, VOCABULARY)
