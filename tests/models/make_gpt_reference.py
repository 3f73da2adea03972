"""Writes reference_gpt.json: what PyTorch computes for gpt-tiny, for gpt_test.cpp.

Run by hand, with torch installed, when the checks change:
    python tests/models/make_gpt_reference.py

Parameters and tokens are a formula of their position; see make_reference.py. Everything is float64.
"""

import json
from pathlib import Path

import torch
from make_reference import checksum, gradients, uniform, value
from torch import nn

FEATURES, BLOCKS, HEADS, SEQUENCE, VOCABULARY = 64, 2, 4, 32, 256
BATCH = 3
INPUT_INDEX = 1000


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(FEATURES, 3 * FEATURES)
        self.projection = nn.Linear(FEATURES, FEATURES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, sequence, _ = x.shape
        size = FEATURES // HEADS
        query, key, values = (
            part.reshape(n, sequence, HEADS, size).transpose(1, 2)
            for part in self.qkv(x).split(FEATURES, dim=2)
        )
        scores = query @ key.transpose(2, 3) / size**0.5
        hidden = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(hidden, float("-inf")).softmax(dim=3) @ values
        return self.projection(mixed.transpose(1, 2).reshape(n, sequence, FEATURES))


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(FEATURES, 4 * FEATURES)
        self.down = nn.Linear(4 * FEATURES, FEATURES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(FEATURES)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(FEATURES)
        self.mlp = Mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Embedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, FEATURES)
        self.position = nn.Embedding(SEQUENCE, FEATURES)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.token(tokens) + self.position(torch.arange(tokens.shape[1]))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = Embedding()
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(FEATURES)
        self.head = nn.Linear(FEATURES, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.embedding(tokens))))


def write_reference(model: nn.Module, name: str, sequence: int, vocabulary: int) -> None:
    """Write what a language model in float64 computes for a batch, and its update by AdamW."""
    with torch.no_grad():
        for index, (parameter, tensor) in enumerate(model.named_parameters()):
            tensor.copy_(value(parameter, index, tuple(tensor.shape)))
    drawn = (uniform(INPUT_INDEX, (BATCH, sequence + 1)) + 0.5) * vocabulary
    tokens = drawn.long()
    output = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(output.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    before = [p.detach().clone() for p in model.parameters()]
    torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1).step()
    document = {
        "torch": torch.__version__.split("+")[0],
        "batch": BATCH,
        "input_index": INPUT_INDEX,
        "parameters": [n for n, _ in model.named_parameters()],
        "output_first": output[0, 0, :8].tolist(),
        "output_checksum": checksum(output),
        "loss": loss.item(),
        "gradients": gradients(model),
        "update_checksums": [
            checksum(p - b) for p, b in zip(model.parameters(), before, strict=True)
        ],
    }
    path = Path(__file__).with_name(name)
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    write_reference(Gpt().double(), "reference_gpt.json", SEQUENCE, VOCABULARY)
