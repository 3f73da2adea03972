"""Builds results of strategies over ranks: their timelines have exchanges, thousands of them."""

from __future__ import annotations

import copy

import fixture_results
from fixture_timelines import OPTIMIZER_MS

SHARED = ("tensor_parallel", "sequence_parallel")
STEP_MS = {
    "ddp": 1210.0,
    "tensor_parallel": 1420.0,
    "sequence_parallel": 1390.0,
    "ddp_model_parallel": 1700.0,
    "zero1": 1500.0,
    "zero2": 1600.0,
}


def over_ranks(exchanges: int = 40) -> dict:
    """The whole fixture and a row of each strategy above."""
    document = fixture_results.results(failed=False)
    document["benchmarks"] += rows(exchanges)
    return document


def rows(exchanges: int) -> list[dict]:
    """The launches of a row of each strategy; `exchanges` of shared layers a step and rank."""
    kept = [
        entry
        for entry in fixture_results.results(failed=False)["benchmarks"]
        if entry["name"].startswith("model_parallel") and entry["run_type"] == "iteration"
    ]
    made = []
    for strategy, step_ms in STEP_MS.items():
        shared = exchanges >= 1000 or strategy in SHARED
        timeline = shared_layers(step_ms, exchanges) if shared else replicas(step_ms)
        made += [_entry(entry, strategy, step_ms, timeline) for entry in kept]
    return made


def replicas(step_ms: float, buckets: int = 5) -> list[dict]:
    """Each rank a copy: buckets are all-reduced beside the backward pass, the last one after it."""
    timeline = []
    compute = step_ms - OPTIMIZER_MS - 60.0
    forward, backward = compute / 3.0, compute * 2.0 / 3.0
    for rank in (0, 1):
        timeline.append(_action(rank, "forward", 0.0, forward))
        timeline.append(_action(rank, "backward", forward, forward + backward))
        for bucket in range(1, buckets + 1):
            begin = forward + backward * bucket / buckets
            timeline.append(_action(rank, "all_reduce", begin, begin + 60.0, bucket))
        end = forward + backward
        timeline.append(_action(rank, "gradient_wait", end, end + 60.0))
        timeline.append(_action(rank, "optimizer", end + 60.0, step_ms))
    return timeline


def shared_layers(step_ms: float, exchanges: int) -> list[dict]:
    """Each rank a part of every layer: passes in pieces, an exchange in each and a wait for it."""
    timeline = []
    piece = (step_ms - OPTIMIZER_MS) / exchanges
    for rank in (0, 1):
        for index in range(exchanges):
            begin = piece * index
            kind = "forward" if index < exchanges // 3 else "backward"
            timeline.append(_action(rank, kind, begin, begin + 0.95 * piece, index))
            timeline.append(
                _action(rank, "tensor_transfer", begin + 0.5 * piece, begin + 0.9 * piece, index)
            )
            timeline.append(
                _action(rank, "tensor_wait", begin + 0.7 * piece, begin + 0.9 * piece, index)
            )
        timeline.append(_action(rank, "optimizer", piece * exchanges, step_ms))
    return timeline


def _action(rank: int, kind: str, start_ms: float, end_ms: float, micro_batch: int = 0) -> dict:
    return {
        "device": rank,
        "kind": kind,
        "stage": 0,
        "micro_batch": micro_batch,
        "start_ms": start_ms,
        "end_ms": end_ms,
    }


def _entry(entry: dict, strategy: str, step_ms: float, timeline: list[dict]) -> dict:
    """The model-parallel entry as one of another strategy, a rank each device."""
    made = copy.deepcopy(entry)
    made["name"] = made["run_name"] = entry["name"].replace("model_parallel", strategy, 1)
    own = made["stratagem"]
    scale = step_ms / 2195.0
    own["strategy"] = own["config"]["strategy"] = strategy
    own["step_ms"] = [value * scale for value in own["step_ms"]]
    for rank, device in enumerate(own["devices"]):
        device["rank"] = rank
    own["timeline"] = timeline
    return made
