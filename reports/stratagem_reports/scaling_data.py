"""What the charts over several strategies show: throughput by devices, and memory by device."""

from __future__ import annotations

from .chart_types import MemoryBar, MemoryChart, Scaling, ScalingPoint, ScalingSeries
from .labels import strategy_label
from .load import Results, Row
from .selection import Measured, Selection
from .statistics import median_or_none, samples_ms, summarise

_HOLLOW = (
    " Hollow: simulated for more cores than there are, from the costs of one device at a time."
)
# Devices that share cores say nothing about how a strategy scales.
_NOT_ALONE = {"oversubscribed", "shared", "shared_cores", "straggler"}


def scaling(results: Results, selection: Selection) -> Scaling | str:
    """The best row of each strategy at each number of devices, from the single device on."""
    single = selection.single
    if single is None:
        return "no working row of single"
    if selection.tutorial:
        return "rows measured as the tutorial measures have no throughput of a steady step"
    best: dict[tuple[str, int], ScalingPoint] = {}
    for item in _comparable(results, single.row):
        _keep_faster(best, item.row, _point(item, _devices(item.row)))
    if not best:
        return "no working row of a strategy with several devices, each with cores of its own"
    measured = set(best)
    for row in _simulated(results, single.row):
        if (row.strategy, _devices(row)) not in measured:
            _keep_faster(best, row, _simulated_point(row))
    hollow = _HOLLOW if len(best) > len(measured) else ""
    origin = _point(single, 1)
    series = []
    for strategy in sorted({strategy for strategy, _ in best}):
        points = [point for (name, _), point in best.items() if name == strategy]
        ordered = sorted(points, key=lambda point: point.devices)
        series.append(ScalingSeries(strategy, strategy_label(strategy), [origin, *ordered]))
    return Scaling(
        title="Throughput by number of devices",
        subtitle=selection.workload,
        single=origin.rate,
        series=series,
        footnote="Best row of each strategy, the same global batch throughout; error bars are the "
        f"intervals of the medians.{hollow}",
        caption="Samples a second over devices, each with cores of its own. Dashed: a single "
        f"device's throughput times the number of devices.{hollow}",
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
    """Rows of several devices, each with cores of its own, that do the work of `single`."""
    return [
        Measured(row, summarise(samples_ms(row)))
        for row in results.rows
        if not _NOT_ALONE & set(row.marks) and _does_the_same(row, single)
    ]


def _simulated(results: Results, single: Row) -> list[Row]:
    """Rows whose devices share cores, with a prediction for a machine on which they would not."""
    return [
        row
        for row in results.rows
        if _NOT_ALONE & set(row.marks) == {"oversubscribed"}
        and _does_the_same(row, single)
        and _predicted_ms(row) is not None
    ]


def _does_the_same(row: Row, single: Row) -> bool:
    same = ("global_batch_size", "image_size", "sequence_length", "dtype", "device", "protocol")
    if row.error or not row.repetitions or row.strategy == "single" or row.model != single.model:
        return False
    return all(row.option(key) == single.option(key) for key in (*same, "cores_per_device"))


def _devices(row: Row) -> int:
    return int(row.option("devices") or 1)


def _keep_faster(
    best: dict[tuple[str, int], ScalingPoint], row: Row, point: ScalingPoint
) -> None:
    key = (row.strategy, point.devices)
    if key not in best or point.rate > best[key].rate:
        best[key] = point


def _predicted_ms(row: Row) -> float | None:
    return median_or_none([item.predicted_ms for item in row.repetitions])


def _simulated_point(row: Row) -> ScalingPoint:
    rate = 1e3 * float(row.option("global_batch_size") or 0) / _predicted_ms(row)
    return ScalingPoint(_devices(row), rate=rate, low=rate, high=rate, simulated=True)


def _point(item: Measured, devices: int) -> ScalingPoint:
    samples = float(item.row.option("global_batch_size") or 0)
    interval = item.summary.interval
    return ScalingPoint(
        devices,
        rate=1e3 * samples / item.summary.median,
        low=1e3 * samples / interval.high,
        high=1e3 * samples / interval.low,
    )
