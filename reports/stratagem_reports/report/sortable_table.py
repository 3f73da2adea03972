"""A table that the reader sorts by its headings and, where it has many rows, filters.

`table.js` does both from what stands in the table as data. Without JavaScript the table
stays in the order of its rows.
"""

from dataclasses import dataclass, field
from html import escape

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
    values = dict.fromkeys(value for line in lines for value in line.facts[name])
    return Choice(name, label, {value: value for value in values})


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
    head = "".join(
        f'<th scope="col"{_title(column)}{_number(column)}{_sorted(index, sorted_by)}>'
        f"{escape(column.name)}</th>"
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
        f"<td{_span(span)}{_number(column) if span == 1 else ''}{_key(cell)}>{_text(cell)}</td>"
        for cell, column, span in zip(cells, columns[1:], spans, strict=False)
    )
    facts = "".join(
        f' data-{key}="{escape(_joined(values))}"' for key, values in line.facts.items()
    )
    style = f' class="{line.style}"' if line.style else ""
    return f'<tr{style}{facts}><th scope="row">{_text(name, breaks=True)}</th>{rest}</tr>'


def _joined(values: list[str]) -> str:
    """Values as table.js takes them apart again."""
    return "\n".join(values)


def _text(cell: Cell, breaks: bool = False) -> str:
    """The cell's HTML; with `breaks` a line may end behind a slash, as names have them."""
    text, detail = (
        escape(words).replace("/", "/<wbr>" if breaks else "/")
        for words in (cell.text, cell.detail)
    )
    text = f'<span class="{cell.style}">{text}</span>' if cell.style else text
    return text + (f'<span class="detail">{detail}</span>' if detail else "")


def _key(cell: Cell) -> str:
    if cell.key is None:
        return ""
    value = f"{cell.key:.9g}" if isinstance(cell.key, float) else escape(str(cell.key))
    return f' data-key="{value}"'


def _span(columns: int) -> str:
    return f' colspan="{columns}"' if columns > 1 else ""


def _title(column: Column) -> str:
    return f' title="{escape(column.meaning)}"' if column.meaning else ""


def _number(column: Column) -> str:
    return ' class="number"' if column.number else ""


def _sorted(index: int, sorted_by: tuple[int, str] | None) -> str:
    return f' aria-sort="{sorted_by[1]}"' if sorted_by and sorted_by[0] == index else ""
