"""What the Gantt charts show: the best and the worst split, and each other strategy's fastest row.

Timelines come from the repetition that is nearest to the row's median.
"""

from __future__ import annotations

from dataclasses import replace

from .chart_types import Gantt
from .gantt_crowding import readable
from .labels import STRATEGIES, row_label
from .load import Repetition
from .selection import Measured, Selection
from .statistics import median_or_none
from .timeline import Action

MOST_STRATEGIES = 6
_PREFIX = "gantt_"
_HATCHED = "Hatched: the device had nothing to do."


def gantt_names() -> list[str]:
    """The names of the charts that `strategy_gantts` may make of strategies known by name."""
    return [f"{_PREFIX}{strategy}" for strategy in STRATEGIES]


def split_gantt(selection: Selection, best: bool) -> Gantt | str:
    """The pipeline at its best or its worst split, or why there is no chart of it."""
    splits = selection.splits
    if not splits:
        return "no working pipeline row"
    if not best and len(splits) < 2:
        return "the pipeline was measured at one split only, so the worst is the best"
    pick = min if best else max
    measured = pick(splits, key=lambda item: item.time_ms)
    word, split = "Best" if best else "Worst", measured.row.split_size
    return (
        _gantt(
            selection,
            measured,
            f"{word} split: {row_label(measured.row)}",
            f"at the {word.lower()} split, {split}",
        )
        or f"the row of split {split} has no timeline"
    )


def strategy_gantts(selection: Selection) -> dict[str, Gantt | str]:
    """Of each strategy but the pipeline its fastest row, by the chart's name, the fastest first.

    In place of a chart stands the reason why there is none.
    """
    pipelined = {item for line in selection.pipelines for item in line}
    rows: dict[str, list[Measured]] = {}
    for item in selection.rows:
        if item not in pipelined:
            rows.setdefault(item.row.strategy, []).append(item)
    return {
        f"{_PREFIX}{strategy}": _strategy_gantt(selection, own, place)
        for place, (strategy, own) in enumerate(rows.items(), start=1)
    }


def _strategy_gantt(selection: Selection, rows: list[Measured], place: int) -> Gantt | str:
    if place > MOST_STRATEGIES:
        return f"timelines are drawn of the {MOST_STRATEGIES} fastest strategies"
    name = row_label(rows[0].row)
    which = f"{name}, the fastest of {len(rows):,} rows" if len(rows) > 1 else name
    return (
        _gantt(selection, rows[0], f"Median step: {name}", f"of {which}")
        or f"no timeline of {which}"
    )


def _gantt(selection: Selection, measured: Measured, title: str, where: str) -> Gantt | None:
    repetition = _representative(measured)
    if repetition is None:
        return None
    actions, pooled = readable(_by_rank(repetition))
    return Gantt(
        title=title,
        subtitle=f"{selection.workload}; the median step of repetition {repetition.index + 1}",
        actions=actions,
        caption=f"What each device did in the median step {where}. {_HATCHED}{pooled}",
    )


def _representative(measured: Measured) -> Repetition | None:
    """The repetition with a timeline whose samples lie closest to the row's median."""
    drawable = [item for item in measured.row.repetitions if item.timeline]
    median, tutorial = measured.summary.median, measured.row.tutorial

    def time_ms(item: Repetition) -> float:
        return sum(item.step_ms) if tutorial else median_or_none(item.step_ms) or 0.0

    return min(drawable, key=lambda item: abs(time_ms(item) - median), default=None)


def _by_rank(repetition: Repetition) -> list[Action]:
    """The timeline, its devices named with their ranks where there are several."""
    ranks = {use.device: use.rank for use in repetition.devices if use.rank is not None}
    if len(set(ranks.values())) < 2:
        return repetition.timeline
    names = {device: f"rank {rank}, {device}" for device, rank in ranks.items()}
    return [
        replace(action, device=names.get(action.device, action.device))
        for action in repetition.timeline
    ]
