"""The comparison as Markdown, for a pull request's comment or a job's summary."""

from ..analysis.labels import markdown_text
from .formatting import details, headline, machine_notes, notes, table
from .verdicts import Comparison

_ALIGNMENT = {"Base": "--:", "Head": "--:", "Change": "--:", "Interval": ":-:"}


def render_markdown(comparison: Comparison) -> str:
    """A heading with the outcome, the table, the changed metrics, and the notes folded away.

    Only what differs between the machines stands outside as well: no reader may miss it.
    """
    lines = [f"### {headline(comparison)}", ""]
    for note in machine_notes(comparison):
        lines += [f"**{markdown_text(note)}**", ""]
    rows = table(comparison)
    lines += [_row(list(rows[0])), _row([_ALIGNMENT.get(name, ":--") for name in rows[0]])]
    for row, shown in zip(comparison.rows, rows, strict=True):
        verdict, name, *rest = shown.values()
        verdict = f"**{verdict}**" if row.regression else verdict
        lines.append(_row([verdict, _code(name).replace("|", "\\|"), *map(markdown_text, rest)]))
    for name, changes in details(comparison):
        lines += ["", _code(name)] + [f"- {markdown_text(change)}" for change in changes]
    lines += ["", "<details><summary>How to read this</summary>", ""]
    lines += [f"- {markdown_text(note)}" for note in notes(comparison)]
    if not comparison.deterministic_only:
        lines.append("- Base and head: median step time of a launch (launches).")
    lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(name: str) -> str:
    return "`" + " ".join(name.replace("`", "'").split()) + "`"
