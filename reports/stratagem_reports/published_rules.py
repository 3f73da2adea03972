"""Sets published figures beside ours: reproduced, not reproduced, or not comparable and why.

A figure is comparable when what it depends on agrees: for the tutorial's ratios the model, batch,
image, devices, schedule and protocol; for a bubble rate the schedule, stages, micro-batches and
chunks, and a model of equal layers. Hardware differs always; the reason then names it. Rows whose
devices share cores, and rows that were found to compute something else, are never compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from .labels import listing, model_label, percent, schedule_label
from .load import Results, Row
from .published import (
    BUBBLE_TOLERANCE,
    GPIPE,
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    RATIO_TOLERANCE,
    REPRODUCED,
    TUTORIAL,
    TUTORIAL_FIGURES,
    ZERO_BUBBLE,
    BubbleRate,
    Source,
    Throughput,
    TutorialFigure,
    bubble_rates,
    throughputs,
)
from .row_numbers import bubble, verification
from .selection import Measured, Selection
from .statistics import Ratio, distinguishable, samples_ms, speed_up, summarise

_SHARING = {"oversubscribed", "shared", "shared_cores"}
_SCHEDULES_HERE = {"1f1b", "interleaved_1f1b", "zb_h1"}
_TUTORIAL_WORK = {
    "model": "resnet50",
    "global_batch_size": 120,
    "image_size": 128,
    "devices": 2,
    "protocol": "tutorial",
}
_WORDS = {
    "model": "model",
    "global_batch_size": "batch",
    "image_size": "image",
    "devices": "devices",
    "protocol": "protocol",
}


@dataclass(frozen=True)
class Comparison:
    """One published figure beside ours; `ours` is empty where no row stands for it."""

    source: Source
    name: str
    published: str
    ours: str
    verdict: str
    why: str


def compare_published(results: Results, selection: Selection) -> list[Comparison]:
    """Every published figure in the order of its source."""
    rows = [row for row in results.rows if row.error is None and row.repetitions]
    rows = [row for row in rows if not _SHARING & set(row.marks)]
    rows = [row for row in rows if verification(row)[0] != "failed"]
    return [
        *(_tutorial(figure, selection) for figure in TUTORIAL_FIGURES),
        *(_throughput(figure, rows) for figure in throughputs()),
        *(_bubble(figure, rows) for figure in bubble_rates()),
    ]


def verdict_of(ours: float, published: float, tolerance: float) -> str:
    """Reproduced when the distance is no larger than the tolerance, both in the same unit."""
    return REPRODUCED if abs(ours - published) <= tolerance + 1e-12 else NOT_REPRODUCED


def micro_batches(row: Row) -> int | None:
    """How many micro-batches the row's batch makes; None for a row without splits."""
    batch = row.option("global_batch_size")
    return -(-int(batch) // row.split_size) if batch and row.split_size else None


def _tutorial(figure: TutorialFigure, selection: Selection) -> Comparison:
    chosen = _tutorial_row(figure, selection)
    unsure = ""
    if figure.kind == "best split":
        published = f"{figure.value:.0f}"
        ours, verdict = _best_split(figure, selection)
    else:
        published = f"{figure.value:.2f}\u00d7"
        ratio = _tutorial_ratio(figure, selection, chosen)
        ours = "" if ratio is None else _range(ratio)
        verdict, unsure = _judge(ratio, figure.value) if ratio else (NOT_COMPARABLE, "")
    if not ours:
        why = f"no row for it: it takes {_takes(figure)}"
        return Comparison(TUTORIAL, figure.name, published, "", NOT_COMPARABLE, why)
    against = _differences(chosen)
    if against:
        return Comparison(TUTORIAL, figure.name, published, ours, NOT_COMPARABLE, listing(against))
    device = "CPU devices" if chosen.row.option("device") == "cpu" else "GPUs"
    why = f"same work and protocol, on two {device}{unsure}"
    return Comparison(TUTORIAL, figure.name, published, ours, verdict, why)


def _judge(ratio: Ratio, published: float) -> tuple[str, str]:
    """The verdict, and words for it where the ends of our interval would give another."""
    tolerance = RATIO_TOLERANCE * published
    verdict = verdict_of(ratio.value, published, tolerance)
    low, high = published - tolerance, published + tolerance
    inside = low <= ratio.low and ratio.high <= high
    outside = ratio.high < low or high < ratio.low
    sure = inside if verdict == REPRODUCED else outside
    return verdict, "" if sure else "; the ends of our interval would also allow the contrary"


def _tutorial_row(figure: TutorialFigure, selection: Selection) -> Measured | None:
    if figure.kind == "model parallel":
        return selection.model_parallel
    if figure.kind == "split":
        at = [item for item in selection.splits if item.row.split_size == figure.split]
        return at[0] if at else None
    return selection.best_pipeline


def _tutorial_ratio(
    figure: TutorialFigure, selection: Selection, chosen: Measured | None
) -> Ratio | None:
    """The ratio of the times that bars show, means under the tutorial's protocol."""
    single = selection.single
    if single is None or chosen is None:
        return None
    first, second = (
        (chosen, single) if figure.kind == "model parallel" else (single, chosen)
    )
    extremes = speed_up(first.summary, second.summary)
    return Ratio(first.time_ms / second.time_ms, extremes.low, extremes.high)


def _best_split(figure: TutorialFigure, selection: Selection) -> tuple[str, str]:
    best = selection.best_pipeline
    if best is None or len(selection.splits) < 2:
        return "", NOT_COMPARABLE
    close = [
        item.row.split_size
        for item in selection.splits
        if item is best or not distinguishable(best.summary, item.summary)
    ]
    others = [str(split) for split in close if split != best.row.split_size]
    ours = f"{best.row.split_size}"
    if others:
        ours += f", not told apart from {listing(others)}"
    return ours, REPRODUCED if figure.value in close else NOT_REPRODUCED


def _takes(figure: TutorialFigure) -> str:
    return {
        "model parallel": "single and model_parallel",
        "split": f"single and a pipeline at split {figure.split}",
        "best split": "a pipeline at two splits or more",
        "best": "single and a pipeline",
    }[figure.kind]


def _differences(chosen: Measured) -> list[str]:
    """What the row has otherwise than the tutorial, in words."""
    row, found = chosen.row, []
    for key, wanted in _TUTORIAL_WORK.items():
        value = row.model if key == "model" else row.option(key)
        value = "steady" if key == "protocol" and value is None else value
        if value != wanted:
            shown = [model_label(str(item)) for item in (value, wanted)]
            found.append(f"{_WORDS[key]} {shown[0]}, there {shown[1]}")
    schedule = row.option("schedule")
    if row.strategy == "pipeline" and schedule not in (None, "gpipe"):
        found.append(f"schedule {schedule_label(str(schedule))}, there GPipe's order")
    return found


def _throughput(figure: Throughput, rows: list[Row]) -> Comparison:
    name = (
        f"{figure.model}, {figure.stages} partitions, {_counted(figure.micro_batches)}"
    )
    published = f"{figure.value:.2f}\u00d7"
    if (figure.stages, figure.micro_batches) == (2, 1):
        why = "what the others are divided by"
        return Comparison(GPIPE, name, published, "", NOT_COMPARABLE, why)
    for row in rows:
        base = _base_of(row, rows) if _matches(row, figure, "gpipe") else None
        if base is not None and _transformer(row) == figure.model.startswith("Transformer"):
            times = [summarise(samples_ms(item)) for item in (base, row)]
            why = (
                f"{model_label(row.model)} with the same batch throughout and nothing "
                "re-materialized"
            )
            return Comparison(
                GPIPE, name, published, _range(speed_up(*times)), NOT_COMPARABLE, why
            )
    why = "no GPipe rows with so many devices and micro-batches, and with 2 and 1"
    return Comparison(GPIPE, name, published, "", NOT_COMPARABLE, why)


def _base_of(row: Row, rows: list[Row]) -> Row | None:
    """The row of the same work with two stages and one micro-batch."""
    same = ("global_batch_size", "sequence_length", "image_size", "dtype", "cores_per_device")
    for other in rows:
        if other.model != row.model or not _matches(other, Throughput("", 2, 1, 1.0), "gpipe"):
            continue
        if all(other.option(key) == row.option(key) for key in same):
            return other
    return None


def _bubble(figure: BubbleRate, rows: list[Row]) -> Comparison:
    label = "ZB-H2" if figure.schedule == "zb_h2" else schedule_label(figure.schedule)
    name = f"{label}, {figure.model}, {figure.stages} stages, {_counted(figure.micro_batches)}"
    published = percent(figure.value)
    if figure.schedule not in _SCHEDULES_HERE:
        why = f"there is no schedule {label} here"
        return Comparison(ZERO_BUBBLE, name, published, "", NOT_COMPARABLE, why)
    found = [row for row in rows if _matches(row, figure, figure.schedule)]
    found.sort(key=lambda row: not _transformer(row))
    for row in found:
        ours, _ = bubble(row)
        if ours is None:
            continue
        against = _against_bubble(row, figure)
        verdict = verdict_of(ours, figure.value, BUBBLE_TOLERANCE)
        why = f"schedule, stages and micro-batches agree; {model_label(row.model)} here"
        if against:
            verdict, why = NOT_COMPARABLE, against
        return Comparison(ZERO_BUBBLE, name, published, percent(ours), verdict, why)
    why = f"no {label} row with {figure.stages} devices and {_counted(figure.micro_batches)}"
    return Comparison(ZERO_BUBBLE, name, published, "", NOT_COMPARABLE, why)


def _against_bubble(row: Row, figure: BubbleRate) -> str:
    if not _transformer(row):
        return f"{model_label(row.model)} has no equal layers, so its stages differ"
    chunks = int(row.option("virtual_stages") or 1)
    if figure.schedule == "interleaved_1f1b" and chunks != figure.chunks:
        return f"{chunks} stages a device, there {figure.chunks}"
    return ""


def _matches(row: Row, figure: Throughput | BubbleRate, schedule: str) -> bool:
    return (
        row.strategy == "pipeline"
        and row.option("schedule") == schedule
        and row.option("devices") == figure.stages
        and micro_batches(row) == figure.micro_batches
    )


def _transformer(row: Row) -> bool:
    return row.model.startswith("gpt")


def _counted(count: int) -> str:
    return f"{count} micro-batch" if count == 1 else f"{count} micro-batches"


def _range(ratio: Ratio) -> str:
    return f"{ratio.value:.2f}\u00d7 ({ratio.low:.2f} to {ratio.high:.2f})"
