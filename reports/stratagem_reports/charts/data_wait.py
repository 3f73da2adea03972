"""How much of a training's time its devices stood still for their batches."""

from ..analysis.labels import counted, significant, strategy_label
from ..results.training import Training
from . import marks
from .chart import Chart
from .registry import Registered
from .theme import strategy_color

_MOST_POINTS = 600  # of a curve


def draw_data_wait(trainings: list[Training]) -> Chart | str:
    """A line a training, from one line of its log to the next."""
    shown = [training for training in trainings if training.waiting is not None]
    if not shown:
        return "the logs do not say how long steps waited for data"
    curves = [_rows(training) for training in shown]
    colors = [strategy_color(training.strategy) for training in shown]
    labels = [strategy_label(training.strategy) for training in shown]
    high = max(1.0, *(row["y"] for rows in curves for row in rows)) * 1.05
    right = max(row["x"] for rows in curves for row in rows)
    layers = [marks.line(rows, color, 1.6) for rows, color in zip(curves, colors, strict=True)]
    entries = [
        marks.Entry(label, marks.LINE, stroke=color)
        for label, color in zip(labels, colors, strict=True)
    ]
    x = marks.quantity("Samples trained", 0.0, marks.short(right * 1.02), tickCount=marks.TICKS)
    y = marks.quantity("Waiting for data, %", 0.0, marks.short(high), grid=True, tickCount=5)
    return Chart(
        "Waiting for data",
        f"{shown[0].config.get('model')}, batch {shown[0].config.get('global_batch_size')}; "
        f"{counted(len(shown), 'training')}",
        "Part of the time from each line of the log to the next in which devices stood still "
        "until their batch came.",
        "; ".join(
            f"{label}: {100 * (training.waiting or 0):.1f}% of the steps' "
            f"{significant(training.points[-1].seconds)} s went into waiting"
            for label, training in zip(labels, shown, strict=True)
        )
        + ".",
        marks.view(560, 160, x, y, layers),
        entries,
    )


def _rows(training: Training) -> list[marks.Datum]:
    every = max(1, -(-len(training.points) // _MOST_POINTS))
    rows = []
    before = 0.0
    for index in range(0, len(training.points), every):
        lines = training.points[index : index + every]
        last = lines[-1]
        took = last.seconds - before
        before = last.seconds
        waited = sum(point.data_wait_ms or 0 for point in lines)
        part = 100 * waited / 1e3 / took if took > 0 else 0.0
        words = marks.lines(
            strategy_label(training.strategy),
            f"{significant(part)}% of {significant(took)} s",
            f"step {last.step}",
        )
        rows.append({"x": marks.short(float(last.samples)), "y": marks.short(part), "words": words})
    return rows


CHARTS = (Registered("data_wait", 3, draw_data_wait, source="training"),)
