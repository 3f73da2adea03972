"""Renders report.html: one file with everything inside, readable without network or JavaScript.

Charts are interactive where JavaScript runs; a picture stands in the place of each where it does
not, and in print. Their colours follow the reader's light or dark setting; print is light. A
content policy forbids every outside request, and every script but the two of the page, which are
known by their hashes.
"""

from ..analysis.selection import Selection
from ..charts.registry import ChartSet
from ..results.load import Results
from .facts import render_results
from .html_table import render_table
from .measurement import how_it_was_measured
from .summary import headlines, sentences
from .table import build_table


def render_report(results: Results, selection: Selection, charts: ChartSet) -> bytes:
    """The page with everything that the file can tell."""
    return render_results(
        results,
        charts,
        f"Parallelism strategies: {selection.workload or 'no working row'}",
        headlines(selection),
        sentences(results, selection),
        render_table(build_table(results, selection)),
        how_it_was_measured(results),
    )
