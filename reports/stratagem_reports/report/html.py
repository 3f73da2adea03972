"""Renders report.html: one file with everything inside, readable without network or JavaScript.

Charts are interactive where JavaScript runs; a picture stands in the place of each where it does
not, and in print. Their colours follow the reader's light or dark setting; print is light.
"""

from ..analysis.labels import strategy_label
from ..analysis.selection import Selection
from ..charts.registry import ChartSet
from ..results.load import Results
from .facts import render_results
from .measurement import how_it_was_measured
from .sortable_table import NO_MARK, Choice, Line, choice, choices, render_sortable
from .summary import headlines, sentences
from .table import COLUMNS, build_table

_SORTED_AT_FIRST = (1, "ascending")


def render_report(results: Results, selection: Selection, charts: ChartSet) -> bytes:
    """The page with everything that the file can tell."""
    return render_results(
        results,
        charts,
        f"Parallelism strategies: {selection.workload or 'no working row'}",
        headlines(selection),
        sentences(results, selection),
        _table(build_table(results, selection)),
        how_it_was_measured(results),
    )


def _table(lines: list[Line]) -> str:
    """The filters and the table, workload by workload, of each the fastest row first."""
    strategies = choice("strategy", "Strategy", lines).words
    marks = choice("marks", "Marks", lines).words
    several = choices(lines, workload="Workload")
    return render_sortable(
        "Table of all rows",
        f"{'Workload by workload, the f' if several else 'F'}astest first; a heading sorts by its "
        "column, and pointing at it says what it means.",
        list(COLUMNS),
        lines,
        [
            *several,
            Choice("strategy", "Strategy", {name: strategy_label(name) for name in strategies}),
            choice("verification", "Verification", lines),
            Choice("marks", "Marks", {NO_MARK: NO_MARK} | marks),
        ],
        None if several else _SORTED_AT_FIRST,
    )
