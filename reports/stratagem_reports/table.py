"""The report's table: every row of the file, fastest first, failed ones last."""

from __future__ import annotations

from dataclasses import dataclass

from .chart_data import predicted_from_two_splits_ms, predicted_ms
from .labels import percent, row_label, significant, time_text
from .load import Results, Row
from .row_numbers import (
    bubble,
    communication,
    model_flops_utilisation,
    peak_memory_bytes,
    samples_per_second,
    tokens_per_second,
    verification,
)
from .selection import Measured, Selection
from .sortable_table import Cell, Column
from .statistics import distinguishable, samples_ms, summarise

COLUMNS = (
    Column("Row", "Strategy and what sets it apart; under it the full name"),
    Column("Time", "Median of the samples; mean under the tutorial's protocol", number=True),
    Column(
        "Interval",
        "Interval of the median with the coverage it has; under the tutorial's protocol "
        "also the standard deviation",
        number=True,
    ),
    Column(
        "Against the fastest",
        "Extra time; cannot tell where the intervals overlap",
        number=True,
    ),
    Column("Samples/s", "Training samples a second; under it tokens a second", number=True),
    Column("MFU", "Model FLOP/s over the calibrated peak", number=True),
    Column(
        "Bubble",
        "Idle for want of another stage: measured / ideal, mean over devices",
        number=True,
    ),
    Column(
        "Communication",
        "Share of the step that devices stood still for transfers and peers, mean over devices; "
        "under it the share that computation hid",
        number=True,
    ),
    Column("Predicted", "Simulated from calibration at this split, and its error", number=True),
    Column(
        "From two splits", "Simulated from the costs at two splits only, and its error", number=True
    ),
    Column("Peak memory", "Largest over the devices", number=True),
    Column("Verification", "Largest relative error against the oracle"),
    Column("Marks", "What to know before comparing this row"),
)
_TONES = {"passed": "good", "failed": "bad"}


@dataclass(frozen=True)
class TableRow:
    """One row of the table; `failed` rows carry their error in the second cell alone."""

    cells: list[Cell]
    strategy: str
    verification: str
    marks: list[str]
    best: bool = False
    failed: bool = False


def build_table(results: Results, selection: Selection) -> list[TableRow]:
    """All rows of the file, sorted by time."""
    measured, failed = by_time(results, selection)
    return [_working(selection, item) for item in measured] + [_failed(row) for row in failed]


def by_time(results: Results, selection: Selection) -> tuple[list[Measured], list[Row]]:
    """The rows that worked, fastest first, and those that failed in file order."""
    known = {id(item.row): item for item in selection.rows}
    working = [row for row in results.rows if row.error is None and row.repetitions]
    failed = [row for row in results.rows if row.error is not None or not row.repetitions]
    measured = [known.get(id(row)) or Measured(row, summarise(samples_ms(row))) for row in working]
    return sorted(measured, key=lambda item: item.time_ms), failed


def _failed(row: Row) -> TableRow:
    error = Cell(f"failed: {row.error or 'no sample'}")
    return TableRow([_name(row), error], row.strategy, "row failed", row.marks, failed=True)


def _working(selection: Selection, item: Measured) -> TableRow:
    row = item.row
    rate, mfu = samples_per_second(row), model_flops_utilisation(row)
    cells = [
        _name(row),
        Cell(time_text(item.time_ms), key=item.time_ms),
        interval_cell(item),
        _against_fastest(selection, item),
        Cell() if rate is None else Cell(significant(rate), _tokens(row), rate),
        Cell() if mfu is None else Cell(percent(mfu), key=mfu),
        _bubble(row),
        _communication(item),
        _prediction(item, predicted_ms(item)),
        _prediction(item, predicted_from_two_splits_ms(item)),
        _memory(row),
        _verification(row),
        _marks(item),
    ]
    best = bool(selection.rows) and item is selection.rows[0]
    return TableRow(cells, row.strategy, _verification(row).text, row.marks, best)


def _name(row: Row) -> Cell:
    return Cell(row_label(row), row.name, row.name)


def interval_cell(item: Measured) -> Cell:
    """The interval of the median, under it the coverage it has."""
    summary, interval = item.summary, item.summary.interval
    if summary.count < 2:
        return Cell("none", "1 sample", 0.0)
    noun = f"{percent(interval.coverage)}, {summary.count} samples"
    if item.row.tutorial:
        noun += f"; SD {time_text(summary.deviation)}"
    return Cell(f"{time_text(interval.low)} to {time_text(interval.high)}", noun, interval.low)


def _against_fastest(selection: Selection, item: Measured) -> Cell:
    if item not in selection.rows:
        return Cell()
    fastest = selection.rows[0]
    if item is fastest:
        return Cell("fastest", key=0.0)
    extra = item.time_ms / fastest.time_ms - 1.0
    if not distinguishable(fastest.summary, item.summary):
        return Cell("cannot tell", f"{100.0 * extra:+.1f}%", extra)
    return Cell(f"{100.0 * extra:+.1f}%", key=extra)


def _bubble(row: Row) -> Cell:
    measured, ideal = bubble(row)
    if measured is None:
        return Cell()
    beside = "" if ideal is None else f" / {percent(ideal)}"
    return Cell(f"{percent(measured)}{beside}", key=measured)


def _tokens(row: Row) -> str:
    rate = tokens_per_second(row)
    return "" if rate is None else f"{significant(rate)} tokens/s"


def _communication(item: Measured) -> Cell:
    exposed, hidden = communication(item)
    if exposed is None:
        return Cell()
    return Cell(percent(exposed), f"{percent(hidden)} hidden", exposed)


def _prediction(item: Measured, value: float | None) -> Cell:
    if value is None:
        return Cell()
    if item.row.tutorial:
        return Cell(time_text(value), "of one step", value)
    if "oversubscribed" in item.row.marks:
        return Cell(time_text(value), "on cores of their own", value)
    error = 100.0 * (value / item.summary.median - 1.0)
    return Cell(time_text(value), f"{error:+.1f}%", value)


def _memory(row: Row) -> Cell:
    peak = peak_memory_bytes(row)
    return Cell() if peak is None else Cell(f"{significant(peak / 2**30)} GiB", key=peak)


def _marks(item: Measured) -> Cell:
    """The row's marks, and what its samples look like: wide, with outliers."""
    words = list(item.row.marks)
    if item.summary.wide:
        words.append(f"wide spread ({percent(item.summary.spread, 0)})")
    if item.summary.outliers:
        words.append(f"{item.summary.outliers} outlying")
    text = ", ".join(words)
    return Cell(text, key=text) if words else Cell()


def _verification(row: Row) -> Cell:
    verdict, shown = verification(row)
    numbers = [shown.get("max_relative_error"), shown.get("tolerance")]
    detail = " of ".join(f"{value:.1e}" for value in numbers if isinstance(value, (int, float)))
    if verdict == "failed" and shown.get("message"):
        detail += f"; {shown['message']}"
    return Cell(verdict, detail, verdict, _TONES.get(verdict, ""))
