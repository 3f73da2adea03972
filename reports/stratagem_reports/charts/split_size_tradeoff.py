"""Step time over the pipeline's split size, with predictions and the other strategies' levels."""

from dataclasses import dataclass

from ..analysis.labels import listing, time_text
from ..analysis.selection import Measured, Selection, series_label
from ..analysis.statistics import distinguishable, speed_up
from ..results.load import Results
from .chart import Chart
from .chart_limits import fastest_series
from .marks import (
    DOT,
    INTERVAL,
    LINE,
    POINTS,
    Entry,
    Layer,
    Row,
    described,
    dots,
    fixed,
    intervals,
    layer,
    legend,
    line,
    lines,
    named,
    names_at_right,
    quantity,
    short,
    texts,
    unit_of,
)
from .measured import SHIFT, axis_title, error_label, point, samples, values_ms
from .registry import Drawn, Registered
from .theme import MUTED, TEXT, series_color, strategy_color

_HEIGHT, _SAMPLES_AT = 350, 0.24
_OWN = strategy_color("pipeline")


@dataclass(frozen=True)
class Series:
    """One pipeline: a row a split with its "prediction" in milliseconds, and all their samples."""

    label: str
    color: str
    shape: str
    rows: list[Row]
    samples: list[Row]

    def layers(self, several: bool) -> list[Layer]:
        """The prediction below everything, then line, samples, error bars and points."""
        known = [row | {"y": row["predicted"]} for row in self.rows if row["predicted"] is not None]
        small = {"size": 12, "fill": self.color, "strokeWidth": 0, "opacity": 0.75}
        return [
            line(known, self.color if several else TEXT, 1.1),
            line(self.rows, self.color, 2.5),
            dots(self.samples, xOffset=SHIFT, **small),
            intervals(self.rows),
            dots(self.rows, shape=self.shape, size=120, fill=self.color),
        ]


def draw(_: Results, selection: Selection) -> Drawn:
    """Splits evenly spaced and all ticked, because 1 to 60 would crowd on a linear axis."""
    best = selection.best_pipeline
    if best is None:
        return "no working pipeline row"
    found, shown = fastest_series([line for line in selection.pipelines if len(line) > 1])
    items = [item for line in found for item in line]
    if best not in items:
        return "the pipeline was measured at one split only; it takes two or more"
    splits = sorted({item.row.split_size for item in items})
    places = {split: index for index, split in enumerate(splits)}
    levels = _levels(selection)
    predicted = [_prediction(item) for item in items]
    values = [value for item in items for value in values_ms(item)] + list(levels.values())
    values += [value for value in predicted if value is not None]
    divisor, unit = unit_of(max(values))
    low, high = min(values) / divisor, max(values) / divisor
    low, high = short(max(0.0, low - 0.28 * (high - low))), short(high + 0.06 * (high - low))
    error = error_label(selection, items)
    every = _every_series(found, best, places, divisor, error)
    level_rows = [_level(label, value, divisor) for label, value in levels.items()]
    centre = "Mean" if selection.tutorial else "Median"
    x = named([str(split) for split in splits], -0.5, len(splits) - 0.5)
    x["axis"]["title"] = "Split size (samples in a micro-batch)"
    y = quantity(f"{axis_title(selection)} ({unit})", low, high, grid=True, tickCount=7)
    entries = [Entry(one.label, LINE + one.shape, one.color, one.color) for one in every]
    entries += [Entry(error, INTERVAL, stroke=TEXT), Entry("one sample", DOT, MUTED)]
    if any(value is not None for value in predicted):
        entries.append(Entry("simulator's prediction", LINE, stroke=TEXT))
    return Chart(
        "Split-size trade-off of the pipeline",
        selection.workload,
        f"{centre} over split size (samples in a micro-batch); splits are evenly spaced. "
        f"Error bar: {error}. Dot: one sample.{shown}",
        described([row for one in every for row in one.rows] + level_rows),
        {
            "width": max(520, 34 * len(splits)),
            "height": _HEIGHT,
            "encoding": {"x": x, "y": y},
            "layer": [
                *_level_layers(level_rows, high - low),
                *(part for one in every for part in one.layers(len(every) > 1)),
                *_best_layers(selection, best, places, divisor),
                legend(entries, 2),
            ],
        },
    )


def _prediction(item: Measured) -> float | None:
    """Of one step, so it has no place beside whole training calls."""
    return None if item.row.tutorial else item.summary.predicted_ms


def _every_series(
    found: list[list[Measured]],
    best: Measured,
    places: dict[int, int],
    divisor: float,
    error: str,
) -> list[Series]:
    """The series of the best split has the pipeline's own colour."""
    every = []
    for index, items in enumerate(found):
        rows, dotted, label = [], [], series_label(items)
        for item in items:
            name, place = f"{label}, split {item.row.split_size}", places[item.row.split_size]
            known = _prediction(item)
            predicted = None if known is None else short(known / divisor)
            words = "" if known is None else f"predicted {time_text(known)}"
            row = point(item, divisor, name, error, words)
            rows.append(row | {"x": place, "y": row["value"], "predicted": predicted})
            dotted += [
                row | {"x": place + _SAMPLES_AT, "y": row["value"]}
                for row in samples(item, divisor, name, width=11)
            ]
        color = _OWN if best in items else series_color(index)
        every.append(Series(label, color, POINTS[index % len(POINTS)], rows, dotted))
    return every


def _levels(selection: Selection) -> dict[str, float]:
    """Milliseconds of the strategies that the pipeline is held against."""
    candidates = {
        "single": selection.single,
        "single_all_cores": selection.single_all_cores,
        "model_parallel": selection.model_parallel,
    }
    return {name: item.time_ms for name, item in candidates.items() if item}


def _level(strategy: str, milliseconds: float, divisor: float) -> Row:
    names = {"single": "Single device", "single_all_cores": "Single, all cores"}
    text = f"{names.get(strategy, 'Model parallel')}\n{time_text(milliseconds)}"
    row = {"y": short(milliseconds / divisor), "color": strategy_color(strategy)}
    return row | {"text": text, "words": text}


def _level_layers(rows: list[Row], span: float) -> list[Layer]:
    """Horizontal lines, named at the right."""
    rule = {"type": "rule", "strokeWidth": 1.5}
    ends = {"x": fixed(0), "x2": fixed("width"), "y": "y"}
    whole = layer(rows, rule, **ends, stroke="color", tooltip="words")
    return [whole, *names_at_right(rows, span, _HEIGHT, fixed("width"))]


def _best_layers(
    selection: Selection, best: Measured, places: dict[int, int], divisor: float
) -> list[Layer]:
    """A ring around the best split, and what there is to say of it below."""
    note, place = _best_note(selection, best), places[best.row.split_size]
    row = {"x": place, "y": short(best.time_ms / divisor), "text": note}
    row |= {"from": short(min(values_ms(best)) / divisor)}
    side = "left" if place < 1 else "right" if place > len(places) - 2 else "center"
    foot = 15 * (note.count("\n") + 1) + 8
    rule = {"type": "rule", "color": _OWN, "strokeWidth": 1.2, "yOffset": 8}
    ring = {"type": "point", "size": 320, "strokeWidth": 2, "color": _OWN, "opacity": 1}
    below = {"align": side, "baseline": "line-top", "lineHeight": 15, "dy": -foot}
    return [
        layer([row], rule, x="x", y="from", y2=fixed(f"height - {foot + 4}")),
        layer([row], ring, x="x", y="y"),
        texts([row], y=fixed("height"), **below),
    ]


def _best_note(selection: Selection, best: Measured) -> str:
    words = [f"best: split {best.row.split_size}, {time_text(best.time_ms)}"]
    if selection.model_parallel:
        ratio = speed_up(selection.model_parallel.summary, best.summary)
        words.append(f"{ratio.value:.2f}\u00d7 as fast as model parallel")
    rivals = [
        str(item.row.split_size)
        for item in selection.splits
        if item is not best and not distinguishable(best.summary, item.summary)
    ]
    if rivals:
        words.append(f"cannot tell it from split {listing(rivals)}")
    return lines(*words)


CHARTS = (Registered("split_size_tradeoff", 20, draw),)
