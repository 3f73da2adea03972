"""Fuzzes the Python readers of files: changes good files at random and reads them.

    python tests/fuzz/fuzz_python.py READER SECONDS [--seed N]

A reader may answer any file with a value or an InputError. Anything else, 1 GiB of memory included,
ends this with exit code 1; the file that did it is kept and named.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "reports")]

from make_corpus import content_of  # noqa: E402
from stratagem_reports.history import store  # noqa: E402
from stratagem_reports.results import training  # noqa: E402
from stratagem_reports.results.errors import InputError  # noqa: E402
from stratagem_reports.results.load import (  # noqa: E402
    load_results,
    load_simulation,
    require_summaries,
)

MEMORY = 1 << 30
HISTORY_ROW = "single/resnet50/devices:1/batch:48/image:128"  # whose lines the corpus has


def read_results(path: Path) -> None:
    """A results file, as report and compare read it."""
    require_summaries(load_results(path))


def read_training(path: Path) -> None:
    """A training's log or document."""
    training.is_training(path)
    training.load_trainings([path])


def read_history(path: Path) -> None:
    """A file of the history."""
    path.rename(path.with_name(store.file_name(HISTORY_ROW)))
    store.load(path.parent)


READERS: dict[str, Callable[[Path], None]] = {
    "results": read_results,
    "simulation": load_simulation,
    "training": read_training,
    "history": read_history,
}
SEEDS = {"results": [HERE.parent / "approved/results.json"]}  # besides those of the corpus
VALUES = [None, True, 0, -1, 1.5, 10**400, 1e308, "", "text", "\ud800", [], {}, [[]], [{}], {"": 0}]


def changed_value(value: Any, order: random.Random) -> Any:
    """The value with one of its parts replaced, left out or repeated."""
    if isinstance(value, (dict, list)) and value and order.random() < 0.95:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = order.choice(keys)
        copy = value.copy()
        kind = order.random()
        if kind < 0.1:
            del copy[key]
        elif kind < 0.15 and isinstance(copy, list):
            copy.append(copy[key])
        else:
            copy[key] = changed_value(copy[key], order)
        return copy
    return order.choice(VALUES)


def changed_bytes(content: bytes, order: random.Random) -> bytes:
    """Some bytes replaced, the end perhaps cut off."""
    broken = bytearray(content)
    for _ in range(order.randrange(1, 4)):
        if broken:
            broken[order.randrange(len(broken))] = order.randrange(256)
    if order.random() < 0.2:
        del broken[order.randrange(len(broken) + 1) :]
    return bytes(broken)


def changed(content: bytes, order: random.Random) -> bytes:
    """A file that differs: in a value of its JSON or of one of its lines, or in some bytes."""
    if order.random() < 0.25:
        return changed_bytes(content, order)
    try:
        return json.dumps(changed_value(json.loads(content), order)).encode()
    except ValueError:
        pass
    lines = content.splitlines()
    index = order.randrange(len(lines)) if lines else 0
    try:
        lines[index] = json.dumps(changed_value(json.loads(lines[index]), order)).encode()
    except (ValueError, IndexError):
        return changed_bytes(content, order)
    return b"\n".join(lines) + b"\n"


def fuzz(reader: str, seconds: float, seed: int) -> int:
    """The exit code."""
    order = random.Random(seed)
    paths = [*sorted((HERE / "corpus" / reader).glob("*")), *SEEDS.get(reader, [])]
    seeds = [content_of(path) for path in paths]
    limit = time.monotonic() + seconds
    runs = 0
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < limit or runs < len(seeds):
            content = seeds[runs] if runs < len(seeds) else order.choice(seeds)
            for _ in range(0 if runs < len(seeds) else order.randrange(1, 4)):
                content = changed(content, order)
            path = Path(name) / "input"
            path.write_bytes(content)
            runs += 1
            try:
                READERS[reader](path)
            except InputError:
                continue
            except Exception:
                with tempfile.NamedTemporaryFile(
                    prefix=f"fuzz-{reader}-", delete=False
                ) as kept:
                    kept.write(content)
                traceback.print_exc()
                print(f"{reader}: run {runs} of seed {seed} failed on {kept.name}", file=sys.stderr)
                return 1
    print(f"{reader}: {runs} files of seed {seed} were read or refused")
    return 0


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    return fuzz(options.reader, options.seconds, options.seed)


if __name__ == "__main__":
    sys.exit(main())
