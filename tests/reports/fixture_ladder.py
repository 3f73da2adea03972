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
    options = {"loss_on": "gathered", "replicate": "step", "reduce": "after", "update": "first"}
    document["benchmarks"] = [*_row("data_parallel", options, "", DATA_PARALLEL_MS)]
    name = ""
    for option, value, step_ms in CHANGES:
        options = options | {option: value}
        name += f"/{option}:{value}"
        document["benchmarks"] += _row("data_parallel", options, name, step_ms)
    document["benchmarks"] += _row("ddp", dict.fromkeys(options), "", DDP_MS)
    return document


def _row(strategy: str, options: dict, name: str, step_ms: float) -> list[dict]:
    launches = fixture_results.plain_launches()
    run_name = launches[0]["run_name"].replace("model_parallel", strategy) + name
    return fixture_results.row_like(launches, run_name, step_ms, options, mesh="data=2")
