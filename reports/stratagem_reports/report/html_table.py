"""The report's table of all rows, with its filters."""

from ..analysis.labels import strategy_label
from .sortable_table import NO_MARK, Choice, Line, choice, choices, render_sortable
from .table import COLUMNS

_SORTED_AT_FIRST = (1, "ascending")


def render_table(lines: list[Line]) -> str:
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
