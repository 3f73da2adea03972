"""plotly.js as the installed Python package brings it, packed so that a page can hold it once."""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

_FILE = Path("package_data") / "plotly.min.js"


@dataclass(frozen=True)
class Bundle:
    """The library gzipped and in base64, and the hash by which a content policy knows it."""

    packed: str
    policy_hash: str


def load_bundle() -> Bundle:
    """Reads the library; ModuleNotFoundError where the Python package is missing.

    The package itself is not imported: a page needs one file of it. Packed, it is less than half
    as long as plain, and the same input gives the same bytes.
    """
    found = importlib.util.find_spec("plotly")
    path = Path(found.origin).parent / _FILE if found and found.origin else None
    if path is None or not path.is_file():
        raise ModuleNotFoundError("plotly.min.js is not installed", name="plotly")
    source = path.read_bytes()
    packed = base64.b64encode(gzip.compress(source, compresslevel=9, mtime=0))
    return Bundle(packed.decode("ascii"), policy_hash(source))


def policy_hash(script: bytes) -> str:
    """The hash source by which a content security policy lets this inline script run."""
    digest = base64.b64encode(hashlib.sha256(script).digest()).decode("ascii")
    return f"'sha256-{digest}'"
