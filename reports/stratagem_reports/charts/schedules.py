"""Bars with marks: pipeline schedules, measured beside simulated and closed form."""

from ..analysis.labels import schedule_label, time_text
from ..analysis.selection import Measured, Selection
from ..analysis.statistics import counter, median_or_none
from ..results.load import Results
from .chart import Chart
from .marks import (
    BAR,
    CIRCLE,
    DIAMOND,
    INTERVAL,
    Entry,
    Row,
    bar,
    boxes,
    described,
    dots,
    intervals,
    layer,
    legend,
    lines,
    lying,
    short,
    texts,
    unit_of,
)
from .measured import error_label, point, samples, values_ms
from .registry import Drawn, Registered
from .theme import BACKGROUND, TEXT, part_color, strategy_color

_SIMULATED, _CLOSED_FORM = part_color("communication_exposed"), part_color("optimizer")


def draw(_: Results, selection: Selection) -> Drawn:
    """One horizontal bar a schedule, slowest first, at the split that most were measured at."""
    by_split: dict[int | None, dict[str, Measured]] = {}
    for item in selection.rows:
        schedule = item.row.option("schedule")
        if item.row.strategy == "pipeline" and schedule:
            by_split.setdefault(item.row.split_size, {}).setdefault(str(schedule), item)
    split, best = max(by_split.items(), key=lambda entry: len(entry[1]), default=(None, {}))
    if len(best) < 2 or selection.tutorial:
        return None
    found = sorted(best.items(), key=lambda entry: entry[1].time_ms, reverse=True)
    last = [
        max([*values_ms(item), item.summary.predicted_ms or 0.0, closed_form_ms(item) or 0.0])
        for _, item in found
    ]
    divisor, unit = unit_of(max(last))
    error = error_label(selection, list(best.values()))
    bars, marks = [], {"simulated": [], "closed form": [], "sample": []}
    for place, (name, item) in enumerate(found):
        label = schedule_label(name)
        row = _row(place, label, item, divisor, error) | {"last": short(last[place] / divisor)}
        bars.append(row)
        expected = {"simulated": item.summary.predicted_ms, "closed form": closed_form_ms(item)}
        for what, value in expected.items():
            if value is not None:
                words = lines(label, f"{what} {time_text(value)}")
                marks[what].append({"x": short(value / divisor), "y": place, "words": words})
        marks["sample"] += [
            row | {"x": row["value"], "y": place} for row in samples(item, divisor, label)
        ]
    names, high = [schedule_label(name) for name, _ in found], 1.03 * max(last) / divisor
    return Chart(
        "Pipeline schedules",
        f"{selection.workload}, split {split}",
        "Step time of each schedule at one split. Simulated: the schedule played with the "
        "calibrated costs of its stages. Closed form: what the devices computed on average, over "
        "one minus the schedule's ideal bubble, as if stages were equal and transfers free.",
        f"Bars. {described([*bars, *marks['simulated'], *marks['closed form']])}",
        lying(names, f"Step time ({unit})", high, _layers(bars, marks, error), each=50),
    )


def closed_form_ms(item: Measured) -> float | None:
    """The step if the devices' mean work stood beside the schedule's ideal bubble alone."""
    devices = [device for entry in item.row.repetitions for device in entry.devices]
    busy = [
        device.breakdown_ms.get("compute", 0.0) + device.breakdown_ms.get("optimizer", 0.0)
        for device in devices
        if device.breakdown_ms
    ]
    ideal = median_or_none([device.bubble_ideal for device in devices])
    return None if not busy or ideal is None else sum(busy) / len(busy) / (1.0 - ideal)


def _row(place: int, label: str, item: Measured, divisor: float, error: str) -> Row:
    """The bar, with the most micro-batches whose activations a device held."""
    live = counter(item.row, "live_micro_batches")
    words = "" if live is None else f"{live:.0f} micro-batches alive at most"
    row = point(item, divisor, label, error, words)
    text = time_text(item.time_ms) + ("" if live is None else f", {live:.0f} live")
    return (
        row
        | bar(place, row["value"], 0.28, strategy_color("pipeline"))
        | {"y": place, "text": text}
    )


def _layers(bars: list[Row], marks: dict[str, list[Row]], error: str) -> list[dict]:
    tick = {"type": "tick", "orient": "vertical", "size": 24, "thickness": 2.5, "opacity": 1}
    tick |= {"color": _CLOSED_FORM}
    diamond = {"shape": "diamond", "size": 80, "strokeWidth": 1.8}
    return [
        boxes(bars, fillOpacity=0.45),
        dots(marks["sample"], size=20, fill=TEXT, strokeWidth=0, opacity=0.55),
        intervals(bars, along="x"),
        layer(marks["closed form"], tick, x="x", y="y", tooltip="words"),
        dots(marks["simulated"], fill=BACKGROUND, stroke=_SIMULATED, **diamond),
        texts(bars, x="last", align="left", dx=11),
        legend(
            [
                Entry("simulated", DIAMOND, BACKGROUND, _SIMULATED),
                Entry("closed form", BAR, stroke=_CLOSED_FORM),
                Entry("one sample", CIRCLE, TEXT),
                Entry(error, INTERVAL, stroke=TEXT),
            ],
            4,
        ),
    ]


CHARTS = (Registered("schedules", 80, draw),)
