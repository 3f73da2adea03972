"""Renders report.html: one file with everything inside, readable without network or JavaScript.

Charts are interactive where JavaScript runs. Beneath each lies an SVG image in a light and a dark
rendering that the reader's own setting chooses between; print takes the light one. A content policy
forbids every outside request and every script but the two of the page, known by their hashes.
"""

from __future__ import annotations

from .chart_types import ChartSet
from .load import Results
from .measurement import how_it_was_measured
from .page import listed, render_page
from .plotly_bundle import load_bundle
from .published_rules import Comparison
from .report_facts import configuration, footer, headline_cards, machine, subtitle
from .report_figures import render_figures
from .report_published import render_published
from .report_table import render_table
from .selection import Selection
from .summary import headlines, sentences
from .table import build_table


def render_report(
    results: Results,
    selection: Selection,
    charts: ChartSet,
    images: dict[str, dict[str, bytes]],
    published: list[Comparison],
) -> bytes:
    """The page; `images` holds each chart's SVG as {name: {"light": bytes, "dark": bytes}}."""
    bundle = load_bundle() if charts.charts else None
    return render_page(
        _title(selection),
        subtitle(results),
        [
            ("summary", "Summary", _summary(results, selection)),
            ("charts", "Charts", render_figures(charts, images)),
            ("published", "Published figures", render_published(published)),
            ("rows", "All rows", render_table(build_table(results, selection))),
            ("measured", "How it was measured", listed(how_it_was_measured(results))),
            ("configuration", "Configuration", configuration(results)),
            ("machine", "Machine", machine(results)),
        ],
        footer(results),
        bundle,
    )


def _title(selection: Selection) -> str:
    return f"Parallelism strategies: {selection.workload or 'no working row'}"


def _summary(results: Results, selection: Selection) -> str:
    return headline_cards(headlines(selection)) + listed(sentences(results, selection))
