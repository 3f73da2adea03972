"""Bus bandwidth of collectives over message size, both axes logarithmic."""

from dataclasses import dataclass

from ..analysis.labels import sentence, significant, size_text
from ..analysis.statistics import median_or_none
from ..results.load import Results
from . import marks
from .chart import Chart
from .registry import Drawn, Registered
from .theme import strategy_color

BUS = "bus_gb_per_s"
# One hue a collective: those of the strategies, of which this chart has none.
_STRATEGIES = ("pipeline", "model_parallel", "ddp", "tensor_parallel", "sequence_parallel")
_COLORS = tuple(map(strategy_color, (*_STRATEGIES, "ddp_model_parallel")))
_MOST_TICKS = 10
_DECADES = [10.0**power for power in range(-6, 7)]


@dataclass(frozen=True)
class Rate:
    """Gigabytes a second at a message size in bytes: the median round, the slowest, the fastest."""

    size: float
    rate: float
    low: float
    high: float


def holds_collectives(results: Results) -> bool:
    """Whether the file is one of collectives: such rows have no step and no winner."""
    counters = [repetition.counters for row in results.rows for repetition in row.repetitions]
    return bool(counters) and all(BUS in item for item in counters)


def group_label(results: Results) -> str:
    """Who exchanged with whom, e.g. "Gloo, 2 ranks"."""
    first = results.rows[0]
    backend = {"gloo": "Gloo", "nccl": "NCCL"}.get(first.model, first.model)
    return f"{backend}, {first.option('devices')} ranks"


def rates(results: Results) -> dict[str, list[Rate]]:
    """{collective: its rates by message size, ascending}, of the rows that worked."""
    found: dict[str, list[Rate]] = {}
    for row in results.rows:
        values = [repetition.counters[BUS] for repetition in row.calm]
        if row.error or not values:
            continue
        size = row.repetitions[0].counters.get("bytes", 0.0)
        rate = Rate(size, median_or_none(values), min(values), max(values))
        found.setdefault(row.strategy, []).append(rate)
    return {name: sorted(line, key=lambda rate: rate.size) for name, line in found.items()}


def draw(results: Results) -> Drawn:
    """One line a collective; bars from the slowest to the fastest round."""
    found = rates(results)
    if not found:
        return "no row worked in every round"
    every, layers, entries = [], [], []
    for index, (name, own) in enumerate(found.items()):
        color, shape = _COLORS[index % len(_COLORS)], marks.POINTS[index % len(marks.POINTS)]
        rows = [_row(sentence(name), rate) for rate in own]
        points = marks.dots(rows, shape=shape, size=110, fill=color)
        layers += [marks.line(rows, color, 2.2), marks.intervals(rows), points]
        entries.append(marks.Entry(sentence(name), marks.LINE + shape, color, color))
        every += rows
    values = [end for row in every for end in (row["low"], row["high"])]
    sizes = sorted({row["x"] for row in every})
    names = " : ".join(f"datum.value == {size} ? '{size_text(size)}'" for size in sizes)
    ticks = {"values": sizes[:: -(-len(sizes) // _MOST_TICKS)], "labelExpr": f"{names} : ''"}
    rate_axis = {"title": "Bus bandwidth (GB/s)", "format": "~g", "values": _DECADES}
    x = _logarithmic(sizes[0] / 1.4, sizes[-1] * 1.4, title="Message size", grid=False, **ticks)
    y = _logarithmic(0.8 * min(values), 1.25 * max(values), **rate_axis)
    return Chart(
        "Bandwidth of collectives by message size",
        group_label(results),
        "Bus bandwidth as nccl-tests defines it; bars reach from the slowest to the fastest round.",
        f"Bus bandwidth by message size. {marks.described(every)}",
        marks.view(560, 330, x, y, layers),
        entries,
    )


def _row(label: str, rate: Rate) -> dict:
    name = f"{label}, {size_text(rate.size)}"
    reach = f"{significant(rate.low)} to {significant(rate.high)}"
    words = marks.lines(name, f"{significant(rate.rate)} GB/s, {reach}")
    ends = {"low": marks.short(rate.low), "high": marks.short(rate.high)}
    return {"x": rate.size, "y": marks.short(rate.rate), "words": words} | ends


def _logarithmic(low: float, high: float, **axis: object) -> dict:
    scale = {"type": "log", "domain": [low, high], "nice": False}
    return {"type": "quantitative", "scale": scale, "axis": axis}


CHARTS = (Registered("bandwidth", 1, draw, source="collectives"),)
