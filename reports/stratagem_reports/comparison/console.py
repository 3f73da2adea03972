"""The comparison as a table for a terminal."""

from __future__ import annotations

from .verdicts import Comparison, RowComparison, Verdict
from .words import COLUMNS, cells, details, headline, notes

_COLOURS = {
    Verdict.SLOWER: "31",
    Verdict.FAILED: "31",
    Verdict.FASTER: "32",
    Verdict.SAME: "32",
    Verdict.CANNOT_TELL: "33",
    Verdict.TOO_FEW: "33",
}
_ORDER = (0, 2, 3, 4, 5, 6, 1)  # the row's name last: it is the widest
_TEXT = (0, 5, 6)


def render_console(comparison: Comparison, colour: bool) -> str:
    """The table, the changes of each row, and the notes. Base and head show (launches)."""
    table = [_ordered(list(COLUMNS))] + [_ordered(cells(row)) for row in comparison.rows]
    widths = [max(len(line[column]) for line in table) for column in range(len(COLUMNS))]
    lines = [_line(table[0], widths), "-" * (sum(widths) + 2 * (len(widths) - 1))]
    for row, line in zip(comparison.rows, table[1:], strict=True):
        text = _line(line, widths)
        lines.append(f"\x1b[{_code(row)}m{text}\x1b[0m" if colour else text)
    for name, changes in details(comparison):
        lines += ["", name] + [f"  {change}" for change in changes]
    lines += ["", headline(comparison)] + [f"- {note}" for note in notes(comparison)]
    return "\n".join(lines) + "\n"


def _ordered(texts: list[str]) -> list[str]:
    return [texts[column] for column in _ORDER]


def _code(row: RowComparison) -> str:
    return "31" if row.regression else _COLOURS[row.timing.verdict]


def _line(texts: list[str], widths: list[int]) -> str:
    padded = [
        text.ljust(width) if column in _TEXT else text.rjust(width)
        for column, (text, width) in enumerate(zip(texts, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
