"""Fingerprints of a peer's state, which `stratagem prove` reads with the losses as evidence.

A fingerprint has sums over one tensor in float64: the sum of squares, and eight sums of the
elements with different signs. The tensor's name and an element's index determine its signs
(bench/proof/evidence.h). The signs are bits of splitmix64 (Steele, Lea, Flood 2014), seeded by
FNV-1a of the name.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

PROJECTIONS = 8
BLOCK = 1 << 20  # elements that are summed up together, a multiple of eight


def _seed_of(name: str) -> int:
    """Return the 64-bit FNV-1a hash of the name."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def _sign_bytes(seed: int, first: int, count: int) -> np.ndarray:
    """Return a byte of signs for each of `count` elements from index `first`, a multiple of 8."""
    groups = np.arange(first // 8, (first + count + 7) // 8, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits = np.uint64(seed) + groups * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    return bits.astype("<u8").view(np.uint8)[:count]


def fingerprint_of(name: str, tensor: torch.Tensor) -> dict:
    """Return the fingerprint of a whole tensor of any shape, in row-major order."""
    values = tensor.cpu().contiguous().flatten().numpy()
    seed = _seed_of(name)
    squares, projected = 0.0, np.zeros(PROJECTIONS)
    for first in range(0, values.size, BLOCK):
        block = values[first : first + BLOCK].astype(np.float64)
        minus = np.unpackbits(
            _sign_bytes(seed, first, block.size)[:, None], axis=1, bitorder="little"
        )
        squares += block @ block
        projected += block.sum() - 2 * (block @ minus)
    return {"squares": squares, "projected": projected.tolist()}


def state_of(
    layers: Mapping[str, torch.nn.Module], exported: Callable[[str, torch.Tensor], torch.Tensor]
) -> dict[str, dict]:
    """Return the fingerprints of the layers' parameters and buffers, by the whole model's names.

    `exported` returns a tensor of that name in Stratagem's order of elements. A sharded tensor is
    gathered, so all ranks that have a part of it must call this function.
    """
    state = {}
    for layer, module in layers.items():
        own = [*module.named_parameters(), *module.named_buffers()]
        for name, tensor in own:
            whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
            key = f"{layer}.{name}"
            state[key] = fingerprint_of(key, exported(key, whole.detach()))
    return state


def _numbers(fingerprint: dict) -> list[float]:
    return [fingerprint["squares"], *fingerprint["projected"]]


def joined(states: Sequence[Mapping[str, dict]]) -> dict[str, dict]:
    """Return the states of all ranks as one.

    Raises ValueError if two ranks hold different values of the same parameter. Running statistics
    may differ, and the statistics of the first rank count.
    """
    whole: dict[str, dict] = {}
    for rank, own in enumerate(states):
        for name, found in own.items():
            is_statistic = name.endswith(("running_mean", "running_var"))
            same = np.array_equal(_numbers(whole.setdefault(name, found)), _numbers(found), True)
            if not same and not is_statistic:
                raise ValueError(f"rank {rank} holds other values of {name} than a rank before it")
    return whole
