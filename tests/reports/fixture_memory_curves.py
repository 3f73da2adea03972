"""Curves of memory over a step for the rows of the whole fixture, measured and predicted."""

from __future__ import annotations

from collections import Counter

import fixture_ranks
import fixture_results

MEBIBYTE = 2**20
STATE = {"parameters": 98, "optimizer": 196}
ACTIVATIONS = {"single": 1900, "model_parallel": 1100, "pipeline": 720}


def with_curves(document: dict | None = None) -> dict:
    """The document, the whole fixture without one; every row's first launch has both curves."""
    document = document or fixture_results.results(failed=False)
    for entry in document["benchmarks"]:
        if entry.get("repetition_index") == 0:
            own = entry["stratagem"]
            ranked = {use["rank"] for use in own["devices"]} == {0, 1}
            own["memory_curve"] = columns(curve(own["timeline"], own["strategy"], ranked))
            predicted = curve(own["timeline"], own["strategy"], ranked, 0.94)
            own["predicted_memory_curve"] = columns(predicted)
    return document


def over_ranks() -> dict:
    """The rows over ranks with curves, each rank with one device."""
    return with_curves(fixture_ranks.over_ranks())


def columns(points: list[dict]) -> list[dict]:
    """The points of all devices as the file has them: a list of each value for each device."""
    found: dict[tuple[int, int], list[dict]] = {}
    for one in points:
        found.setdefault((one["rank"], one["device"]), []).append(one)
    return [
        {
            "rank": rank,
            "device": device,
            "ms": [one["ms"] for one in own],
            "most_bytes": [one["most_bytes"] for one in own],
            "bytes": {
                name: [one["bytes"].get(name, 0) for one in own]
                for name in dict.fromkeys(name for one in own for name in one["bytes"])
            },
        }
        for (rank, device), own in found.items()
    ]


def curve(timeline: list[dict], strategy: str, ranked: bool, scale: float = 1.0) -> list[dict]:
    """Forward passes add activations, backward passes free them and add gradients."""
    end = max(action["end_ms"] for action in timeline)
    found = []
    for device in sorted({action["device"] for action in timeline}):
        own = [action for action in timeline if action["device"] == device]
        every = ACTIVATIONS.get(strategy, 1400) * (1.0 if device == 0 else 0.7)
        held = {**STATE, "gradients": 0.0, "activations": 0.0, "communication": 0.0, "staging": 8}
        place = {"rank": device if ranked else 0, "device": device}
        found.append(point(place, 0.0, held, 0.0, scale))
        for ms, change, temporary in sorted(changes(own, every), key=lambda one: one[0]):
            held = {name: max(0.0, was + change.get(name, 0.0)) for name, was in held.items()}
            found.append(point(place, scale * ms, held, temporary, scale))
        found.append(point(place, scale * end, held, 0.0, scale))
    return found


def changes(own: list[dict], every: float) -> list[tuple[float, dict, float]]:
    """When what a device holds changes, by how much, and the temporary memory from there, in MiB.

    `every` is the activations of all micro-batches.
    """
    found: list[tuple[float, dict, float]] = []
    count = Counter(action["kind"] for action in own)
    for action in own:
        kind, start, end = action["kind"], action["start_ms"], action["end_ms"]
        part = (end - start) / 4
        for index in range(4):
            if kind == "forward":
                more = {"activations": every / count[kind] / 4}
                found.append((start + part * index, more, every / count[kind] / 12))
            elif kind == "backward":
                share = 1.0 / count[kind] / 4
                more = {"activations": -every * share, "gradients": 98.0 * share}
                found.append((start + part * (index + 1), more, every / count[kind] / 6))
        if kind == "all_reduce":
            found += [(start, {"communication": 25.0}, 0.0), (end, {"communication": -25.0}, 0.0)]
        elif kind == "optimizer":
            found.append((end, {"gradients": -98.0}, 0.0))
    return found


def point(place: dict, ms: float, held: dict, temporary: float, scale: float = 1.0) -> dict:
    """A point of a curve; `held` and `temporary` are in MiB."""
    own = {name: round(scale * held_of * MEBIBYTE) for name, held_of in held.items() if held_of}
    most = round(sum(own.values()) + scale * temporary * MEBIBYTE)
    return {**place, "ms": ms, "bytes": own, "most_bytes": most}
