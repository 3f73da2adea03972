"""Throughput against the number of devices, with the line that perfect scaling would follow."""

from dataclasses import dataclass

from ..analysis.labels import counted, significant, strategy_label
from ..analysis.selection import Selection
from ..results.load import Results, Row
from . import marks
from .chart import Chart
from .registry import Drawn, Registered
from .theme import BACKGROUND, MUTED, TEXT, strategy_color

_HEIGHT = 320
_HOLLOW = (
    " Hollow: simulated for more cores than there are, from the costs of one device at a time."
)
# Devices that share cores say nothing about how a strategy scales.
_NOT_ALONE = {"oversubscribed", "shared", "shared_cores", "straggler"}


@dataclass(frozen=True)
class Rate:
    """Throughput in samples a second, with its interval; a simulated one has none."""

    devices: int
    rate: float
    low: float
    high: float
    simulated: bool = False


def draw(results: Results, selection: Selection) -> Drawn:
    """The best row of each strategy at each number of devices, from the single device on."""
    single = selection.single
    if single is None:
        return "no working row of single"
    if selection.tutorial:
        return "rows measured as the tutorial measures have no throughput of a steady step"
    if not single.option("global_batch_size"):
        return "the row of single names no batch"
    best = _best(results, single)
    if all(rate.simulated for rate in best.values()):
        return "no working row of a strategy with several devices, each with cores of its own"
    origin = _measured(single, 1)
    series: dict[str, list[Rate]] = {}
    for (strategy, _), rate in sorted(best.items()):
        series.setdefault(strategy, [origin]).append(rate)
    rates = [rate for found in series.values() for rate in found]
    simulated = any(rate.simulated for rate in rates)
    rows = {
        name: [_row(name, rate, origin.rate) for rate in found] for name, found in series.items()
    }
    most = max(rate.devices for rate in rates)
    top = 1.08 * max(origin.rate * most, *(rate.high for rate in rates))
    devices = sorted({rate.devices for rate in rates})
    ideal = [{"x": 0, "y": 0}, {"x": most, "y": marks.short(origin.rate * most)}]
    entries = [marks.Entry("ideal", marks.DASHES, stroke=MUTED)]
    entries.append(marks.Entry("interval of the median", marks.INTERVAL, stroke=TEXT))
    if simulated:
        entries.append(marks.Entry("simulated", marks.DOTS + marks.CIRCLE, BACKGROUND, MUTED))
    layers = [
        marks.line(ideal, MUTED, 1.4, strokeDash=[6, 4]),
        *(part for name, found in rows.items() for part in _layers(name, found)),
        *marks.names_at_right([found[-1] for found in rows.values()], top, _HEIGHT, "x"),
    ]
    x = marks.quantity("Devices", 0.0, most * 1.04, values=devices, format="d")
    y = marks.quantity("Samples a second", 0.0, top, grid=True, tickCount=6)
    return Chart(
        "Throughput by number of devices",
        f"{selection.workload}; the best row of each strategy, the same global batch throughout",
        "Samples a second at the median step time over devices, each with cores of its own. "
        "Dashed: a single device's throughput times the number of devices."
        f"{_HOLLOW if simulated else ''}",
        marks.described([row for found in rows.values() for row in found]),
        marks.view(470, _HEIGHT, x, y, layers),
        entries,
    )


def _best(results: Results, single: Row) -> dict[tuple[str, int], Rate]:
    """The highest rate by (strategy, devices): measured, or simulated where there is none."""
    best: dict[tuple[str, int], Rate] = {}
    for simulated in (False, True):
        known = set(best)
        for row in results.rows:
            key = (row.strategy, int(row.option("devices") or 1))
            rate = _rate(row, key[1], simulated) if _does_the_same(row, single) else None
            if rate and key not in known and (key not in best or rate.rate > best[key].rate):
                best[key] = rate
    return best


def _rate(row: Row, devices: int, simulated: bool) -> Rate | None:
    """A row whose devices have cores of their own, measured; one that shares them, simulated."""
    shares = _NOT_ALONE & set(row.marks)
    if not simulated:
        return None if shares else _measured(row, devices)
    predicted = row.summary.predicted_ms
    if shares != {"oversubscribed"} or predicted is None:
        return None
    rate = 1e3 * float(row.option("global_batch_size") or 0) / predicted
    return Rate(devices, rate, rate, rate, simulated=True)


def _measured(row: Row, devices: int) -> Rate:
    thousands = 1e3 * float(row.option("global_batch_size") or 0)
    median, interval = row.summary.median, row.summary.interval
    return Rate(devices, thousands / median, thousands / interval.high, thousands / interval.low)


def _does_the_same(row: Row, single: Row) -> bool:
    if row.error or not row.repetitions or row.strategy == "single":
        return False
    same = row.summary.workload == single.summary.workload
    return same and row.option("cores_per_device") == single.option("cores_per_device")


def _row(strategy: str, rate: Rate, single: float) -> dict:
    """The point, with the "text" that names the line where it is the last."""
    label, share = strategy_label(strategy), f"{100.0 * rate.rate / (single * rate.devices):.0f}%"
    measured = f"{significant(rate.low)} to {significant(rate.high)}"
    reach = "simulated" if rate.simulated else measured
    source = ", simulated" if rate.simulated else ""
    return {
        "x": rate.devices,
        "y": marks.short(rate.rate),
        "low": marks.short(rate.low),
        "high": marks.short(rate.high),
        "color": strategy_color(strategy),
        "simulated": rate.simulated,
        "text": f"{label}\n{significant(rate.rate)}/s, {share} of ideal{source}",
        "words": marks.lines(
            f"{label}, {counted(rate.devices, 'device')}",
            f"{significant(rate.rate)} samples a second, {reach}",
            f"{share} of ideal",
        ),
    }


def _layers(strategy: str, rows: list[dict]) -> list[marks.Layer]:
    """What was measured, and what was simulated, hollow, from its last point on."""
    color = strategy_color(strategy)
    measured = [row for row in rows if not row["simulated"]]
    simulated = [row for row in rows if row["simulated"]]
    return [
        marks.line([measured[-1], *simulated], color, 2, strokeDash=[2, 4]),
        marks.line(measured, color, 2.5),
        marks.intervals(measured),
        marks.dots(measured, fill=color),
        marks.dots(simulated, size=55, fill=BACKGROUND, stroke=color, strokeWidth=2),
    ]


CHARTS = (Registered("scaling", 60, draw),)
