"""The comparison as a page of its own: comparison.html, one file with everything inside."""

from ..report.page import render_page
from ..report.sortable_table import NO_MARK, Cell, Column, Line, Table, choices
from .formatting import NONE, details, headline, notes, table
from .verdicts import Comparison, RowComparison, Timing, Verdict

_TONES = {Verdict.FASTER: "good", Verdict.FEWER: "good", Verdict.SAME: "good"}
_NUMBERS = ("Base", "Head", "Change", "Interval")
_MEANINGS = {
    "Base": "Median step time of a launch (launches)",
    "Head": "Median step time of a launch (launches)",
    "Change": "Of the step time; above zero is slower",
    "Interval": "Of the change, at the confidence given below",
    "Deterministic metrics": "What does not depend on the clock; sorted by how many differ",
}


def render_html(comparison: Comparison) -> bytes:
    """Outcome, table of the rows, what changed exactly, and how to read it."""
    sides = (comparison.base, comparison.head)
    timed = "" if comparison.deterministic_only else " Base and head: median step time of a launch."
    return render_page(
        "comparison.html",
        title="Comparison: " + ("regression" if comparison.regressions else "no regression found"),
        subtitle=" \u2192 ".join(", ".join(side.sources) for side in sides),
        headline=headline(comparison),
        table=_table(comparison),
        details=details(comparison),
        notes=notes(comparison),
        footer=f"Stratagem.{timed}",
    )


def _table(comparison: Comparison) -> Table:
    rows = table(comparison)
    names = ["Row", *(name for name in rows[0] if name != "Row")]
    lines = [
        _line(row, {name: shown[name] for name in names})
        for row, shown in zip(comparison.rows, rows, strict=True)
    ]
    order = "" if comparison.deterministic_only else ", then by change of the step time"
    return Table(
        "Table of the rows",
        f"Regressions first{order}; a heading sorts by its column.",
        [Column(name, _MEANINGS.get(name, ""), name in _NUMBERS) for name in names],
        lines,
        choices(lines, verdict="Verdict", marks="Marks"),
    )


def _line(row: RowComparison, shown: dict[str, str]) -> Line:
    """The row's cells under their columns; what is no quantity is sorted by its text."""
    keys = shown | _quantities(row)
    more = "bad" if any(change.regression for change in row.changes) else ""
    styles = {
        "Row": "name",
        "Verdict": _tone(row.timing),
        "Deterministic metrics": f"wrap {more}".strip(),
        "Marks": "wrap",
    }
    cells = [
        Cell(text, key=None if text == NONE else keys[name], style=styles.get(name, ""))
        for name, text in shown.items()
    ]
    facts = {"verdict": [row.timing.verdict.value], "marks": row.marks or [NO_MARK]}
    return Line(cells, facts)


def _quantities(row: RowComparison) -> dict[str, float | None]:
    """What the columns of quantities are sorted by."""
    timing, change = row.timing, row.timing.change
    return {
        "Base": timing.base_median,
        "Head": timing.head_median,
        "Change": change.ratio if change else None,
        "Interval": change.low if change else None,
        "Deterministic metrics": len(row.changes),
    }


def _tone(timing: Timing) -> str:
    """Of the time's verdict alone: deterministic metrics have a cell and a colour of their own."""
    slower = timing.verdict is Verdict.SLOWER or timing.broke
    return "bad" if slower else _TONES.get(timing.verdict, "")
