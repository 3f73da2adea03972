"""Dots on bars: the most memory that each device of a row held."""

from ..analysis.labels import significant
from ..analysis.selection import Selection
from ..results.load import Results, Row
from . import marks
from .chart import Chart
from .chart_limits import fastest_bars
from .measured import color_key
from .registry import Drawn, Registered
from .theme import BACKGROUND, TEXT, strategy_color


def draw(_: Results, selection: Selection) -> Drawn:
    """One horizontal bar a row, as long as its fullest device; every device a dot."""
    found, shown = fastest_bars(selection)
    found = [(label, item, peaks) for label, item in found if (peaks := _peaks(item))]
    if not found:
        return "no row has its devices' memory"
    longest = max(max(peaks) for *_, peaks in found)
    divisor, unit = marks.byte_unit_of(longest)
    bars, dotted = [], []
    for place, (label, item, peaks) in enumerate(found):
        most, color = max(peaks) / divisor, strategy_color(color_key(selection, item))
        text = f"{significant(most)} {unit}"
        words = {"text": text, "words": marks.lines(label, f"{text} on the fullest device")}
        bars.append(marks.bar(place, marks.short(most), 0.31, color) | words | {"y": place})
        for index, peak in enumerate(peaks if len(peaks) > 1 else []):
            words = marks.lines(label, f"device {index}: {significant(peak / divisor)} {unit}")
            dotted.append({"x": marks.short(peak / divisor), "y": place, "words": words})
    layers = [
        marks.boxes(bars),
        marks.texts(bars, x="end", align="left", dx=9),
        marks.dots(dotted, size=34, fill=BACKGROUND, stroke=TEXT),
    ]
    entries = [marks.Entry("one device", marks.CIRCLE, BACKGROUND, TEXT)] if dotted else []
    held, high = f"Peak memory of a device ({unit})", longest / divisor
    x = marks.quantity(held, 0.0, high, grid=True, tickCount=marks.TICKS)
    return Chart(
        "Memory by device",
        selection.workload,
        "The most tensor memory that a device held during the timed steps; a bar is as "
        f"long as the row's fullest device.{shown}",
        f"Bars. {marks.described(bars)}",
        marks.lying([label for label, *_ in found], x, layers),
        entries,
    )


def _peaks(item: Row) -> list[float]:
    """The most bytes of each device over the repetitions, [device]."""
    peaks: dict[str, float] = {}
    for repetition in item.repetitions:
        for device in repetition.devices:
            if device.peak_memory_bytes:
                known = peaks.get(device.device, 0.0)
                peaks[device.device] = max(known, device.peak_memory_bytes)
    return list(peaks.values())


CHARTS = (Registered("memory", 70, draw),)
