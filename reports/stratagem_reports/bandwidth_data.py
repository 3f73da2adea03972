"""What bench_collectives measured, as a chart's values: bandwidth by message size."""

from __future__ import annotations

from .chart_types import Bandwidth, BandwidthPoint, BandwidthSeries
from .labels import sentence
from .load import Results
from .statistics import median_or_none

BUS = "bus_gb_per_s"


def holds_collectives(results: Results) -> bool:
    """Whether the file is one of collectives: such rows have no step and no winner."""
    counters = [repetition.counters for row in results.rows for repetition in row.repetitions]
    return bool(counters) and all(BUS in item for item in counters)


def group_label(results: Results) -> str:
    """Who exchanged with whom, e.g. "Gloo, 2 ranks"."""
    first = results.rows[0]
    backend = {"gloo": "Gloo", "nccl": "NCCL"}.get(first.model, first.model)
    return f"{backend}, {first.option('devices')} ranks"


def bandwidth(results: Results) -> Bandwidth | str:
    """The bus bandwidth of each collective over the message size, medians of the rounds."""
    lines: dict[str, list[BandwidthPoint]] = {}
    for row in results.rows:
        rates = [repetition.counters[BUS] for repetition in row.repetitions]
        if row.error or not rates:
            continue
        size = row.repetitions[0].counters.get("bytes", 0.0)
        point = BandwidthPoint(size, median_or_none(rates), min(rates), max(rates))
        lines.setdefault(row.strategy, []).append(point)
    if not lines:
        return "no row worked in every round"
    return Bandwidth(
        title="Bandwidth of collectives by message size",
        subtitle=group_label(results),
        series=[
            BandwidthSeries(name, sentence(name), sorted(points, key=lambda point: point.size))
            for name, points in lines.items()
        ],
        caption="Bus bandwidth as nccl-tests defines it; bars reach from the slowest to the "
        "fastest round.",
    )
