"""What a test can say about a picture without looking at it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def pixels(path: Path) -> np.ndarray:
    """The picture as whole numbers, [rows, columns, red green blue]."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"), dtype=int)


def distinct_colors(path: Path) -> int:
    """How many colours the picture has."""
    return len(np.unique(pixels(path).reshape(-1, 3), axis=0))


def inked(path: Path) -> float:
    """The fraction of pixels that are not white."""
    return float((pixels(path) < 250).any(axis=2).mean())


def share_of(path: Path, color: str) -> float:
    """The fraction of pixels that have exactly this colour, given as "#RRGGBB"."""
    wanted = [int(color[start : start + 2], 16) for start in (1, 3, 5)]
    return float((pixels(path) == wanted).all(axis=2).mean())
