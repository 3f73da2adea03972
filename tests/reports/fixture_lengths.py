"""Builds a results file whose rows have several sequence lengths."""

from __future__ import annotations

import fixture_results

LENGTHS = (512, 1024, 2048)
SPEED_UPS = {"heads": (1.2, 1.5, 1.8), "ring": (0.9, 1.3, 1.7)}
TOKEN_MS = 0.5


def lengths() -> dict:
    """A single device, and two ways in which two devices share the positions of a sample."""
    document = fixture_results.results(failed=False)
    whole = [
        entry
        for entry in document["benchmarks"]
        if entry["run_type"] == "iteration" and entry["run_name"].startswith("model_parallel")
    ]
    document["benchmarks"] = []
    for index, length in enumerate(LENGTHS):
        alone_ms = TOKEN_MS * length
        document["benchmarks"] += _row(whole, "single", None, length, alone_ms)
        for exchange, speed_ups in SPEED_UPS.items():
            step_ms = alone_ms / speed_ups[index]
            document["benchmarks"] += _row(whole, "context_parallel", exchange, length, step_ms)
    return document


def _row(whole, strategy, exchange, length, step_ms) -> list[dict]:
    name = f"{strategy}/gpt-long/devices:2/batch:1/sequence:{length}"
    name += f"/context_exchange:{exchange}" if exchange else ""
    config = {"strategy": strategy, "model": "gpt-long", "global_batch_size": 1,
              "image_size": None, "sequence_length": length}  # fmt: skip
    config |= {"context_exchange": exchange} if exchange else {}
    entries = []
    for index, entry in enumerate(whole):
        own = entry["stratagem"]
        own = own | {
            "strategy": strategy,
            "model": "gpt-long",
            "step_ms": [step_ms * (1 + 0.001 * (index - 3))] * len(own["step_ms"]),
            "config": own["config"] | config,
            "timeline": [],
        }
        entries.append(entry | {"name": name, "run_name": name, "stratagem": own})
    return entries
