"""The loss of trainings: over samples strategies lie on one another, over time they part."""

from collections.abc import Callable
from statistics import median

from ..analysis.labels import counted, significant, strategy_label
from ..results.training import Point, Training
from . import marks
from .chart import Chart
from .registry import Registered
from .theme import TEXT, strategy_color

_HEIGHT = 320
_MOST_POINTS = 600  # of a curve: more are not told apart on the picture
_WINDOW = 20  # lines of the log whose median is drawn
_TICK = 9  # pixels
_OF_TICKS = " Tick at the bottom: an update was skipped, because gradients were not finite."


def draw_over_samples(trainings: list[Training]) -> Chart:
    """All that trained the same work have one curve."""
    words = "Loss over samples", "Samples trained"
    # Curves that lie on one another are all seen: the first is the widest.
    return _draw(trainings, *words, lambda point: point.samples, wider=2.5)


def draw_over_time(trainings: list[Training]) -> Chart:
    """The seconds are those of steps, without evaluations."""
    return _draw(
        trainings, "Loss over time", "Seconds of training steps", lambda point: point.seconds
    )


def _draw(
    trainings: list[Training],
    title: str,
    axis: str,
    place: Callable[[Point], float],
    wider: float = 0.0,
) -> Chart:
    every = [_Curve(training, place) for training in trainings]
    values = [row["y"] for curve in every for row in [*curve.each, *curve.validation]]
    right = max(row["x"] for curve in every for row in curve.each)
    low, high = min(values), max(values)
    room = 0.06 * ((high - low) or abs(high) or 1.0)
    low, high = marks.short(low - room), marks.short(high + room)
    layers = [
        *(marks.line(curve.each, curve.color, 0.8, opacity=0.3) for curve in every),
        *(
            marks.line(curve.smooth, curve.color, 2.0 + wider * (len(every) - 1 - index))
            for index, curve in enumerate(every)
        ),
        *(
            marks.dots(curve.validation, shape="diamond", size=80, fill=curve.color)
            for curve in every
        ),
        *(_ticks(curve, index) for index, curve in enumerate(every) if curve.skips),
        marks.dots([curve.smooth[-1] for curve in every], size=60, fill=TEXT),
    ]
    config = trainings[0].config
    where = (
        f"{config.get('model')}, {config.get('loss')}, batch {config.get('global_batch_size')}, "
        f"{trainings[0].training_samples} samples"
    )
    x = marks.quantity(axis, 0.0, marks.short(right * 1.02), tickCount=marks.TICKS)
    y = marks.quantity("Loss", low, high, grid=True, tickCount=6)
    return Chart(
        title,
        f"{where}; {counted(len(trainings), 'training')}",
        f"Pale: each line of the log. Dark: the median of {_WINDOW} lines, to the training's end "
        "at the dot. Diamond: the validation set. The axis of losses does not start at zero."
        + (_OF_TICKS if any(curve.skips for curve in every) else ""),
        "; ".join(curve.words for curve in every) + ".",
        marks.view(560, _HEIGHT, x, y, layers),
        _entries(every),
    )


class _Curve:
    """One training's rows."""

    def __init__(self, training: Training, place: Callable[[Point], float]) -> None:
        """`place` says where a point stands on the horizontal axis."""
        self.color = strategy_color(training.strategy)
        mixed = training.config.get("mixed_precision", "none")
        label = strategy_label(training.strategy) + ("" if mixed == "none" else f", {mixed}")
        points = training.points
        smooth = [
            Point(point.step, point.samples, point.seconds, median(
                before.loss for before in points[max(0, index + 1 - _WINDOW) : index + 1]
            ))
            for index, point in enumerate(points)
        ]  # fmt: skip
        self.each = _rows(points, place, label)
        self.smooth = _rows(smooth, place, label)
        self.validation = _rows(training.evaluations, place, f"{label}, validation")
        self.skips = _skips(points, place, label)
        last = smooth[-1]
        self.label = label
        self.words = (
            f"{label}: from {significant(points[0].loss, 4)} to {significant(last.loss, 4)} in "
            f"{last.step} steps and {significant(last.seconds)} s"
        )
        if training.waiting is not None:
            self.words += f", {100 * training.waiting:.1f}% of it waiting for data"
        if skipped := sum(point.skipped for point in points):
            self.words += f", {counted(skipped, 'update')} skipped"


def _rows(points: list[Point], place: Callable[[Point], float], name: str) -> list[marks.Datum]:
    every = max(1, -(-len(points) // _MOST_POINTS))
    chosen = points[::every]
    if points and chosen[-1] is not points[-1]:
        chosen = [*chosen, points[-1]]
    return [
        {
            "x": marks.short(float(place(point))),
            "y": marks.short(point.loss),
            "words": marks.lines(
                name,
                f"loss {significant(point.loss, 4)}",
                f"step {point.step}, {significant(point.seconds)} s",
            ),
        }
        for point in chosen
    ]


def _skips(points: list[Point], place: Callable[[Point], float], name: str) -> list[marks.Datum]:
    """A row for each line of the log, or for several of a long one, with skipped updates."""
    every = max(1, -(-len(points) // _MOST_POINTS))
    rows = []
    for index in range(0, len(points), every):
        lines = points[index : index + every]
        skipped = sum(point.skipped for point in lines)
        if skipped == 0:
            continue
        last = lines[-1]
        words = marks.lines(
            name, f"{counted(skipped, 'update')} skipped", f"up to step {last.step}"
        )
        rows.append({"x": marks.short(float(place(last))), "words": words})
    return rows


def _ticks(curve: _Curve, index: int) -> marks.Layer:
    """Of the curves one above the other, from the axis on."""
    look = {"type": "tick", "orient": "vertical", "size": _TICK, "thickness": 1.6, "opacity": 1}
    y = marks.fixed(f"height - {_TICK * (index + 0.5):g}")
    return marks.layer(curve.skips, look | {"color": curve.color}, x="x", y=y, tooltip="words")


def _entries(every: list[_Curve]) -> list[marks.Entry]:
    entries = [marks.Entry(curve.label, marks.LINE, stroke=curve.color) for curve in every]
    if any(curve.validation for curve in every):
        entries.append(marks.Entry("validation", marks.DIAMOND, TEXT))
    if any(curve.skips for curve in every):
        entries.append(marks.Entry("update skipped", marks.BAR, stroke=TEXT))
    return entries


CHARTS = (
    Registered("loss_over_samples", 1, draw_over_samples, source="training"),
    Registered("loss_over_time", 2, draw_over_time, source="training"),
)
