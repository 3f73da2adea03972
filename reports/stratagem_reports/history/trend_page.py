"""Trends as a page of its own: trend.html, one file with everything inside."""

from ..analysis.labels import counted
from ..charts.chart import Chart
from ..charts.registry import ChartSet
from ..charts.trend import draw
from ..report.page import render_page
from ..report.sortable_table import Cell, Column, Line, Table, choices
from .points import STEP
from .trend import Change, Trend
from .trend_text import change_cells

_COLUMNS = (
    Column("Row"),
    Column("Hardware", "Digest of the fields that tell machines apart"),
    Column("Date", "Of the first run after the change"),
    Column("Change", "Of the mean, in per cent of the mean before", number=True),
    Column("Before", "Mean of the runs up to the change point before", number=True),
    Column("After", "Mean of the runs up to the next change point", number=True),
    Column("Commits", "The last before .. the first after"),
    Column("p", "Of Otava's t-test", number=True),
)
_SORTED_AT_FIRST = (2, "descending")


def render_html(trends: list[Trend], notes: list[str]) -> bytes:
    """Every change point in a table, newest first, and the chart of each series."""
    changes = sum(len(trend.changes) for trend in trends)
    charts = {f"trend_{number}": trend_chart(trend) for number, trend in enumerate(trends, 1)}
    return render_page(
        "trend.html",
        ChartSet(charts),
        title=f"Trends: {counted(changes, 'change point')} in {len(trends)} series",
        subtitle=f"{trends[0].metric}, {_span(trends)}",
        table=_table(trends),
        notes=notes,
        footer="Stratagem. Change points by Apache Otava, in the medians of the runs.",
    )


def trend_chart(trend: Trend) -> Chart:
    """The chart of a trend."""
    changes = [(change, change_cells(change, trend.unit)[1:]) for change in trend.changes]
    return draw(trend, changes, timed=trend.metric == STEP)


def _span(trends: list[Trend]) -> str:
    times = [run.time for trend in trends for run in trend.runs]
    return f"{min(times):%Y-%m-%d} to {max(times):%Y-%m-%d}"


def _table(trends: list[Trend]) -> Table:
    found = [(trend, change) for trend in trends for change in trend.changes]
    found.sort(key=lambda item: item[1].after.time, reverse=True)
    lines = [_line(trend, change) for trend, change in found]
    return Table(
        "Table of the change points",
        "Newest first; before and after are means. A heading sorts by its column.",
        _COLUMNS,
        lines,
        choices(lines, direction="Direction", hardware="Hardware"),
        _SORTED_AT_FIRST,
    )


def _line(trend: Trend, change: Change) -> Line:
    date, size, before, after, where, p_value = change_cells(change, trend.unit)
    last_before, _, first_after = where.partition("..")
    digest = trend.series.hardware.digest
    cells = [
        Cell(trend.series.name, style="name"),
        Cell(digest, key=digest),
        Cell(date, key=change.after.time.timestamp()),
        Cell(size, key=change.percent, style="bad" if change.worse else ""),
        Cell(before, key=change.mean_before),
        Cell(after, key=change.mean_after),
        Cell(f"{last_before}..", first_after, where),
        Cell(p_value, key=change.p_value),
    ]
    return Line(cells, {"direction": [change.direction], "hardware": [digest]})
