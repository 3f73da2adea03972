"""Stacked bars: what the memory of each row's fullest device is for when it is fullest."""

from ..analysis.labels import percent, sentence, significant
from ..analysis.selection import Selection
from ..results.launch import DeviceUse
from ..results.load import Results, Row
from . import marks
from .chart import Chart
from .chart_limits import fastest_bars
from .registry import Drawn, Registered
from .theme import BACKGROUND, TEXT, memory_color

_STATE = ("parameters", "gradients", "optimizer")
_CATEGORIES = (*_STATE, "activations", "communication", "staging", "other")
_HALF = 0.33
_OVERHANG = 0.12  # of the tick beyond its bar


def draw(_: Results, selection: Selection) -> Drawn:
    """One horizontal bar a row, whose parts add up to the peak; a tick ends the model's state."""
    rows, shown = fastest_bars(selection)
    found = [(label, device) for label, item in rows if (device := _fullest(item))]
    if not found:
        return "no row has its devices' memory by what it is for"
    totals = [sum(own.at_peak for own in device.memory.values()) for _, device in found]
    divisor, unit = marks.byte_unit_of(max(totals))
    present = _present([device for _, device in found])
    pieces, ticks, ends = [], [], []
    for place, ((label, device), total) in enumerate(zip(found, totals, strict=True)):
        pieces += _pieces(place, label, device, present, (divisor, unit))
        ticks += _tick(place, label, device, (divisor, unit))
        end = {"x": marks.short(total / divisor), "y": place}
        ends.append(end | {"text": f"{significant(total / divisor)} {unit}"})
    entries = [marks.Entry(sentence(name), marks.BOX, memory_color(name)) for name in present]
    if ticks:
        entries.append(marks.Entry("Model state by formula", marks.BAR, stroke=TEXT))
    reach = max([*totals, *(row["x"] * divisor for row in ticks)])
    high = reach / divisor
    x = marks.quantity(f"Memory ({unit})", 0.0, high, grid=True, tickCount=marks.TICKS)
    layers = [
        marks.boxes(pieces, stroke=BACKGROUND, strokeWidth=0.7),
        _rule(ticks, BACKGROUND, 4),
        _rule(ticks, TEXT, 2),
        marks.texts(ends, align="left", dx=9),
    ]
    return Chart(
        "Memory by purpose",
        f"{selection.workload}; the fullest device of a row, at the moment when it held most",
        "What the memory of a row's fullest device is for at its peak during the timed steps. The "
        "tick: where parameters, gradients and the optimizer's state end by formula. At the peak "
        f"some gradients may not have been made yet: the state then ends before it.{shown}",
        f"Stacked bars. {marks.described(pieces)}",
        marks.lying([label for label, _ in found], x, layers),
        entries,
    )


def _fullest(item: Row) -> DeviceUse | None:
    """Of all launches, the device that held most; None where nobody knows what for."""
    devices = [use for launch in item.repetitions for use in launch.devices if use.memory]
    return max(devices, key=lambda use: use.peak_memory_bytes or 0.0, default=None)


def _present(devices: list[DeviceUse]) -> list[str]:
    """The known purposes in their order, then any others; those that nothing was for left out."""
    held = dict.fromkeys(
        name for device in devices for name, own in device.memory.items() if own.at_peak > 0.0
    )
    known = [name for name in _CATEGORIES if name in held]
    return known + [name for name in held if name not in _CATEGORIES]


def _pieces(
    place: int, label: str, device: DeviceUse, present: list[str], unit: tuple[float, str]
) -> list[marks.Datum]:
    total = sum(own.at_peak for own in device.memory.values())
    found, at = [], 0.0
    for name in present:
        held = device.memory[name].at_peak if name in device.memory else 0.0
        if held <= 0.0:
            continue
        share = f"{percent(held / total)} of the peak"
        words = f"{sentence(name)} {significant(held / unit[0])} {unit[1]}, {share}"
        piece = {"start": marks.short(at / unit[0]), "end": marks.short((at + held) / unit[0])}
        piece |= {"top": place - _HALF, "bottom": place + _HALF, "color": memory_color(name)}
        found.append(piece | {"words": marks.lines(label, words)})
        at += held
    return found


def _tick(place: int, label: str, device: DeviceUse, unit: tuple[float, str]) -> list[marks.Datum]:
    """Where the model's state ends; [] where nothing says it."""
    formulas = [device.memory[name].formula for name in _STATE if name in device.memory]
    if not formulas or None in formulas:
        return []
    end = sum(formulas) / unit[0]
    words = marks.lines(label, f"model state by formula {significant(end)} {unit[1]}")
    half = _HALF + _OVERHANG
    return [{"x": marks.short(end), "top": place - half, "bottom": place + half, "words": words}]


def _rule(rows: list[marks.Datum], color: str, width: float) -> marks.Layer:
    rule = {"type": "rule", "color": color, "strokeWidth": width}
    return marks.layer(rows, rule, x="x", y="top", y2="bottom", tooltip="words")


CHARTS = (Registered("memory_by_category", 71, draw),)
