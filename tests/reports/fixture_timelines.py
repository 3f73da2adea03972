"""Timelines of one step of ResNet-50 on two devices, as the schema has them; milliseconds."""

from __future__ import annotations

BATCH = 48
STAGE_MS = 1080.0
MICRO_BATCH_OVERHEAD_MS = 48.0
INPUT_MS = 14.0
OPTIMIZER_MS = 22.0


def single_timeline(step_ms: float) -> list[dict]:
    """One device, at work throughout."""
    timeline: list[dict] = []
    clock = [0.0]
    compute = step_ms - INPUT_MS - OPTIMIZER_MS
    _append(timeline, clock, 0, "copy_input", 0, INPUT_MS)
    _append(timeline, clock, 0, "forward", 0, compute / 3.0)
    _append(timeline, clock, 0, "backward", 0, compute * 2.0 / 3.0)
    _append(timeline, clock, 0, "optimizer", None, OPTIMIZER_MS)
    return timeline


def model_parallel_timeline(step_ms: float) -> list[dict]:
    """Two devices, one at work at a time."""
    timeline: list[dict] = []
    clock, copy = [0.0, 0.0], 6.0
    half = (step_ms - INPUT_MS - 2.0 * copy - OPTIMIZER_MS) / 2.0
    _append(timeline, clock, 0, "copy_input", 0, INPUT_MS)
    _append(timeline, clock, 0, "forward", 0, half / 3.0)
    clock[1] = clock[0]
    _append(timeline, clock, 1, "copy_activation", 0, copy)
    _append(timeline, clock, 1, "forward", 0, half / 3.0)
    _append(timeline, clock, 1, "backward", 0, half * 2.0 / 3.0)
    clock[0] = clock[1]
    _append(timeline, clock, 0, "copy_gradient", 0, copy)
    _append(timeline, clock, 0, "backward", 0, half * 2.0 / 3.0)
    for device in (0, 1):
        _append(timeline, clock, device, "optimizer", None, OPTIMIZER_MS)
    return timeline


def pipeline_timeline(split: int) -> tuple[list[dict], float]:
    """1F1B on two stages in milliseconds, and the time its last action ends."""
    micro_batches = -(-BATCH // split)
    orders = [_order(micro_batches, warm_up) for warm_up in (2, 1)]
    done: dict[tuple, float] = {}
    clock = [0.0, 0.0]
    timeline: list[dict] = []
    position = [0, 0]
    while any(position[stage] < len(orders[stage]) for stage in (0, 1)):
        for stage in (0, 1):
            while position[stage] < len(orders[stage]):
                kind, index = orders[stage][position[stage]]
                source = _source(kind, stage, index)
                if source and source not in done:
                    break
                samples = min(split, BATCH - index * split)
                _run(timeline, clock, done, stage, kind, index, source, samples)
                position[stage] += 1
    for stage in (0, 1):
        _append(timeline, clock, stage, "optimizer", None, OPTIMIZER_MS)
    return timeline, max(clock)


def _order(micro_batches: int, warm_up: int) -> list[tuple[str, int]]:
    warm_up = min(warm_up, micro_batches)
    order = [("forward", index) for index in range(warm_up)]
    for index in range(micro_batches):
        order.append(("backward", index))
        if index + warm_up < micro_batches:
            order.append(("forward", index + warm_up))
    return order


def _source(kind: str, stage: int, index: int) -> tuple | None:
    if kind == "forward":
        return ("forward", 0, index) if stage == 1 else None
    return ("backward", 1, index) if stage == 0 else None


def _run(timeline, clock, done, stage, kind, index, source, samples) -> None:
    if source:
        clock[stage] = max(clock[stage], done[source])
        copy = "copy_activation" if kind == "forward" else "copy_gradient"
        _append(timeline, clock, stage, copy, index, 0.25 * samples)
    elif kind == "forward":
        _append(timeline, clock, stage, "copy_input", index, INPUT_MS * samples / BATCH)
    share = 1.0 / 3.0 if kind == "forward" else 2.0 / 3.0
    cost = STAGE_MS * samples / BATCH + MICRO_BATCH_OVERHEAD_MS
    _append(timeline, clock, stage, kind, index, share * cost)
    done[(kind, stage, index)] = clock[stage]


def _append(timeline, clock, stage, kind, index, length) -> None:
    timeline.append(
        {
            "device": stage,
            "kind": kind,
            "stage": stage,
            "micro_batch": 0 if index is None else index,
            "start_ms": clock[stage],
            "end_ms": clock[stage] + length,
        }
    )
    clock[stage] += length
