"""Builds a results file whose rows lead from DataParallel to DDP."""

from __future__ import annotations

import fixture_results

CHANGES = (
    ("loss_on", "replicas", 2300.0),
    ("replicate", "kept", 2240.0),
    ("reduce", "overlapped", 2260.0),
    ("update", "everywhere", 2200.0),
)
DATA_PARALLEL_MS, DDP_MS = 2400.0, 2150.0


def ladder() -> dict:
    """DataParallel, a row for each change on top of those before, and DDP; one change costs."""
    document = fixture_results.results(failed=False)
    whole = [
        entry
        for entry in document["benchmarks"]
        if entry["run_type"] == "iteration" and entry["run_name"].startswith("model_parallel")
    ]
    options = {"loss_on": "gathered", "replicate": "step", "reduce": "after", "update": "first"}
    document["benchmarks"] = [*_row(whole, "data_parallel", options, "", DATA_PARALLEL_MS)]
    name = ""
    for option, value, step_ms in CHANGES:
        options = options | {option: value}
        name += f"/{option}:{value}"
        document["benchmarks"] += _row(whole, "data_parallel", options, name, step_ms)
    document["benchmarks"] += _row(whole, "ddp", dict.fromkeys(options), "", DDP_MS)
    return document


def _row(whole: list[dict], strategy: str, options: dict, name: str, step_ms: float) -> list[dict]:
    entries = []
    for index, entry in enumerate(whole):
        own = entry["stratagem"]
        run_name = entry["run_name"].replace("model_parallel", strategy) + name
        own = own | {
            "strategy": strategy,
            "mesh": "data=2",
            "step_ms": [step_ms * (1 + 0.001 * (index - 3))] * len(own["step_ms"]),
            "config": own["config"] | {"strategy": strategy} | options,
            "timeline": [],
        }
        entries.append(entry | {"name": run_name, "run_name": run_name, "stratagem": own})
    return entries
