"""Writes reference_resnet.json: what torchvision's ResNets compute, for resnet_reference_test.cpp.

Run by hand, with torch and torchvision installed, when the checks change:
    python tests/models/make_reference.py

Parameters, statistics and images are a formula of their position (a hash), so that both sides make
them without exchanging files. Everything is float64.
"""

import json
import math
from pathlib import Path

import numpy as np
import torch
import torchvision

BATCH = 4
IMAGE = 64
LABELS = [7, 123, 456, 999]
INPUT_INDEX = 1000
LEARNING_RATE = 0.1
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-3


def uniform(index: int, shape: tuple) -> torch.Tensor:
    """Values in [-0.5, 0.5) of the tensor number `index`, in row-major order."""
    x = np.arange(math.prod(shape), dtype=np.uint64)
    x += np.uint64(index * 0x9E3779B97F4A7C15 % 2**64)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    u = (x >> np.uint64(11)).astype(np.float64) * 2.0**-53 - 0.5
    return torch.from_numpy(u).reshape(shape)


def value(name: str, index: int, shape: tuple) -> torch.Tensor:
    """Well-conditioned values: He-uniform convolutions, normalisations near the identity."""
    u = uniform(index, shape)
    if len(shape) == 4:
        return u * (2.0 * math.sqrt(6.0 / math.prod(shape[1:])))
    if len(shape) == 2:
        return u * (2.0 / math.sqrt(shape[1]))
    offset = 0.0 if name.endswith(("bias", "running_mean")) else 1.0
    return offset + 0.2 * u


def fill(model: torch.nn.Module) -> None:
    tensors = [*model.named_parameters(), *model.named_buffers()]
    with torch.no_grad():
        for index, (name, tensor) in enumerate(tensors):
            if tensor.is_floating_point():
                tensor.copy_(value(name, index, tuple(tensor.shape)))


def checksum(tensor: torch.Tensor) -> float:
    """A sum that sees the order of the elements: weights 1, 2, ..., 7, 1, 2, ..."""
    flat = tensor.detach().double().reshape(-1)
    weights = (torch.arange(flat.numel()) % 7 + 1).double()
    return float((flat * weights).sum())


def gradients(model: torch.nn.Module) -> list:
    return [[float(p.grad.norm()), checksum(p.grad)] for p in model.parameters()]


def reference(name: str) -> dict:
    model = torchvision.models.get_model(name, weights=None).double()
    fill(model)
    inputs = 3.0 * uniform(INPUT_INDEX, (BATCH, 3, IMAGE, IMAGE))
    labels = torch.tensor(LABELS)
    one_hot = torch.nn.functional.one_hot(labels, 1000).double()

    output = model(inputs)
    result = {
        "parameters": [n for n, _ in model.named_parameters()],
        "buffers": [n for n, _ in model.named_buffers()],
        "output_first": output[0, :8].tolist(),
        "output_checksum": checksum(output),
        "buffer_checksums": [checksum(b) for b in model.buffers()],
    }

    mse = torch.nn.functional.mse_loss(output, one_hot)
    mse.backward(retain_graph=True)
    result["mse"] = {"loss": mse.item(), "gradients": gradients(model)}

    model.zero_grad()
    cross_entropy = torch.nn.functional.cross_entropy(output, labels)
    cross_entropy.backward()
    result["cross_entropy"] = {"loss": cross_entropy.item(), "gradients": gradients(model)}

    before = [p.detach().clone() for p in model.parameters()]
    torch.optim.SGD(
        model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY
    ).step()
    result["update_checksums"] = [
        checksum(p - b) for p, b in zip(model.parameters(), before, strict=True)
    ]

    model.eval()
    with torch.no_grad():
        result["evaluation_checksum"] = checksum(model(inputs))
    return result


def main() -> None:
    document = {
        "torch": torch.__version__.split("+")[0],
        "torchvision": torchvision.__version__.split("+")[0],
        "batch": BATCH,
        "image": IMAGE,
        "labels": LABELS,
        "input_index": INPUT_INDEX,
        "learning_rate": LEARNING_RATE,
        "momentum": MOMENTUM,
        "weight_decay": WEIGHT_DECAY,
        "models": {name: reference(name) for name in ("resnet18", "resnet50")},
    }
    path = Path(__file__).with_name("reference_resnet.json")
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
