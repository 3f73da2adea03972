"""Throughput against the number of devices, with the line that perfect scaling would follow."""

from dataclasses import dataclass

from ..analysis.labels import strategy_label
from ..analysis.selection import Measured, Selection
from ..results.load import Results, Row
from .chart import Chart
from .marks import (
    CIRCLE,
    DASHES,
    DOTS,
    INTERVAL,
    Entry,
    Layer,
    described,
    dots,
    intervals,
    legend,
    line,
    lines,
    names_at_right,
    quantity,
    short,
)
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
    best = _best(results, single.row)
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
    ideal = [{"x": 0, "y": 0}, {"x": most, "y": short(origin.rate * most)}]
    entries = [Entry("ideal", DASHES, stroke=MUTED)]
    entries.append(Entry("interval of the median", INTERVAL, stroke=TEXT))
    if simulated:
        entries.append(Entry("simulated", DOTS + CIRCLE, BACKGROUND, MUTED))
    return Chart(
        "Throughput by number of devices",
        f"{selection.workload}; the best row of each strategy, the same global batch throughout",
        "Samples a second over devices, each with cores of its own. Dashed: a single device's "
        f"throughput times the number of devices.{_HOLLOW if simulated else ''}",
        described([row for found in rows.values() for row in found]),
        {
            "width": 470,
            "height": _HEIGHT,
            "encoding": {
                "x": quantity("Devices", 0.0, most * 1.04, values=devices, format="d"),
                "y": quantity("Samples a second", 0.0, top, grid=True, tickCount=6),
            },
            "layer": [
                line(ideal, MUTED, 1.4, strokeDash=[6, 4]),
                *(part for name, found in rows.items() for part in _layers(name, found)),
                *names_at_right([found[-1] for found in rows.values()], top, _HEIGHT, "x"),
                legend(entries, 3),
            ],
        },
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
    item = Measured(row)
    if not simulated:
        return None if shares else _measured(item, devices)
    predicted = item.summary.predicted_ms
    if shares != {"oversubscribed"} or predicted is None:
        return None
    rate = 1e3 * float(row.option("global_batch_size") or 0) / predicted
    return Rate(devices, rate, rate, rate, simulated=True)


def _measured(item: Measured, devices: int) -> Rate:
    thousands = 1e3 * float(item.row.option("global_batch_size") or 0)
    median, interval = item.summary.median, item.summary.interval
    return Rate(devices, thousands / median, thousands / interval.high, thousands / interval.low)


def _does_the_same(row: Row, single: Row) -> bool:
    if row.error or not row.repetitions or row.strategy == "single":
        return False
    same = row.summary.workload == single.summary.workload
    return same and row.option("cores_per_device") == single.option("cores_per_device")


def _row(strategy: str, rate: Rate, single: float) -> dict:
    """The point, with the "text" that names the line where it is the last."""
    label, share = strategy_label(strategy), f"{100.0 * rate.rate / (single * rate.devices):.0f}%"
    noun = "device" if rate.devices == 1 else "devices"
    reach = "simulated" if rate.simulated else f"{rate.low:.3g} to {rate.high:.3g}"
    source = ", simulated" if rate.simulated else ""
    return {
        "x": rate.devices,
        "y": short(rate.rate),
        "low": short(rate.low),
        "high": short(rate.high),
        "color": strategy_color(strategy),
        "simulated": rate.simulated,
        "text": f"{label}\n{rate.rate:.3g}/s, {share} of ideal{source}",
        "words": lines(
            f"{label}, {rate.devices} {noun}",
            f"{rate.rate:.3g} samples a second, {reach}",
            f"{share} of ideal",
        ),
    }


def _layers(strategy: str, rows: list[dict]) -> list[Layer]:
    """What was measured, and what was simulated, hollow, from its last point on."""
    color = strategy_color(strategy)
    measured = [row for row in rows if not row["simulated"]]
    simulated = [row for row in rows if row["simulated"]]
    return [
        line([measured[-1], *simulated], color, 2, strokeDash=[2, 4]),
        line(measured, color, 2.5),
        intervals(measured),
        dots(measured, fill=color),
        dots(simulated, size=55, fill=BACKGROUND, stroke=color, strokeWidth=2),
    ]


CHARTS = (Registered("scaling", 60, draw),)
