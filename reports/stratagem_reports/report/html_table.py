"""The report's table of all rows, with its filters."""

from ..analysis.labels import strategy_label
from .sortable_table import Choice, Line, choice, render_sortable
from .table import COLUMNS, TableRow

_SORTED_AT_FIRST = (1, "ascending")
_NO_MARK = "no mark"


def render_table(rows: list[TableRow]) -> str:
    """The filters and the table, workload by workload, of each the fastest row first."""
    lines = [_line(row) for row in rows]
    strategies = {row.strategy: strategy_label(row.strategy) for row in rows}
    marks = choice("marks", "Marks", lines).words
    workload = choice("workload", "Workload", lines)
    several = len(workload.words) > 1
    return render_sortable(
        "Table of all rows",
        f"{'Workload by workload, the f' if several else 'F'}astest first; a heading sorts by its "
        "column, and pointing at it says what it means.",
        list(COLUMNS),
        lines,
        [
            *([workload] if several else []),
            Choice("strategy", "Strategy", strategies),
            choice("verification", "Verification", lines),
            Choice("marks", "Marks", {_NO_MARK: _NO_MARK} | marks),
        ],
        None if several else _SORTED_AT_FIRST,
    )


def _line(row: TableRow) -> Line:
    facts = {
        "strategy": [row.strategy],
        "workload": [row.workload],
        "verification": [row.verification],
        "marks": row.marks or [_NO_MARK],
    }
    return Line(row.cells, facts, "failed" if row.failed else "best" if row.best else "")
