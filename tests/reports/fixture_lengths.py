"""Builds a results file whose rows have several sequence lengths."""

from __future__ import annotations

import fixture_results

LENGTHS = (512, 1024, 2048)
SPEED_UPS = {"heads": (1.2, 1.5, 1.8), "ring": (0.9, 1.3, 1.7)}
TOKEN_MS = 0.5


def lengths() -> dict:
    """A single device, and two ways in which two devices share the positions of a sample."""
    document = fixture_results.results(failed=False)
    document["benchmarks"] = []
    for index, length in enumerate(LENGTHS):
        alone_ms = TOKEN_MS * length
        document["benchmarks"] += _row("single", {}, length, alone_ms)
        for exchange, speed_ups in SPEED_UPS.items():
            shared = {"context_exchange": exchange}
            step_ms = alone_ms / speed_ups[index]
            document["benchmarks"] += _row("context_parallel", shared, length, step_ms)
    return document


def _row(strategy: str, options: dict, length: int, step_ms: float) -> list[dict]:
    name = f"{strategy}/gpt-long/devices:2/batch:1/sequence:{length}"
    name += "".join(f"/{option}:{value}" for option, value in options.items())
    config = {"model": "gpt-long", "global_batch_size": 1, "image_size": None,
              "sequence_length": length} | options  # fmt: skip
    launches = fixture_results.plain_launches()
    return fixture_results.row_like(launches, name, step_ms, config, model="gpt-long")
