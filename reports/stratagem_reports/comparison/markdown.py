"""The comparison as Markdown, for a pull request's comment or a job's summary."""

from .formatting import details, headline, machine_notes, notes, table
from .verdicts import Comparison

_ALIGNMENT = {"Base": "--:", "Head": "--:", "Change": "--:", "Interval": ":-:"}


def render_markdown(comparison: Comparison) -> str:
    """A heading with the outcome, the table, the changed metrics, and the notes folded away.

    Only what differs between the machines stands outside as well: no reader may miss it.
    """
    lines = [f"### {headline(comparison)}", ""]
    for note in machine_notes(comparison):
        lines += [f"**{_escape(note)}**", ""]
    rows = table(comparison)
    lines += [_row(list(rows[0])), _row([_ALIGNMENT.get(name, ":--") for name in rows[0]])]
    for row, shown in zip(comparison.rows, rows, strict=True):
        verdict, name, *rest = shown.values()
        verdict = f"**{verdict}**" if row.regression else verdict
        lines.append(_row([verdict, f"`{name}`", *rest]))
    for name, changes in details(comparison):
        lines += ["", f"`{name}`"] + [f"- {_escape(change)}" for change in changes]
    lines += ["", "<details><summary>How to read this</summary>", ""]
    lines += [f"- {_escape(note)}" for note in notes(comparison)]
    if not comparison.deterministic_only:
        lines.append("- Base and head: median step time of a launch (launches).")
    lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _row(texts: list[str]) -> str:
    return "| " + " | ".join(_escape(text) for text in texts) + " |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
