"""The page's table of all rows, with its filters."""

from __future__ import annotations

from html import escape

from .labels import strategy_label
from .table import COLUMNS, Cell, TableRow

_NUMBERS = range(1, 10)
_SORTED_AT_FIRST = 1
# A table of more rows scrolls in its own frame, so that its headings stay in view.
_LONG = 30


def render_table(rows: list[TableRow]) -> str:
    """The filters (for JavaScript alone, which unhides them) and the table, fastest row first."""
    head = "".join(
        f'<th scope="col" title="{escape(meaning)}"{_number_class(index)}'
        f"{_sorted(index)}>{escape(name)}</th>"
        for index, (name, meaning) in enumerate(COLUMNS)
    )
    body = "\n".join(_row(row) for row in rows)
    return (
        f"{_filters(rows)}"
        f'<div class="scroll{" long" if len(rows) > _LONG else ""}" tabindex="0" role="region" '
        'aria-label="Table of all rows">'
        "<table data-sortable><caption>Fastest first; a heading sorts by its column, and pointing "
        "at it says what it means.</caption>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _filters(rows: list[TableRow]) -> str:
    strategies = {strategy_label(row.strategy): row.strategy for row in rows}
    verifications = dict.fromkeys(row.verification for row in rows)
    marks = dict.fromkeys(mark for row in rows for mark in row.marks)
    return (
        '<form class="filters" hidden aria-label="Filter the rows">'
        '<label>Text <input type="search" name="text" autocomplete="off" '
        'placeholder="part of a row"></label>'
        f"{_choice('Strategy', 'strategy', strategies)}"
        f"{_choice('Verification', 'verification', {item: item for item in verifications})}"
        f"{_choice('Marks', 'marks', {'no mark': 'no mark'} | {mark: mark for mark in marks})}"
        '<button type="reset">All rows</button>'
        f'<p role="status" class="muted">{len(rows):,} rows</p></form>'
    )


def _choice(label: str, name: str, values: dict[str, str]) -> str:
    options = "".join(
        f'<option value="{escape(value)}">{escape(text)}</option>' for text, value in values.items()
    )
    return (
        f'<label>{label} <select name="{name}"><option value="">all</option>{options}</select>'
        "</label>"
    )


def _row(row: TableRow) -> str:
    name, *cells = row.cells
    full_name = escape(name.detail).replace("/", "/<wbr>")
    first = (
        f'<th scope="row">{escape(name.text)}'
        f'<span class="detail">{full_name}</span></th>'
    )
    facts = (
        f' data-strategy="{escape(row.strategy)}" data-verification="{escape(row.verification)}"'
        f' data-marks="{escape(",".join(row.marks))}"'
    )
    if row.failed:
        rest = f'<td colspan="{len(COLUMNS) - 1}">{_text(cells[0])}</td>'
        return f'<tr class="failed"{facts}>{first}{rest}</tr>'
    rest = "".join(
        f"<td{_number_class(index)}{_key(cell)}>{_text(cell)}</td>"
        for index, cell in enumerate(cells, start=1)
    )
    return f"<tr{' class=best' if row.best else ''}{facts}>{first}{rest}</tr>"


def _text(cell: Cell) -> str:
    text = escape(cell.text)
    tone = {"passed": "good", "failed": "bad"}.get(cell.text)
    text = f'<span class="{tone}">{text}</span>' if tone else text
    return text + (f'<span class="detail">{escape(cell.detail)}</span>' if cell.detail else "")


def _key(cell: Cell) -> str:
    if cell.key is None:
        return ""
    value = f"{cell.key:.9g}" if isinstance(cell.key, float) else escape(str(cell.key))
    return f' data-key="{value}"'


def _number_class(index: int) -> str:
    return ' class="number"' if index in _NUMBERS else ""


def _sorted(index: int) -> str:
    return ' aria-sort="ascending"' if index == _SORTED_AT_FIRST else ""
