"""The comparison as a table for a terminal."""

from .formatting import details, headline, notes, table
from .verdicts import Comparison, Verdict

_RED, _GREEN, _YELLOW = "31", "32", "33"
_COLOURS = {
    **dict.fromkeys((Verdict.SLOWER, Verdict.MORE, Verdict.FAILED), _RED),
    **dict.fromkeys((Verdict.FASTER, Verdict.FEWER, Verdict.SAME), _GREEN),
    **dict.fromkeys((Verdict.CANNOT_TELL, Verdict.TOO_FEW), _YELLOW),
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
        code = _RED if row.regression else _COLOURS[row.timing.verdict]
        lines.append(f"\x1b[{code}m{text}\x1b[0m" if colour else text)
    for name, changes in details(comparison):
        lines += ["", name] + [f"  {change}" for change in changes]
    lines += ["", headline(comparison)] + [f"- {note}" for note in notes(comparison)]
    return "\n".join(lines) + "\n"


def _line(texts: dict[str, str], widths: dict[str, int]) -> str:
    padded = [
        texts[name].ljust(width) if name in _TEXT else texts[name].rjust(width)
        for name, width in widths.items()
    ]
    return "  ".join(padded).rstrip()
