"""Bars with marks: pipeline schedules, measured beside simulated and closed form."""

from ..analysis.labels import schedule_label, time_text
from ..analysis.selection import Selection
from ..analysis.statistics import counter, median_or_none
from ..results.load import Results, Row
from . import marks
from .chart import Chart
from .measured import axis_title, error_label, point, samples, values_ms
from .registry import Drawn, Registered
from .theme import BACKGROUND, TEXT, part_color, strategy_color

_SIMULATED, _CLOSED_FORM = part_color("communication_exposed"), part_color("optimizer")
_ENTRIES = (
    marks.Entry("simulated", marks.DIAMOND, BACKGROUND, _SIMULATED),
    marks.Entry("closed form", marks.BAR, stroke=_CLOSED_FORM),
    marks.Entry("one sample", marks.CIRCLE, TEXT),
)


def draw(_: Results, selection: Selection) -> Drawn:
    """One horizontal bar a schedule, slowest first, at the split that most were measured at."""
    by_split: dict[int | None, dict[str, Row]] = {}
    for item in selection.rows:
        schedule = item.option("schedule")
        if item.strategy == "pipeline" and schedule:
            by_split.setdefault(item.split_size, {}).setdefault(str(schedule), item)
    split, best = max(by_split.items(), key=lambda entry: len(entry[1]), default=(None, {}))
    if len(best) < 2 or selection.tutorial:
        return None
    found = sorted(best.items(), key=lambda entry: entry[1].time_ms, reverse=True)
    last = [
        max([*values_ms(item), item.summary.predicted_ms or 0.0, closed_form_ms(item) or 0.0])
        for _, item in found
    ]
    divisor, unit = marks.unit_of(max(last))
    error = error_label(selection, list(best.values()))
    bars, points = [], {"simulated": [], "closed form": [], "sample": []}
    for place, (name, item) in enumerate(found):
        label = schedule_label(name)
        row = _row(place, label, item, divisor, error)
        bars.append(row | {"last": marks.short(last[place] / divisor)})
        values = {"simulated": item.summary.predicted_ms, "closed form": closed_form_ms(item)}
        for what, value in values.items():
            if value is not None:
                words = marks.lines(label, f"{what} {time_text(value)}")
                points[what].append({"x": marks.short(value / divisor), "y": place, "words": words})
        points["sample"] += [
            row | {"x": row["value"], "y": place} for row in samples(item, divisor, label)
        ]
    title, high = f"{axis_title(selection)} ({unit})", max(last) / divisor
    x = marks.quantity(title, 0.0, high, grid=True, tickCount=marks.TICKS)
    return Chart(
        "Pipeline schedules",
        f"{selection.workload}, split {split}",
        "Median step time of each schedule at one split. Simulated: the schedule played with the "
        "calibrated costs of its stages. Closed form: what the devices computed on average, over "
        "one minus the schedule's ideal bubble, as if stages were equal and transfers free.",
        f"Bars. {marks.described([*bars, *points['simulated'], *points['closed form']])}",
        marks.lying([schedule_label(name) for name, _ in found], x, _layers(bars, points), each=50),
        [*_ENTRIES, marks.Entry(error, marks.INTERVAL, stroke=TEXT)],
    )


def closed_form_ms(item: Row) -> float | None:
    """The step if the devices' mean work stood beside the schedule's ideal bubble alone."""
    devices = [device for entry in item.calm for device in entry.devices]
    busy = [
        device.breakdown_ms.get("compute", 0.0) + device.breakdown_ms.get("optimizer", 0.0)
        for device in devices
        if device.breakdown_ms
    ]
    ideal = median_or_none([device.bubble.ideal for device in devices])
    return None if not busy or ideal is None else sum(busy) / len(busy) / (1.0 - ideal)


def _row(place: int, label: str, item: Row, divisor: float, error: str) -> marks.Datum:
    """The bar, with the most micro-batches whose activations a device held."""
    live = counter(item, "live_micro_batches")
    words = "" if live is None else f"{live:.0f} micro-batches alive at most"
    row = point(item, divisor, label, error, words)
    text = time_text(item.time_ms) + ("" if live is None else f", {live:.0f} live")
    return (
        row
        | marks.bar(place, row["value"], 0.28, strategy_color("pipeline"))
        | {"y": place, "text": text}
    )


def _layers(bars: list[marks.Datum], points: dict[str, list[marks.Datum]]) -> list[marks.Layer]:
    tick = {"type": "tick", "orient": "vertical", "size": 24, "thickness": 2.5, "opacity": 1}
    tick |= {"color": _CLOSED_FORM}
    diamond = {"shape": "diamond", "size": 80, "strokeWidth": 1.8}
    return [
        marks.boxes(bars, fillOpacity=0.45),
        marks.dots(points["sample"], size=20, fill=TEXT, strokeWidth=0, opacity=0.55),
        marks.intervals(bars, along="x"),
        marks.layer(points["closed form"], tick, x="x", y="y", tooltip="words"),
        marks.dots(points["simulated"], fill=BACKGROUND, stroke=_SIMULATED, **diamond),
        marks.texts(bars, x="last", align="left", dx=11),
    ]


CHARTS = (Registered("schedules", 80, draw),)
