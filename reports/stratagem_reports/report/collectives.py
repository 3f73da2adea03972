"""Renders report.html of a file of collectives: such rows have no step, but bandwidths."""

from ..analysis.labels import sentence, significant, size_text, time_text
from ..analysis.statistics import counter
from ..charts.bandwidth import BUS, group_label, rates
from ..charts.registry import ChartSet
from ..results.load import Results, Row
from .facts import render_results
from .sortable_table import NO_MARK, Cell, Column, Line, Table, choices
from .summary import Figure, failures
from .table import interval_cell

_COLUMNS = (
    Column("Row", "Collective and message size; under it the full name"),
    Column("Message", "The largest buffer that a rank holds", number=True),
    Column("Time", "Median of a call", number=True),
    Column("Interval", "Interval of the median with the coverage it has", number=True),
    Column("Algorithm GB/s", "Message size over time, the median of the rounds", number=True),
    Column(
        "Bus GB/s",
        "What each link carries for it, whatever the number of ranks; the median of the rounds",
        number=True,
    ),
    Column("Marks", "What to know before comparing this row"),
)
_MEASURED = (
    "A time is that of a call that is waited for, the mean over a batch of calls back to back, on "
    "the slowest rank. What every batch leaves behind is checked.",
    "Send goes there and back between neighbours and is counted once.",
    "Each round is a launch of fresh processes for every collective. Rates are medians of the "
    "rounds, and bars reach from the slowest to the fastest.",
    "Message size and bus bandwidth are those of nccl-tests: bus bandwidth can be held against the "
    "hardware's peak.",
)


def render_collectives(results: Results, charts: ChartSet) -> bytes:
    """The page with everything that the file can tell."""
    return render_results(
        results,
        charts,
        title=f"Collectives: {group_label(results)}",
        verdict=None,
        headlines=_best(results),
        sentences=[*_links(results), *failures(results)],
        table=_table(results),
        measured=_MEASURED,
    )


def _best(results: Results) -> list[Figure]:
    """The highest bus bandwidth of each collective."""
    best = {name: max(line, key=lambda rate: rate.rate) for name, line in rates(results).items()}
    return [
        Figure(
            sentence(name),
            f"{significant(rate.rate)} GB/s",
            f"on the bus at {size_text(rate.size)}",
        )
        for name, rate in best.items()
    ]


def _links(results: Results) -> list[str]:
    """What each collective costs by message size, as the file's fitted model has it."""
    found = results.stratagem.calibration
    names = dict.fromkeys(row.strategy for row in results.rows)
    words = []
    for name in names:
        latency, rate = found.get(f"{name}_latency_ms"), found.get(f"{name}_gb_per_s")
        if isinstance(latency, (int, float)):
            known = isinstance(rate, (int, float))
            size = f"plus its size over {significant(rate)} GB/s" if known else "whatever its size"
            words.append(f"{sentence(name)}: a message takes {time_text(latency)}, {size}.")
    return words


def _table(results: Results) -> Table:
    lines = [_line(row) for row in results.rows]
    return Table(
        "Table of all rows",
        "In the file's order; a heading sorts by its column, and pointing at it says what it "
        "means.",
        _COLUMNS,
        lines,
        choices(lines, collective="Collective", marks="Marks"),
    )


def _line(row: Row) -> Line:
    facts = {"collective": [sentence(row.strategy)], "marks": row.marks or [NO_MARK]}
    name = Cell(_label(row), row.name)
    if row.error or not row.repetitions:
        return Line([name, Cell(f"failed: {row.error or 'no sample'}")], facts, "failed")
    size, words = _size(row), ", ".join(row.marks)
    cells = [
        name,
        Cell(size_text(size), key=size),
        Cell(time_text(row.time_ms), key=row.time_ms),
        interval_cell(row),
        _rate(counter(row, "algorithm_gb_per_s")),
        _rate(counter(row, BUS)),
        Cell(words, key=words) if words else Cell(),
    ]
    return Line(cells, facts)


def _rate(value: float | None) -> Cell:
    return Cell() if value is None else Cell(significant(value), key=value)


def _label(row: Row) -> str:
    return f"{sentence(row.strategy)}, {size_text(_size(row))}"


def _size(row: Row) -> float:
    """The message in bytes: of a row that worked, or as it was asked for."""
    return counter(row, "bytes") or float(row.option("bytes") or 0)
