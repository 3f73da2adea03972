"""Renders report.md: the summary, the table, and links to the pictures beside it."""

from ..analysis.labels import markdown_text
from ..analysis.selection import Selection
from ..charts.registry import ChartSet
from ..results.load import Results
from .measurement import how_it_was_measured
from .sortable_table import Cell, Line
from .summary import sentences, verdict
from .table import COLUMNS, build_table


def render_markdown(results: Results, selection: Selection, charts: ChartSet) -> bytes:
    """The report as Markdown; the charts are the .png files of the same folder."""
    blocks = [
        f"# Parallelism strategies: {markdown_text(selection.workload or 'no working row')}",
        "## Summary",
        markdown_text(verdict(selection)),
        _list(sentences(results, selection)),
    ]
    if charts.charts:
        blocks.append("## Charts")
    for name, chart in charts.charts.items():
        alternative = markdown_text(chart.description)
        blocks += [f"![{alternative}]({name}.png)", markdown_text(chart.caption)]
    if charts.left_out:
        left_out = [f"`{name}`: {reason}" for name, reason in charts.left_out.items()]
        blocks += ["Left out, because the data cannot feed them:", _list(left_out)]
    headings = [column.name for column in COLUMNS]
    rows = [_cells(row) for row in build_table(results, selection)]
    blocks += ["## All rows", _table(headings, rows)]
    blocks += ["## How it was measured", _list(how_it_was_measured(results))]
    return ("\n\n".join(blocks) + "\n").encode("utf-8")


def _cells(row: Line) -> list[str]:
    name, *rest = row.cells
    cells = [name.detail, *(_cell(cell) for cell in rest)]
    return cells + [""] * (len(COLUMNS) - len(cells))


def _cell(cell: Cell) -> str:
    return f"{cell.text} ({cell.detail})" if cell.detail else cell.text


def _table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(markdown_text(cell) for cell in line)} |" for line in lines)


def _list(items: list[str]) -> str:
    return "\n".join(f"- {markdown_text(item)}" for item in items)
