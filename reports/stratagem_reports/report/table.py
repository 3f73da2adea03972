"""The report's table: every row of the file, workload by workload, failed ones last."""

from dataclasses import dataclass

from ..analysis.labels import percent, row_label, significant, time_text
from ..analysis.selection import Measured, Selection, working_rows
from ..analysis.statistics import distinguishable
from ..results.load import Results, Row
from ..results.row_summary import Summary
from .sortable_table import Cell, Column

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
    workload: str
    verification: str
    marks: list[str]
    best: bool = False
    failed: bool = False


def build_table(results: Results, selection: Selection) -> list[TableRow]:
    """All rows of the file; those of one workload stand together, the fastest first."""
    measured, failed = by_time(results, selection)
    return [_working(selection, item) for item in measured] + [_failed(row) for row in failed]


def by_time(results: Results, selection: Selection) -> tuple[list[Measured], list[Row]]:
    """The rows that worked and those that failed in file order.

    Of rows that worked, those of the charted workload stand first; each workload has its fastest
    row first.
    """
    known = {id(item.row): item for item in selection.rows}
    measured = [known.get(id(row)) or Measured(row) for row in working_rows(results)]
    workloads = list(dict.fromkeys(item.summary.workload for item in [*selection.rows, *measured]))
    measured.sort(key=lambda item: (workloads.index(item.summary.workload), item.time_ms))
    worked = {id(item.row) for item in measured}
    return measured, [row for row in results.rows if id(row) not in worked]


def _failed(row: Row) -> TableRow:
    error = Cell(f"failed: {row.error or 'no sample'}")
    workload, marks = row.summary.workload, row.summary.marks
    return TableRow([_name(row), error], row.strategy, workload, "row failed", marks, failed=True)


def _working(selection: Selection, item: Measured) -> TableRow:
    row, summary = item.row, item.summary
    rate, mfu, memory = summary.samples_per_second, summary.mfu, summary.peak_memory_bytes
    cells = [
        _name(row),
        Cell(time_text(item.time_ms), key=item.time_ms),
        interval_cell(item),
        _against_fastest(selection, item),
        Cell() if rate is None else Cell(significant(rate), _tokens(summary), rate),
        Cell() if mfu is None else Cell(percent(mfu), key=mfu),
        _bubble(summary),
        _communication(summary),
        _prediction(item),
        Cell() if memory is None else Cell(f"{significant(memory / 2**30)} GiB", key=memory),
        _verification(row),
        _marks(summary),
    ]
    best = bool(selection.rows) and item is selection.rows[0]
    return TableRow(
        cells, row.strategy, summary.workload, summary.verification, summary.marks, best
    )


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


def _bubble(summary: Summary) -> Cell:
    measured, ideal = summary.bubble_measured, summary.bubble_ideal
    if measured is None:
        return Cell()
    beside = "" if ideal is None else f" / {percent(ideal)}"
    return Cell(f"{percent(measured)}{beside}", key=measured)


def _tokens(summary: Summary) -> str:
    rate = summary.tokens_per_second
    return "" if rate is None else f"{significant(rate)} tokens/s"


def _communication(summary: Summary) -> Cell:
    exposed, hidden = summary.communication_exposed, summary.communication_hidden
    if exposed is None or hidden is None:
        return Cell()
    return Cell(percent(exposed), f"{percent(hidden)} hidden", exposed)


def _prediction(item: Measured) -> Cell:
    value, error = item.summary.predicted_ms, item.summary.prediction_error
    if value is None:
        return Cell()
    beside = "" if error is None else f"{100.0 * error:+.1f}%"
    if item.row.tutorial:
        beside = "of one step"
    elif "oversubscribed" in item.summary.marks:
        beside = "on cores of their own"
    return Cell(time_text(value), beside, value)


def _marks(summary: Summary) -> Cell:
    """The row's marks, and what its samples look like: wide, with outliers."""
    words = list(summary.marks)
    if summary.wide:
        words.append(f"wide spread ({percent(summary.spread, 0)})")
    if summary.outliers:
        words.append(f"{len(summary.outliers)} outlying")
    text = ", ".join(words)
    return Cell(text, key=text) if words else Cell()


def _verification(row: Row) -> Cell:
    verdict, record = row.summary.verification, row.verification
    numbers = [record.get("max_relative_error"), record.get("tolerance")]
    detail = " of ".join(f"{value:.1e}" for value in numbers if isinstance(value, (int, float)))
    if verdict == "failed" and record.get("message"):
        detail += f"; {record['message']}"
    return Cell(verdict, detail, verdict, _TONES.get(verdict, ""))
