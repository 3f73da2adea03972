"""What the chart of pipeline schedules shows: measured beside simulated and closed form."""

from __future__ import annotations

from .chart_types import Point, SchedulePoint, Schedules
from .labels import schedule_label
from .selection import Measured, Selection
from .statistics import describe_interval, median_or_none


def schedules(selection: Selection) -> Schedules | None:
    """The schedules of one pipeline at the split that most of them were measured at, or None."""
    by_split: dict[int | None, dict[str, Measured]] = {}
    for item in selection.rows:
        schedule = item.row.option("schedule")
        if item.row.strategy == "pipeline" and schedule:
            by_split.setdefault(item.row.split_size, {}).setdefault(str(schedule), item)
    split, best = max(by_split.items(), key=lambda entry: len(entry[1]), default=(None, {}))
    if len(best) < 2 or selection.tutorial:
        return None
    points = [_point(name, item) for name, item in best.items()]
    return Schedules(
        title="Pipeline schedules",
        subtitle=f"{selection.workload}, split {split}",
        error_label=describe_interval([item.summary.count for item in best.values()]),
        points=sorted(points, key=lambda point: point.measured.time_ms, reverse=True),
        caption="Step time of each schedule at one split. Simulated: the schedule played with the "
        "calibrated costs of its stages. Closed form: what the devices computed on average, over "
        "one minus the schedule's ideal bubble, as if stages were equal and transfers free.",
    )


def _point(schedule: str, item: Measured) -> SchedulePoint:
    summary = item.summary
    live = [entry.counters.get("live_micro_batches") for entry in item.row.repetitions]
    return SchedulePoint(
        label=schedule_label(schedule),
        measured=Point(item.time_ms, summary.interval.low, summary.interval.high, summary.samples),
        simulated_ms=median_or_none([entry.predicted_ms for entry in item.row.repetitions]),
        closed_form_ms=_closed_form(item),
        live_micro_batches=median_or_none(live),
    )


def _closed_form(item: Measured) -> float | None:
    devices = [device for entry in item.row.repetitions for device in entry.devices]
    busy = [
        device.breakdown_ms.get("compute", 0.0) + device.breakdown_ms.get("optimizer", 0.0)
        for device in devices
        if device.breakdown_ms
    ]
    ideal = median_or_none([device.bubble_ideal for device in devices])
    if not busy or ideal is None:
        return None
    return sum(busy) / len(busy) / (1.0 - ideal)
