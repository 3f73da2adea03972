"""Writes reference_pickles.json and reference_files.json beside itself: pickles and files that
PyTorch makes, and what is in them.

    python tests/training/checkpoint/make_pickles.py
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import torch


def pickle_of(value: Any) -> str:
    """The pickle of torch.save's archive, in hexadecimal digits."""
    file = io.BytesIO()
    torch.save(value, file)
    with zipfile.ZipFile(file) as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        return archive.read(name).hex()


def described(value: Any) -> Any:
    """A value as the test describes what it read."""
    if isinstance(value, torch.Tensor):
        return {
            "tensor": list(value.shape),
            "strides": list(value.stride()),
            "offset": value.storage_offset(),
            "type": str(value.dtype).removeprefix("torch."),
        }
    if isinstance(value, dict):
        return {"dictionary": [[described(key), described(value[key])] for key in value]}
    if isinstance(value, list):
        return {"list": [described(item) for item in value]}
    if isinstance(value, tuple):
        return {"tuple": [described(item) for item in value]}
    longest = 2**63
    is_long = isinstance(value, int) and not -longest <= value < longest
    if value is None or isinstance(value, (bool, int, float, str)) and not is_long:
        return value
    return {"other": True}


def file_of(value: Any, **options: Any) -> bytes:
    """What torch.save writes."""
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def compressed(file: bytes) -> bytes:
    """The same archive as a zip program packs it."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def files() -> list[dict[str, Any]]:
    """Files of one value; `storages` has the bytes of each tensor's storage."""
    base = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    value = {"weight": base, "turned": base.t(), "bias": torch.zeros(2, dtype=torch.float64)}
    written = {
        "zip": file_of(value),
        "pickles": file_of(value, _use_new_zipfile_serialization=False),
        "deflated": compressed(file_of(value)),
    }
    storages = {name: tensor.untyped_storage().tolist() for name, tensor in value.items()}
    return [
        {"name": name, "file": file.hex(), "value": described(value), "storages": storages}
        for name, file in written.items()
    ]


def trained(make: Any) -> Any:
    """The state of an optimizer after a step."""
    model = torch.nn.Linear(3, 2)
    optimizer = make(model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    return optimizer.state_dict()


def main() -> None:
    """Prints the reference."""
    torch.manual_seed(0)
    base = torch.arange(24.0).reshape(4, 6)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    shared = [1, {"two": 2}]
    with_attribute = torch.nn.Parameter(torch.zeros(2))
    with_attribute.named = "anything"
    values = {
        "state_dict": model.state_dict(),
        "parameters": list(model.parameters()),
        "one entry": {"only": torch.zeros(2, dtype=torch.float64)},
        "adamw": trained(torch.optim.AdamW),
        "sgd": trained(lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)),
        "views": [base, base.t(), base[1:, 2], torch.empty(0, 3), torch.tensor(2.5)],
        "types": [torch.zeros(1, dtype=getattr(torch, name)) for name in
                  ("float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")],
        "plain": [None, True, False, 0, 255, 256, 65536, -1, 2**40, -(2**62), 1.5, "", "grün",
                  (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), (), [], {}, {7: "seven"}],
        "other classes": [torch.Size([2, 3]), torch.device("cpu"), torch.float32, {1, 2}, b"bytes",
                          2**100, {(1, 2): 3, None: 4}],
        "shared": [base, shared, shared, {"again": shared}],
        "attributes": with_attribute,
    }  # fmt: skip
    folder = Path(__file__).parent
    (folder / "reference_pickles.json").write_text(json.dumps([
        {"name": name, "pickle": pickle_of(value), "value": described(value)}
        for name, value in values.items()
    ]) + "\n")  # fmt: skip
    (folder / "reference_files.json").write_text(json.dumps(files()) + "\n")


if __name__ == "__main__":
    main()
