"""Step time over the pipeline's split size, with predictions and the other strategies' levels."""

from dataclasses import dataclass

from ..analysis.labels import listing, time_text
from ..analysis.selection import Selection, series_label
from ..analysis.statistics import rivals, speed_up
from ..results.load import Results, Row
from . import marks
from .chart import Chart
from .chart_limits import fastest_series
from .measured import SHIFT, axis_title, color_key, error_label, point, samples, values_ms
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
    rows: list[marks.Datum]
    samples: list[marks.Datum]

    def layers(self, several: bool) -> list[marks.Layer]:
        """The prediction below everything, then line, samples, error bars and points."""
        known = [row | {"y": row["predicted"]} for row in self.rows if row["predicted"] is not None]
        small = {"size": 12, "fill": self.color, "strokeWidth": 0, "opacity": 0.75}
        return [
            marks.line(known, self.color if several else TEXT, 1.1),
            marks.line(self.rows, self.color, 2.5),
            marks.dots(self.samples, xOffset=SHIFT, **small),
            marks.intervals(self.rows),
            marks.dots(self.rows, shape=self.shape, size=120, fill=self.color),
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
    splits = sorted({item.split_size for item in items})
    places = {split: index for index, split in enumerate(splits)}
    baselines = {color_key(selection, row): row.time_ms for row in selection.baselines}
    predicted = [_prediction(item) for item in items]
    values = [value for item in items for value in values_ms(item)] + list(baselines.values())
    values += [value for value in predicted if value is not None]
    divisor, unit = marks.unit_of(max(values))
    low, high = min(values) / divisor, max(values) / divisor
    low, high = max(0.0, low - 0.28 * (high - low)), high + 0.06 * (high - low)
    low, high = marks.short(low), marks.short(high)
    error = error_label(selection, items)
    every = _every_series(found, best, places, divisor, error)
    levels = [_level(strategy, value, divisor) for strategy, value in baselines.items()]
    centre = "Mean" if selection.tutorial else "Median"
    title = "Split size (samples in a micro-batch)"
    x = marks.named([str(split) for split in splits], -0.5, len(splits) - 0.5, title=title)
    y = marks.quantity(f"{axis_title(selection)} ({unit})", low, high, grid=True, tickCount=7)
    entries = [
        marks.Entry(one.label, marks.LINE + one.shape, one.color, one.color) for one in every
    ]
    entries.append(marks.Entry(error, marks.INTERVAL, stroke=TEXT))
    entries.append(marks.Entry("one sample", marks.DOT, MUTED))
    if any(value is not None for value in predicted):
        entries.append(marks.Entry("simulator's prediction", marks.LINE, stroke=TEXT))
    layers = [
        *_level_layers(levels, high - low),
        *(part for one in every for part in one.layers(len(every) > 1)),
        *_best_layers(best, places, divisor),
    ]
    return Chart(
        "Split-size trade-off of the pipeline",
        selection.workload,
        f"{centre} over split size (samples in a micro-batch); splits are evenly spaced. "
        f"Error bar: {error}. Dot: one sample.{_best_note(selection, best)}{shown}",
        marks.described([row for one in every for row in one.rows] + levels),
        marks.view(max(520, 34 * len(splits)), _HEIGHT, x, y, layers),
        entries,
    )


def _prediction(item: Row) -> float | None:
    """Of one step, so it has no place beside whole training calls."""
    return None if item.tutorial else item.summary.predicted_ms


def _every_series(
    found: list[list[Row]],
    best: Row,
    places: dict[int, int],
    divisor: float,
    error: str,
) -> list[Series]:
    """The series of the best split has the pipeline's own colour."""
    every = []
    for index, items in enumerate(found):
        rows, dotted, label = [], [], series_label(items)
        for item in items:
            name, place = f"{label}, split {item.split_size}", places[item.split_size]
            known = _prediction(item)
            predicted = None if known is None else marks.short(known / divisor)
            words = "" if known is None else f"predicted {time_text(known)}"
            row = point(item, divisor, name, error, words)
            rows.append(row | {"x": place, "y": row["value"], "predicted": predicted})
            dotted += [
                row | {"x": place + _SAMPLES_AT, "y": row["value"]}
                for row in samples(item, divisor, name, width=11)
            ]
        color = _OWN if best in items else series_color(index)
        every.append(Series(label, color, marks.POINTS[index % len(marks.POINTS)], rows, dotted))
    return every


def _level(strategy: str, milliseconds: float, divisor: float) -> marks.Datum:
    names = {"single": "Single device", "single_all_cores": "Single, all cores"}
    text = f"{names.get(strategy, 'Model parallel')}\n{time_text(milliseconds)}"
    row = {"y": marks.short(milliseconds / divisor), "color": strategy_color(strategy)}
    return row | {"text": text, "words": text}


def _level_layers(rows: list[marks.Datum], span: float) -> list[marks.Layer]:
    """Horizontal lines, named at the right."""
    rule = {"type": "rule", "strokeWidth": 1.5}
    ends = {"x": marks.fixed(0), "x2": marks.fixed("width"), "y": "y"}
    whole = marks.layer(rows, rule, **ends, stroke="color", tooltip="words")
    return [whole, *marks.names_at_right(rows, span, _HEIGHT, marks.fixed("width"))]


def _best_layers(best: Row, places: dict[int, int], divisor: float) -> list[marks.Layer]:
    """A ring around the best split, and its name below."""
    place = places[best.split_size]
    name = f"best: split {best.split_size}\n{time_text(best.time_ms)}"
    row = {"x": place, "y": marks.short(best.time_ms / divisor), "text": name}
    row |= {"from": marks.short(min(values_ms(best)) / divisor)}
    side = "left" if place < 1 else "right" if place > len(places) - 2 else "center"
    foot = 38
    rule = {"type": "rule", "color": _OWN, "strokeWidth": 1.2, "yOffset": 8}
    ring = {"type": "point", "size": 320, "strokeWidth": 2, "color": _OWN, "opacity": 1}
    below = {"align": side, "baseline": "line-top", "lineHeight": 15, "dy": -foot}
    return [
        marks.layer([row], rule, x="x", y="from", y2=marks.fixed(f"height - {foot + 4}")),
        marks.layer([row], ring, x="x", y="y"),
        marks.texts([row], y=marks.fixed("height"), **below),
    ]


def _best_note(selection: Selection, best: Row) -> str:
    """How the best split stands to model parallel and to the other splits; "" if unknown."""
    words, beside = [], selection.model_parallel
    if beside and (ratio := speed_up(beside.summary, best.summary)):
        words.append(f"{ratio.value:.2f}\u00d7 as fast as model parallel")
    close = [str(row.split_size) for row in rivals(best, selection.splits)]
    if close:
        words.append(f"not significantly different from split {listing(close)}")
    return f" The best split, {best.split_size}, is {' and '.join(words)}." if words else ""


CHARTS = (Registered("split_size_tradeoff", 20, draw),)
