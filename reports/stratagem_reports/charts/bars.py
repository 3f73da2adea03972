"""Strategies as bars: mp_vs_rn and mp_vs_rn_vs_pp."""

from functools import partial

from ..analysis.labels import listing, schedule_label, time_text
from ..analysis.selection import Measured, Selection
from ..results.load import Results
from .chart import Chart
from .marks import (
    CIRCLE,
    INTERVAL,
    Entry,
    Row,
    boxes,
    described,
    dots,
    intervals,
    legend,
    named,
    quantity,
    texts,
    unit_of,
)
from .measured import SHIFT, axis_title, color_key, error_label, point, samples, values_ms
from .registry import Drawn, Registered
from .theme import BACKGROUND, MUTED, TEXT, strategy_color

_HALF = 0.31


def draw(_: Results, selection: Selection, with_pipeline: bool) -> Drawn:
    """Bars with error bars, the value and the relative speed above, every sample a dot."""
    found = _rows(selection, with_pipeline)
    if isinstance(found, str):
        return found
    error = error_label(selection, list(found.values()))
    longest = max(value for item in found.values() for value in values_ms(item))
    divisor, unit = unit_of(longest)
    bars, dotted = _marks(selection, found, divisor, error)
    centre = "mean" if selection.tutorial else "median"
    title = f"{axis_title(selection)} ({unit})"
    return Chart(
        "Model parallel, single device and pipeline"
        if with_pipeline
        else "Model parallel against a single device",
        selection.workload,
        f"Bar: {centre}. Error bar: {error}. Dot: one sample. "
        "The factor is the speed relative to the single device.",
        f"Bars. {described(bars)}",
        {
            "width": max(470, 120 * len(bars)),
            "height": 300,
            "params": [{"name": "folded", "value": False}],
            "usermeta": {"room": 75 + len(bars) * _name_width(list(found))},
            "encoding": {
                "x": named(list(found), -0.55, len(bars) - 0.45, folding=True),
                "y": quantity(title, 0.0, longest / divisor * 1.2, grid=True, tickCount=6),
            },
            "layer": [
                boxes(bars),
                texts(bars, text="time", fontWeight="bold", fontSize=12.5, dy=-22),
                texts(bars, text="factor", color=MUTED, dy=-9),
                dots(dotted, size=26, fill=BACKGROUND, stroke=TEXT, xOffset=SHIFT),
                intervals(bars, xOffset=-14),
                legend(
                    [
                        Entry(error, INTERVAL, stroke=TEXT),
                        Entry("one sample", CIRCLE, BACKGROUND, TEXT),
                    ],
                    1,
                ),
            ],
        },
    )


def _marks(
    selection: Selection, found: dict[str, Measured], divisor: float, error: str
) -> tuple[list[Row], list[Row]]:
    """The rows of the bars, and those of the samples on them."""
    bars, dotted = [], []
    for place, (label, item) in enumerate(found.items()):
        name = label.replace("\n", " ")
        speed = selection.single.time_ms / item.time_ms
        factor = "" if item is selection.single else f"{speed:.2f}\u00d7"
        count = f"{item.summary.count} samples"
        faster = factor and f"{factor} as fast as the single device"
        row = point(item, divisor, name, error, count, faster)
        bars.append(
            row
            | {
                "x": place,
                "start": place - _HALF,
                "end": place + _HALF,
                "top": row["value"],
                "bottom": 0,
                "y": max(values_ms(item)) / divisor,
                "color": strategy_color(color_key(selection, item)),
                "time": time_text(item.time_ms),
                "factor": factor,
            }
        )
        dotted += [
            row | {"x": place + 0.17, "y": row["value"]}
            for row in samples(item, divisor, name, width=26)
        ]
    return bars, dotted


def _name_width(names: list[str]) -> float:
    """The pixels of the widest line of a name, with the space around it."""
    return 8 + 6.2 * max(len(line) for name in names for line in name.split("\n"))


def _rows(selection: Selection, with_pipeline: bool) -> dict[str, Measured] | str:
    """The rows by their bars' labels, or which of them are missing."""
    pipeline = selection.charted_pipeline if with_pipeline else None
    needed = {"single": selection.single, "model_parallel": selection.model_parallel}
    needed |= {"pipeline": pipeline} if with_pipeline else {}
    missing = [name for name, item in needed.items() if item is None]
    if missing:
        return f"no working row of {listing(missing)}"
    rows = {"Model parallel": selection.model_parallel, "Single device": selection.single}
    if selection.single_all_cores:
        rows["Single, all cores"] = selection.single_all_cores
    if pipeline:
        schedule = pipeline.row.option("schedule")
        name = f"Pipeline, {schedule_label(str(schedule))}" if schedule else "Pipeline"
        best = " (best)" if pipeline is selection.best_pipeline else ""
        rows[f"{name}\nsplit {pipeline.row.split_size}{best}"] = pipeline
    return rows


CHARTS = (
    Registered("mp_vs_rn", 10, partial(draw, with_pipeline=False)),
    Registered("mp_vs_rn_vs_pp", 11, partial(draw, with_pipeline=True)),
)
