"""What the charts over several strategies show: throughput by devices, and memory by device."""

from __future__ import annotations

from .chart_types import MemoryBar, MemoryChart, Scaling, ScalingPoint, ScalingSeries
from .labels import strategy_label
from .load import Results, Row
from .selection import Measured, Selection
from .statistics import samples_ms, summarise

# Devices that share cores say nothing about how a strategy scales.
_NOT_ALONE = {"oversubscribed", "shared", "shared_cores", "straggler"}


def scaling(results: Results, selection: Selection) -> Scaling | str:
    """The best row of each strategy at each number of devices, from the single device on."""
    single = selection.single
    if single is None:
        return "no working row of single"
    if selection.tutorial:
        return "rows measured as the tutorial measures have no throughput of a steady step"
    best: dict[tuple[str, int], Measured] = {}
    for item in _comparable(results, single.row):
        key = (item.row.strategy, int(item.row.option("devices") or 1))
        if key not in best or item.time_ms < best[key].time_ms:
            best[key] = item
    if not best:
        return "no working row of a strategy with several devices, each with cores of its own"
    origin = _point(single, 1)
    series = []
    for strategy in sorted({strategy for strategy, _ in best}):
        points = [
            _point(item, devices) for (name, devices), item in best.items() if name == strategy
        ]
        ordered = sorted(points, key=lambda point: point.devices)
        series.append(ScalingSeries(strategy, strategy_label(strategy), [origin, *ordered]))
    return Scaling(
        title="Throughput by number of devices",
        subtitle=selection.workload,
        single=origin.rate,
        series=series,
        footnote="Best row of each strategy, the same global batch throughout; error bars are the "
        "intervals of the medians.",
        caption="Samples a second over devices, each with cores of its own. Dashed: a single "
        "device's throughput times the number of devices.",
    )


def memory(
    selection: Selection, ordered: list[tuple[str, Measured]], shown: str = ""
) -> MemoryChart | str:
    """The most memory of every device, row by row in the given order; `shown` ends the caption."""
    bars = []
    for label, item in ordered:
        peaks: dict[str, float] = {}
        for repetition in item.row.repetitions:
            for device in repetition.devices:
                if device.peak_memory_bytes:
                    known = peaks.get(device.device, 0.0)
                    peaks[device.device] = max(known, device.peak_memory_bytes)
        if peaks:
            strategy = (
                "single_all_cores" if item is selection.single_all_cores else item.row.strategy
            )
            bars.append(MemoryBar(strategy, label, list(peaks.values())))
    if not bars:
        return "no row has its devices' memory"
    return MemoryChart(
        title="Memory by device",
        subtitle=selection.workload,
        bars=bars,
        caption="The most tensor memory that a device held during the timed steps; a bar is as "
        f"long as the row's fullest device.{shown}",
    )


def _comparable(results: Results, single: Row) -> list[Measured]:
    """Rows of several devices that do the work of `single`, with as many cores for each."""
    same = ("global_batch_size", "image_size", "sequence_length", "dtype", "device", "protocol")
    found = []
    for row in results.rows:
        if row.error or not row.repetitions or _NOT_ALONE & set(row.marks):
            continue
        if row.strategy == "single" or row.model != single.model:
            continue
        if any(row.option(key) != single.option(key) for key in (*same, "cores_per_device")):
            continue
        found.append(Measured(row, summarise(samples_ms(row))))
    return found


def _point(item: Measured, devices: int) -> ScalingPoint:
    samples = float(item.row.option("global_batch_size") or 0)
    interval = item.summary.interval
    return ScalingPoint(
        devices,
        rate=1e3 * samples / item.summary.median,
        low=1e3 * samples / interval.high,
        high=1e3 * samples / interval.low,
    )
