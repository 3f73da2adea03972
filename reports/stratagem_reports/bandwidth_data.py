"""What bench_collectives measured, as a chart's values: bandwidth by message size."""

from __future__ import annotations

from .chart_types import Bandwidth, BandwidthPoint, BandwidthSeries
from .labels import sentence
from .load import Results
from .statistics import median_or_none

_BUS = "bus_gb_per_s"


def holds_collectives(results: Results) -> bool:
    """Whether the file is one of collectives: such rows have no step and no winner."""
    counters = [
        repetition.counters for row in results.rows for repetition in row.repetitions
    ]
    return bool(counters) and all(_BUS in item for item in counters)


def bandwidth(results: Results) -> Bandwidth:
    """The bus bandwidth of each collective over the message size, medians of the rounds."""
    lines: dict[str, list[BandwidthPoint]] = {}
    for row in results.rows:
        rates = [repetition.counters[_BUS] for repetition in row.repetitions]
        if row.error or not rates:
            continue
        size = row.repetitions[0].counters.get("bytes", 0.0)
        point = BandwidthPoint(size, median_or_none(rates), min(rates), max(rates))
        lines.setdefault(row.strategy, []).append(point)
    first = results.rows[0]
    backend = {"gloo": "Gloo", "nccl": "NCCL"}.get(first.model, first.model)
    return Bandwidth(
        title="Bandwidth of collectives by message size",
        subtitle=f"{backend}, {first.option('devices')} ranks",
        series=[
            BandwidthSeries(name, sentence(name), sorted(points, key=lambda point: point.size))
            for name, points in lines.items()
        ],
        caption="Bus bandwidth as nccl-tests defines it; bars reach from the slowest to the "
        "fastest round.",
    )
