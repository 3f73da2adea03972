"""Renders report.html of rows that have a step."""

from dataclasses import replace

from ..analysis.labels import strategy_label
from ..analysis.selection import Selection
from ..charts.registry import ChartSet
from ..results.load import Results
from .facts import render_results
from .measurement import how_it_was_measured
from .sortable_table import NO_MARK, Choice, Table, choice, choices
from .summary import headlines, sentences, verdict
from .table import COLUMNS, build_table

_SORTED_AT_FIRST = (1, "ascending")


def render_report(results: Results, selection: Selection, charts: ChartSet) -> bytes:
    """The page with everything that the file can tell."""
    return render_results(
        results,
        charts,
        title=f"Parallelism strategies: {selection.workload or 'no working row'}",
        verdict=verdict(selection),
        headlines=headlines(selection),
        sentences=sentences(results, selection),
        table=_table(results, selection),
        measured=how_it_was_measured(results),
    )


def _table(results: Results, selection: Selection) -> Table:
    """The table with its filters, workload by workload, of each the fastest row first."""
    lines = build_table(results, selection)
    name, time, *others = COLUMNS
    time = replace(time, name="Mean time" if selection.tutorial else "Median time")
    strategies = choice("strategy", "Strategy", lines).words
    marks = choice("marks", "Marks", lines).words
    several = choices(lines, workload="Workload")
    return Table(
        "Table of all rows",
        f"{'Workload by workload, the f' if several else 'F'}astest first; a heading sorts by its "
        "column, and pointing at it says what it means.",
        [name, time, *others],
        lines,
        [
            *several,
            Choice("strategy", "Strategy", {name: strategy_label(name) for name in strategies}),
            choice("verification", "Verification", lines),
            Choice("marks", "Marks", {NO_MARK: NO_MARK} | marks),
        ],
        None if several else _SORTED_AT_FIRST,
    )
