"""Renders report.html: one file with everything inside, readable without network or JavaScript.

Charts are interactive where JavaScript runs; a picture stands in the place of each where it does
not, and in print. Their colours follow the reader's light or dark setting; print is light. A
content policy forbids every outside request, and every script but the two of the page, which are
known by their hashes.
"""

from ..analysis.selection import Selection
from ..charts.registry import ChartSet
from ..results.load import Results
from .facts import configuration, footer, headline_cards, machine, subtitle
from .figures import render_figures
from .html_table import render_table
from .measurement import how_it_was_measured
from .page import listed, render_page
from .summary import headlines, sentences
from .table import build_table


def render_report(results: Results, selection: Selection, charts: ChartSet) -> bytes:
    """The page with everything that the file can tell."""
    return render_page(
        _title(selection),
        subtitle(results),
        [
            ("summary", "Summary", _summary(results, selection)),
            ("charts", "Charts", render_figures(charts)),
            ("rows", "All rows", render_table(build_table(results, selection))),
            ("measured", "How it was measured", listed(how_it_was_measured(results))),
            ("configuration", "Configuration", configuration(results)),
            ("machine", "Machine", machine(results)),
        ],
        footer(results),
        charts=bool(charts.charts),
    )


def _title(selection: Selection) -> str:
    return f"Parallelism strategies: {selection.workload or 'no working row'}"


def _summary(results: Results, selection: Selection) -> str:
    return headline_cards(headlines(selection)) + listed(sentences(results, selection))
