"""What a test can say about a picture without looking at it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image


def pixels(path: Path) -> np.ndarray:
    """The picture as bytes, [rows, columns, red green blue]."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def colors(path: Path) -> np.ndarray:
    """The picture's colours as numbers, 0xRRGGBB."""
    red, green, blue = (pixels(path)[..., index].astype(np.int32) for index in range(3))
    return red << 16 | green << 8 | blue


def distinct_colors(path: Path) -> int:
    """How many colours the picture has."""
    return len(np.unique(colors(path)))


def inked(path: Path) -> float:
    """The fraction of pixels that are not white."""
    return float((pixels(path) < 250).any(axis=2).mean())


def share_of(path: Path, color: str) -> float:
    """The fraction of pixels that have exactly this colour, given as "#RRGGBB"."""
    return float((colors(path) == int(color[1:], 16)).mean())
