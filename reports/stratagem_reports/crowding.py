"""Keeps charts readable when a file has hundreds of rows: the fastest are drawn, and it is said."""

from __future__ import annotations

from .selection import Measured, Selection

MOST_BARS = 30
MOST_SERIES = 6


def fastest_bars(
    selection: Selection, labelled: list[tuple[str, Measured]]
) -> tuple[list[tuple[str, Measured]], str]:
    """The baselines and the fastest rows in the order given, and words for the caption."""
    if len(labelled) <= MOST_BARS:
        return labelled, ""
    baselines = [
        item
        for item in (selection.single, selection.single_all_cores, selection.model_parallel)
        if item
    ]
    others = [item for item in selection.rows if item not in baselines]
    kept = baselines + others[: MOST_BARS - len(baselines)]
    shown = [(label, item) for label, item in labelled if item in kept]
    return shown, f" Shown: the baselines and the fastest of {len(labelled):,} rows."


def fastest_series(lines: list[list[Measured]]) -> tuple[list[list[Measured]], str]:
    """The series with the fastest rows in the order given, and words for the caption."""
    if len(lines) <= MOST_SERIES:
        return lines, ""
    ranked = sorted(lines, key=lambda line: min(item.time_ms for item in line))
    kept = ranked[:MOST_SERIES]
    words = f" Shown: the {MOST_SERIES} of {len(lines)} series that hold the fastest rows."
    return [line for line in lines if line in kept], words
