"""The page's section of published figures: in words, those with a counterpart, and all of them."""

from __future__ import annotations

from html import escape

from .labels import listing
from .published import NOT_COMPARABLE, NOT_REPRODUCED, REPRODUCED, Source
from .published_rules import Comparison

NOTHING = "\u2013"
_HEADINGS = ("Figure", "Published", "Ours", "Verdict", "Why")
_TONES = {REPRODUCED: "good", NOT_REPRODUCED: "bad", NOT_COMPARABLE: "muted"}


def published_sentences(comparisons: list[Comparison]) -> list[str]:
    """One sentence a source: where its figures are from, and how ours stand to them."""
    return [_about(source, of) for source, of in _by_source(comparisons)]


def render_published(comparisons: list[Comparison]) -> str:
    """The sentences, the figures that rows of ours stand beside, and the whole tables folded."""
    words = "".join(f"<li>{escape(text)}</li>" for text in published_sentences(comparisons))
    beside = [item for item in comparisons if item.ours]
    body = f"<ul>{words}</ul>"
    if beside:
        body += _table("Published figures beside ours", beside)
    for source, of in _by_source(comparisons):
        rest = [item for item in of if not item.ours]
        if rest:
            title = f"{source.title}, {source.place}: {_counted(len(rest))} without a row of ours"
            body += f"<details><summary>{escape(title)}</summary>{_table(title, rest)}</details>"
    return body


def _about(source: Source, comparisons: list[Comparison]) -> str:
    counts = {
        verdict: sum(bool(item.ours) and item.verdict == verdict for item in comparisons)
        for verdict in (REPRODUCED, NOT_REPRODUCED, NOT_COMPARABLE)
    }
    rest = sum(not item.ours for item in comparisons)
    parts = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    if rest:
        parts.append(f"{rest} without a row here")
    return (
        f"{source.title}, {source.place}: {listing(parts)}. There: {source.setting}. "
        f"Reproduced means {source.tolerance}."
    )


def _by_source(comparisons: list[Comparison]) -> list[tuple[Source, list[Comparison]]]:
    sources = dict.fromkeys(item.source for item in comparisons)
    return [(source, [item for item in comparisons if item.source == source]) for source in sources]


def _table(caption: str, comparisons: list[Comparison]) -> str:
    head = "".join(
        f'<th scope="col"{_number(name)}>{name}</th>' for name in _HEADINGS
    )
    rows = "\n".join(_row(item) for item in comparisons)
    return (
        f'<div class="scroll published" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _counted(count: int) -> str:
    return f"{count} figure" if count == 1 else f"{count} figures"


def _number(heading: str) -> str:
    return ' class="number"' if heading in ("Published", "Ours") else ""


def _row(item: Comparison) -> str:
    return (
        f'<tr><th scope="row">{escape(item.name)}</th>'
        f'<td class="number">{escape(item.published)}</td>'
        f'<td class="number">{escape(item.ours or NOTHING)}</td>'
        f'<td><span class="{_TONES[item.verdict]}">{item.verdict}</span></td>'
        f"<td>{escape(item.why)}</td></tr>"
    )
