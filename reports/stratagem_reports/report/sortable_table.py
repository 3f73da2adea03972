"""A table that the reader sorts by its headings and, where it has many rows, filters.

`table.js` does both from what stands in the table as data. Without JavaScript the table
stays in the order of its rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

# What a row without a mark has in the choice of marks.
NO_MARK = "no mark"


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


@dataclass(frozen=True)
class Table:
    """A table whose lines are in the order of the column `sorted_by`: (place, direction).

    A direction is "ascending" or "descending"; None stands for the order of no column.
    """

    label: str
    caption: str
    columns: Sequence[Column]
    lines: list[Line]
    choices: list[Choice]
    sorted_by: tuple[int, str] | None = None
