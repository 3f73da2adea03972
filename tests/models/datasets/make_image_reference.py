"""Writes reference_images.json: files of images by Pillow, and what torchvision makes of them.

    python3 tests/models/datasets/make_image_reference.py

Each case has the bytes of a file and those of the square that Resize and CenterCrop leave of it,
[side, side, 3], and of the grey one, all in hexadecimal.
"""

import io
import json
from pathlib import Path

import numpy
from PIL import Image
from torchvision.transforms import CenterCrop, Resize

CASES = [
    # name, mode, (width, height), options of save, side
    ("landscape.png", "RGB", (23, 14), {}, 8),
    ("portrait.png", "RGB", (11, 20), {}, 8),
    ("enlarged.png", "RGB", (5, 9), {}, 16),
    ("same.png", "RGB", (8, 8), {}, 8),
    ("one_row.png", "RGB", (30, 1), {}, 4),
    ("grey.png", "L", (13, 12), {}, 6),
    ("alpha.png", "RGBA", (12, 17), {}, 6),
    ("palette.png", "P", (12, 10), {}, 6),
    ("colour.jpg", "RGB", (37, 26), {"quality": 80}, 12),
    ("grey.jpg", "L", (20, 24), {"quality": 80}, 12),
    ("progressive.jpg", "RGB", (26, 26), {"quality": 80, "progressive": True}, 10),
]


def picture(mode: str, size: tuple[int, int], random) -> Image.Image:
    """A colour ramp with noise, so that both smooth and sharp parts are resized."""
    width, height = size
    ramp = numpy.linspace(0, 200, width)[None, :, None] * numpy.ones((height, 1, 4))
    values = ramp * numpy.array([1, 0.5, 0.2, 1]) + random.integers(0, 56, (height, width, 4))
    return Image.fromarray(values.astype(numpy.uint8), "RGBA").convert(mode)


def case(name: str, mode: str, size, options, side: int, random) -> dict:
    buffer = io.BytesIO()
    kind = "JPEG" if name.endswith(".jpg") else "PNG"
    picture(mode, size, random).save(buffer, kind, **options)
    square = CenterCrop(side)(Resize(side)(Image.open(buffer).convert("RGB")))
    grey = CenterCrop(side)(Resize(side)(Image.open(buffer).convert("RGB").convert("L")))
    return {
        "name": name,
        "side": side,
        "file": buffer.getvalue().hex(),
        "square": square.tobytes().hex(),
        "grey": grey.tobytes().hex(),
    }


def main() -> None:
    random = numpy.random.default_rng(20)
    cases = [case(*each, random) for each in CASES]
    text = "[\n" + ",\n".join(json.dumps(each) for each in cases) + "\n]\n"
    Path(__file__).with_name("reference_images.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
