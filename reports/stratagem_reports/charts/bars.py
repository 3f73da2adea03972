"""Strategies as bars: mp_vs_rn and mp_vs_rn_vs_pp."""

from functools import partial

from ..analysis.labels import listing, schedule_label, time_text
from ..analysis.selection import Selection
from ..analysis.statistics import speed_up
from ..results.load import Results, Row
from . import marks
from .chart import Chart
from .measured import SHIFT, axis_title, color_key, error_label, point, samples, values_ms
from .registry import Drawn, Registered
from .theme import BACKGROUND, MUTED, TEXT, strategy_color

_HALF = 0.31
_LETTERS = 9  # of a bar's name on a line of a narrow chart


def draw(_: Results, selection: Selection, with_pipeline: bool) -> Drawn:
    """Bars with error bars, the value and the relative speed above, every sample a dot."""
    found = _rows(selection, with_pipeline)
    if isinstance(found, str):
        return found
    error = error_label(selection, list(found.values()))
    longest = max(value for item in found.values() for value in values_ms(item))
    divisor, unit = marks.unit_of(longest)
    bars, dotted = _marks(selection, found, divisor, error)
    centre = "mean" if selection.tutorial else "median"
    x = marks.named(list(found), -0.55, len(bars) - 0.45, letters=_LETTERS)
    title = f"{axis_title(selection)} ({unit})"
    y = marks.quantity(title, 0.0, longest / divisor * 1.2, grid=True, tickCount=6)
    entries = [
        marks.Entry(error, marks.INTERVAL, stroke=TEXT),
        marks.Entry("one sample", marks.CIRCLE, BACKGROUND, TEXT),
    ]
    layers = [
        marks.boxes(bars),
        marks.texts(bars, text="time", fontWeight="bold", fontSize=12.5, dy=-22),
        marks.texts(bars, text="factor", color=MUTED, dy=-9),
        marks.dots(dotted, size=26, fill=BACKGROUND, stroke=TEXT, xOffset=SHIFT),
        marks.intervals(bars, xOffset=-14),
    ]
    narrow = marks.narrowing(75 + len(bars) * _name_width(list(found)))
    return Chart(
        "Model parallel, single device and pipeline"
        if with_pipeline
        else "Model parallel against a single device",
        selection.workload,
        f"Bar: {centre}. Error bar: {error}. Dot: one sample. "
        "The factor is the speed relative to the single device, as the table has it.",
        f"Bars. {marks.described(bars)}",
        marks.view(max(470, 120 * len(bars)), 300, x, y, layers) | narrow,
        entries,
    )


def _marks(
    selection: Selection, found: dict[str, Row], divisor: float, error: str
) -> tuple[list[marks.Datum], list[marks.Datum]]:
    """The rows of the bars, and those of the samples on them."""
    bars, dotted = [], []
    for place, (label, item) in enumerate(found.items()):
        name = label.replace("\n", " ")
        ratio = speed_up(selection.single.summary, item.summary)
        factor = f"{ratio.value:.2f}\u00d7" if ratio and item is not selection.single else ""
        count = f"{item.summary.count} samples"
        faster = factor and f"{factor} as fast as the single device"
        row = point(item, divisor, name, error, count, faster)
        box = {"start": place - _HALF, "end": place + _HALF, "top": row["value"], "bottom": 0}
        box |= {"color": strategy_color(color_key(selection, item))}
        words = {"time": time_text(item.time_ms), "factor": factor}
        above = {"x": place, "y": max(values_ms(item)) / divisor}
        bars.append(row | box | words | above)
        dotted += [
            row | {"x": place + 0.17, "y": row["value"]}
            for row in samples(item, divisor, name, width=26)
        ]
    return bars, dotted


def _name_width(names: list[str]) -> float:
    """The pixels of the widest line of a name, with the space around it."""
    return 8 + 6.2 * max(len(line) for name in names for line in name.split("\n"))


def _rows(selection: Selection, with_pipeline: bool) -> dict[str, Row] | str:
    """The rows by their bars' labels, or which of them are missing."""
    pipeline = selection.charted_pipeline if with_pipeline else None
    needed = {"single": selection.single, "model_parallel": selection.model_parallel}
    if with_pipeline:
        needed["pipeline"] = pipeline
    missing = [name for name, item in needed.items() if item is None]
    if missing:
        return f"no working row of {listing(missing)}"
    rows = {"Model parallel": selection.model_parallel, "Single device": selection.single}
    if selection.single_all_cores:
        rows["Single, all cores"] = selection.single_all_cores
    if pipeline:
        schedule = pipeline.option("schedule")
        name = f"Pipeline, {schedule_label(str(schedule))}" if schedule else "Pipeline"
        best = " (best)" if pipeline is selection.best_pipeline else ""
        rows[f"{name}\nsplit {pipeline.split_size}{best}"] = pipeline
    return rows


CHARTS = (
    Registered("mp_vs_rn", 10, partial(draw, with_pipeline=False)),
    Registered("mp_vs_rn_vs_pp", 11, partial(draw, with_pipeline=True)),
)
