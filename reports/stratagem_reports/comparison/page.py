"""The comparison as a page of its own: comparison.html, one file with everything inside."""

from __future__ import annotations

from html import escape

from ..page import listed, render_page, simple_table
from .verdicts import Comparison, RowComparison, Verdict
from .words import COLUMNS, cells, details, headline, notes

_TONES = {Verdict.FASTER: "good", Verdict.SAME: "good"}


def render_html(comparison: Comparison) -> bytes:
    """Outcome, table of the rows, what changed exactly, and how to read it."""
    changes = "".join(
        f"<h3><code>{escape(name)}</code></h3>{listed(lines)}"
        for name, lines in details(comparison)
    )
    return render_page(
        "Comparison: " + ("regression" if comparison.regressions else "no regression found"),
        f"{', '.join(comparison.base.sources)} \u2192 {', '.join(comparison.head.sources)}",
        [
            ("summary", "Summary", f"<p>{escape(headline(comparison))}</p>"),
            ("rows", "Rows", _table(comparison)),
            ("changes", "What changed", changes or "<p>No exact metric changed.</p>"),
            ("method", "How to read this", listed(notes(comparison))),
        ],
        "Stratagem. Base and head: median step time of a launch (launches).",
    )


def _table(comparison: Comparison) -> str:
    columns = (COLUMNS[1], COLUMNS[0], *COLUMNS[2:])
    rows = []
    for row in comparison.rows:
        verdict, name, *rest = cells(row)
        tone = _tone(row)
        shown = f'<span class="{tone}">{escape(verdict)}</span>' if tone else escape(verdict)
        named = escape(name).replace("/", "/<wbr>")
        rows.append([f"<code>{named}</code>", shown, *(escape(cell) for cell in rest)])
    return simple_table("Regressions first, then by change of the step time", columns, rows)


def _tone(row: RowComparison) -> str:
    return "bad" if row.regression else _TONES.get(row.timing.verdict, "")
