"""The comparison as a table for a terminal."""

from .formatting import details, headline, notes, table
from .verdicts import Comparison, RowComparison, Verdict

_COLOURS = {
    Verdict.SLOWER: "31",
    Verdict.MORE: "31",
    Verdict.FAILED: "31",
    Verdict.FASTER: "32",
    Verdict.FEWER: "32",
    Verdict.SAME: "32",
    Verdict.CANNOT_TELL: "33",
    Verdict.TOO_FEW: "33",
}
_TEXT = {"Verdict", "Row", "Interval", "Deterministic metrics", "Marks"}  # the others are numbers
_WIDEST = "Row"  # stands last


def render_console(comparison: Comparison, colour: bool) -> str:
    """The table, the changes of each row, and the notes. Base and head show (launches)."""
    rows = table(comparison)
    names = sorted(rows[0], key=lambda name: name == _WIDEST)
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in names}
    rule = "-" * (sum(widths.values()) + 2 * (len(widths) - 1))
    lines = [_line({name: name for name in names}, widths), rule]
    for row, shown in zip(comparison.rows, rows, strict=True):
        text = _line(shown, widths)
        lines.append(f"\x1b[{_code(row)}m{text}\x1b[0m" if colour else text)
    for name, changes in details(comparison):
        lines += ["", name] + [f"  {change}" for change in changes]
    lines += ["", headline(comparison)] + [f"- {note}" for note in notes(comparison)]
    return "\n".join(lines) + "\n"


def _code(row: RowComparison) -> str:
    return "31" if row.regression else _COLOURS[row.timing.verdict]


def _line(texts: dict[str, str], widths: dict[str, int]) -> str:
    padded = [
        texts[name].ljust(width) if name in _TEXT else texts[name].rjust(width)
        for name, width in widths.items()
    ]
    return "  ".join(padded).rstrip()
