"""Trends as a page of its own: trend.html, one file with everything inside."""

from __future__ import annotations

from html import escape

from ..page import listed, render_page, simple_table
from ..report_figures import picture
from .points import counted
from .trend import Trend
from .trend_text import change_cells, commits

_HEADINGS = ("Row", "Hardware", "Date", "Change", "Before", "After", "Commits", "p")

# Of each trend: the chart's SVG in a light and a dark rendering.
Pictures = list[dict[str, bytes]]


def render_html(trends: list[Trend], notes: list[str], pictures: Pictures) -> bytes:
    """Every change point in a table, newest first, and the chart of each series."""
    changes = sum(len(trend.changes) for trend in trends)
    return render_page(
        f"Trends: {counted(changes, 'change point')} in {len(trends)} series",
        f"{trends[0].metric}, {_span(trends)}",
        [
            ("changes", "Change points", _table(trends)),
            ("charts", "Charts", _figures(trends, pictures)),
            ("notes", "Notes", listed(notes) if notes else "<p>None.</p>"),
        ],
        "Stratagem. Change points by Apache Otava, in the medians of the runs.",
    )


def _span(trends: list[Trend]) -> str:
    times = [run.time for trend in trends for run in trend.runs]
    return f"{min(times):%Y-%m-%d} to {max(times):%Y-%m-%d}"


def _table(trends: list[Trend]) -> str:
    found = [(change.after.time, trend, change) for trend in trends for change in trend.changes]
    found.sort(key=lambda item: item[0], reverse=True)
    if not found:
        return "<p>No series changed.</p>"
    rows = [
        [
            f"<code>{escape(trend.series.name)}</code>",
            escape(trend.series.hardware.digest),
            *(escape(cell) for cell in change_cells(change, trend.unit)),
        ]
        for _, trend, change in found
    ]
    return simple_table("Newest first; before and after are means", _HEADINGS, rows)


def _figures(trends: list[Trend], pictures: Pictures) -> str:
    figures = "".join(
        f"<figure>{picture(images, _words(trend))}"
        f"<figcaption>{_words(trend)}</figcaption></figure>"
        for trend, images in zip(trends, pictures, strict=True)
    )
    return f'<div class="figures">{figures}</div>'


def _words(trend: Trend) -> str:
    """The chart for those who do not see it, as HTML."""
    points = [f"{change.size} {change.direction} at {commits(change)}" for change in trend.changes]
    text = (
        f"{trend.series.name} on {trend.series.machine}: {counted(len(trend.runs), 'run')}, "
        f"{'; '.join(points) or 'no change point'}"
    )
    return escape(text)
