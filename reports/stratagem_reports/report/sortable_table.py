"""A table that the reader sorts by its headings and, where it has many rows, filters.

`table.js` does both from what stands in the table as data. Without JavaScript the table
stays in the order of its rows.
"""

from dataclasses import dataclass, field
from html import escape

# What a row without a mark has in the choice of marks.
NO_MARK = "no mark"
# No more rows than these are all seen at once and need no filter.
_FEW = 5
# A table of more rows scrolls in its own frame, so that its headings stay in view.
_LONG = 30


@dataclass(frozen=True)
class Column:
    """A heading, what it means (shown where the pointer rests), and whether it is of numbers."""

    name: str
    meaning: str = ""
    number: bool = False


@dataclass(frozen=True)
class Cell:
    """Text, an optional second line, what to sort by (None sorts last), and a class of the style.

    The first cell of a row names it and is sorted by its text.
    """

    text: str = "\u2013"
    detail: str = ""
    key: float | str | None = None
    style: str = ""


@dataclass(frozen=True)
class Line:
    """A row of the table; where it has fewer cells than columns the last one spans the rest.

    `facts` are its values by the name of a choice; `style` is a class of the style.
    """

    cells: list[Cell]
    facts: dict[str, list[str]] = field(default_factory=dict)
    style: str = ""


@dataclass(frozen=True)
class Choice:
    """A filter by one fact of the lines: its label, and the words for each value."""

    name: str
    label: str
    words: dict[str, str]


def choice(name: str, label: str, lines: list[Line]) -> Choice:
    """The choice between all values that the lines have of a fact."""
    return Choice(name, label, {value: value for line in lines for value in line.facts[name]})


def choices(lines: list[Line], **labels: str) -> list[Choice]:
    """The choices by facts of which the lines have several values; `labels` by the facts' names."""
    found = [choice(name, label, lines) for name, label in labels.items()]
    return [offered for offered in found if len(offered.words) > 1]


def render_sortable(
    label: str,
    caption: str,
    columns: list[Column],
    lines: list[Line],
    choices: list[Choice],
    sorted_by: tuple[int, str] | None = None,
) -> str:
    """The filters (for JavaScript alone, which unhides them) and the table in a frame that scrolls.

    `sorted_by` is the column by which the lines already are in order and "ascending" or
    "descending"; None where their order is no column's.
    """
    order = dict([sorted_by]) if sorted_by else {}
    head = "".join(
        f'<th scope="col"{_attribute("title", column.meaning or None)}{_number(column)}'
        f"{_attribute('aria-sort', order.get(index))}>{escape(column.name)}</th>"
        for index, column in enumerate(columns)
    )
    body = "\n".join(_line(line, columns) for line in lines)
    return (
        f'<div class="sortable">{_filters(choices, lines) if len(lines) > _FEW else ""}'
        f'<div class="scroll{" long" if len(lines) > _LONG else ""}" tabindex="0" role="region" '
        f'aria-label="{escape(label)}"><table data-sortable><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div></div>"
    )


def _filters(choices: list[Choice], lines: list[Line]) -> str:
    return (
        '<form class="filters" hidden aria-label="Filter the rows">'
        '<label>Text <input type="search" name="text" autocomplete="off" '
        'placeholder="part of a row"></label>'
        f"{''.join(map(_choice, choices))}"
        '<button type="reset">All rows</button>'
        f'<p role="status" class="muted">{len(lines):,} rows</p></form>'
    )


def _choice(offered: Choice) -> str:
    options = "".join(
        f'<option value="{escape(value)}">{escape(words)}</option>'
        for value, words in offered.words.items()
    )
    return (
        f'<label>{escape(offered.label)} <select name="{offered.name}"><option value="">all'
        f"</option>{options}</select></label>"
    )


def _line(line: Line, columns: list[Column]) -> str:
    name, *cells = line.cells
    spanned = len(columns) - len(line.cells) + 1
    spans = [1] * (len(cells) - 1) + [spanned]
    rest = "".join(
        f"<td{_attribute('colspan', span) if span > 1 else _number(column)}"
        f"{_attribute('data-key', cell.key)}>{_text(cell)}</td>"
        for cell, column, span in zip(cells, columns[1:], spans, strict=False)
    )
    facts = "".join(
        _attribute(f"data-{key}", "\n".join(values)) for key, values in line.facts.items()
    )
    style = _attribute("class", line.style or None)
    return f'<tr{style}{facts}><th scope="row">{_text(name, breaks=True)}</th>{rest}</tr>'


def _text(cell: Cell, breaks: bool = False) -> str:
    """The cell's HTML; with `breaks` a line may end behind a slash, as names have them."""
    text, detail = (
        escape(words).replace("/", "/<wbr>" if breaks else "/")
        for words in (cell.text, cell.detail)
    )
    text = f'<span class="{cell.style}">{text}</span>' if cell.style else text
    return text + (f'<span class="detail">{detail}</span>' if detail else "")


def _number(column: Column) -> str:
    return _attribute("class", "number" if column.number else None)


def _attribute(name: str, value: float | str | None) -> str:
    """An attribute of an element; nothing for None."""
    text = f"{value:.9g}" if isinstance(value, float) else str(value)
    return "" if value is None else f' {name}="{escape(text)}"'
