"""Writes what the fuzzers begin with into tests/fuzz/corpus, a folder for each reader, from the
references of the other tests. Files that are there already stay. What is no text is written as
hexadecimal digits, in NAME.hex.

    python tests/fuzz/make_corpus.py
"""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
TESTS = HERE.parent


def saved_files() -> dict[str, bytes]:
    """What torch.save writes, whole."""
    references = json.loads((TESTS / "training/checkpoint/reference_files.json").read_text())
    files = {each["name"]: bytes.fromhex(each["file"]) for each in references}
    for name in ("zip", "deflated"):
        files[f"{name}_without_checksums"] = without_checksums(files[name])
    return files


def without_checksums(archive: bytes) -> bytes:
    """The archive with a CRC-32 of 0, which readers do not compare."""
    head, *entries = archive.split(b"PK\x01\x02")
    return b"PK\x01\x02".join([head, *(each[:12] + bytes(4) + each[16:] for each in entries)])


def pickles() -> dict[str, bytes]:
    """Their pickles alone."""
    references = json.loads((TESTS / "training/checkpoint/reference_pickles.json").read_text())
    return {each["name"].replace(" ", "_"): bytes.fromhex(each["pickle"]) for each in references}


def mnist() -> bytes:
    """Two images, a border, and their labels."""
    images = struct.pack(">4I", 0x803, 2, 28, 28) + bytes(2 * 28 * 28)
    return images + b"\xff\x00\xff\x00" + struct.pack(">2I", 0x801, 2) + bytes([3, 7])


def tokens() -> bytes:
    """llm.c's header, and twelve tokens."""
    return struct.pack("<256i", 20240520, 1, 12, *[0] * 253) + struct.pack("<12H", *range(200, 212))


def images() -> dict[str, bytes]:
    """Five by three pixels: PNG with alpha, with a palette, and JPEG."""
    pixels = Image.frombytes("RGBA", (5, 3), bytes(range(60)))
    files = {}
    for name, form, mode in [("png", "PNG", "RGBA"), ("palette", "PNG", "P"),
                             ("jpeg", "JPEG", "RGB")]:  # fmt: skip
        file = io.BytesIO()
        pixels.convert(mode).save(file, form)
        files[name] = file.getvalue()
    return files


def lines(*values: object) -> bytes:
    """JSON lines."""
    return "".join(json.dumps(value) + "\n" for value in values).encode()


CONFIG = {
    "preset": "cpu", "strategy": ["single", "pipeline"], "model": "resnet18",
    "global_batch_size": 8, "split_size": [2, 4], "schedule": "1f1b", "devices": 2,
    "cut": "layer2+layer4", "no_verify": True, "out": "r.json",
}  # fmt: skip
PARTIAL = lines(
    {"schema": "stratagem-partial/2", "identity": {"build": "build"},
     "rows": [{"split_size": 4}, {"split_size": 8}]},
    {"row": 1, "round": 0, "repetitions": [{"index": 0, "step_ms": [1.5, 2], "marks": ["a"]}]},
)  # fmt: skip
LOG = lines(
    {"event": "start", "name": "single", "config": {"strategy": "single"},
     "training_samples": 8},
    {"event": "step", "epoch": 0, "step": 3, "samples": 8, "seconds": 0.5, "loss": 2.5,
     "data_wait_ms": 0.1},
    {"event": "evaluation", "split": "validation", "step": 3, "loss": 2.25, "samples": 8},
    {"event": "end", "steps": 3},
)  # fmt: skip
DEVICE = {"gemm_gflops": 50.5, "convolution_gflops": 20, "memory_gb_per_s": 8.5}


def corpus() -> dict[str, dict[str, bytes]]:
    """Of each reader, its files by name."""
    return {
        "pickle": pickles(),
        "saved_file": saved_files(),
        "config": {"grid": json.dumps(CONFIG).encode(), "empty": b"{}"},
        "mesh": {"three": b"data=2/pipeline=2/tensor=2", "auto": b"auto"},
        "partial_file": {"two_lines": PARTIAL},
        "cache": {"entry": json.dumps(
            {"question": {"asked": 1}, "time": 1.5e9, "answer": {"answer": 1}}).encode()},
        "cached_results": {"device": json.dumps(DEVICE).encode(), "object": b"{}"},
        "training_log": {"four_lines": LOG},
        "mnist": {"two": mnist()},
        "image": images(),
        "tokens": {"of_llmc": tokens(), "alone": struct.pack("<12H", *range(200, 212))},
        "slurm_hosts": {"range": b"n[0-1,07-12],m3", "one": b"node"},
        "training": {"log": LOG, "document": json.dumps({
            "schema": "stratagem-train/1",
            "trainings": [{"start": json.loads(LOG.splitlines()[0]),
                           "events": [json.loads(LOG.splitlines()[1])]}]}).encode()},
    }  # fmt: skip


def main() -> None:
    """Writes the files."""
    for reader, files in corpus().items():
        folder = HERE / "corpus" / reader
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = folder / name if content.isascii() else folder / f"{name}.hex"
            if not path.exists():
                path.write_text(content.decode() if content.isascii() else content.hex() + "\n")


def content_of(path: Path) -> bytes:
    """What a file of the corpus stands for."""
    content = path.read_bytes()
    return bytes.fromhex(content.decode()) if path.suffix == ".hex" else content


if __name__ == "__main__":
    main()
