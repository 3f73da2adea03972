"""The report's table: every row of the file, workload by workload, failed ones last."""

from ..analysis.labels import percent, row_label, significant, time_text
from ..analysis.selection import Selection, working_rows
from ..analysis.statistics import distinguishable, speed_up
from ..results.launch import Verification
from ..results.load import Results, Row
from ..results.row_summary import Summary
from .sortable_table import NO_MARK, Cell, Column, Line
from .summary import first_place

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
        "Extra time; cannot tell where the ratio may be one, all pairs of rows together",
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
    Column("Verification", "Largest relative error against the oracle, in float64 and as timed"),
    Column("Marks", "What to know before comparing this row"),
)
_TONES = {"passed": "good", "failed": "bad"}


def build_table(results: Results, selection: Selection) -> list[Line]:
    """All rows of the file; those of one workload stand together, the fastest first.

    Failed rows carry their error in the second cell alone.
    """
    measured, failed = by_time(results, selection)
    return [_working(selection, item) for item in measured] + [_failed(row) for row in failed]


def by_time(results: Results, selection: Selection) -> tuple[list[Row], list[Row]]:
    """The rows that worked and those that failed in file order.

    Of rows that worked, those of the charted workload stand first; each workload has its fastest
    row first.
    """
    measured = working_rows(results)
    failed = [row for row in results.rows if row not in measured]
    workloads = list(dict.fromkeys(row.summary.workload for row in [*selection.rows, *measured]))
    measured.sort(key=lambda row: (workloads.index(row.summary.workload), row.time_ms))
    return measured, failed


def _failed(row: Row) -> Line:
    error = Cell(f"failed: {row.error or 'no sample'}")
    return Line([_name(row), error], _facts(row, "row failed"), "failed")


def _facts(row: Row, verification: str) -> dict[str, list[str]]:
    """What the table can be filtered by."""
    return {
        "strategy": [row.strategy],
        "workload": [row.summary.workload],
        "verification": [verification],
        "marks": row.summary.marks or [NO_MARK],
    }


def _working(selection: Selection, row: Row) -> Line:
    summary = row.summary
    rate, mfu, memory = summary.samples_per_second, summary.mfu, summary.peak_memory_bytes
    cells = [
        _name(row),
        Cell(time_text(row.time_ms), key=row.time_ms),
        interval_cell(row),
        _against_fastest(selection, row),
        Cell() if rate is None else Cell(significant(rate), _tokens(summary), rate),
        Cell() if mfu is None else Cell(percent(mfu), key=mfu),
        _bubble(summary),
        _communication(summary),
        _prediction(row),
        Cell() if memory is None else Cell(f"{significant(memory / 2**30)} GiB", key=memory),
        _verification(row),
        _marks(row),
    ]
    best = "best" if row in selection.rows[:1] else ""
    return Line(cells, _facts(row, summary.verification), best)


def _name(row: Row) -> Cell:
    return Cell(row_label(row), row.name, row.name)


def interval_cell(item: Row) -> Cell:
    """The interval of the median, under it the coverage it has."""
    summary, interval = item.summary, item.summary.interval
    if summary.count < 2:
        return Cell("none", "1 sample", 0.0)
    noun = f"{percent(interval.coverage)}, {summary.count} samples"
    if item.tutorial:
        noun += f"; SD {time_text(summary.deviation)}"
    return Cell(f"{time_text(interval.low)} to {time_text(interval.high)}", noun, interval.low)


def _against_fastest(selection: Selection, item: Row) -> Cell:
    if item not in selection.rows:
        return Cell()
    fastest = selection.rows[0]
    if item is fastest:
        return Cell(first_place(selection), key=0.0)
    extra = item.time_ms / fastest.time_ms - 1.0
    if speed_up(fastest.summary, item.summary) is None:
        return Cell("cannot tell", "disturbed", extra)
    if not distinguishable(fastest.summary, item.summary):
        return Cell("cannot tell", f"{extra:+.1%}", extra)
    return Cell(f"{extra:+.1%}", key=extra)


def _bubble(summary: Summary) -> Cell:
    measured, ideal = summary.bubble.measured, summary.bubble.ideal
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


def _prediction(item: Row) -> Cell:
    value, error = item.summary.predicted_ms, item.summary.prediction_error
    if value is None:
        return Cell()
    beside = "" if error is None else f"{error:+.1%}"
    if item.tutorial:
        beside = "of one step"
    elif "oversubscribed" in item.summary.marks:
        beside = "on cores of their own"
    return Cell(time_text(value), beside, value)


def _marks(row: Row) -> Cell:
    """The row's marks, and what its samples look like; under them what ATen's kernels computed."""
    summary, words = row.summary, list(row.summary.marks)
    if summary.wide:
        words.append(f"wide spread ({percent(summary.spread, 0)})")
    if summary.outliers:
        words.append(f"{len(summary.outliers)} outlying")
    text = ", ".join(words)
    return Cell(text, row.left_to_aten, text) if words else Cell()


def _error_of_limit(record: Verification) -> str:
    numbers = [record.max_relative_error, record.tolerance]
    return " of ".join(f"{value:.1e}" for value in numbers if value is not None)


def _verification(row: Row) -> Cell:
    verdict, record = row.summary.verification, row.verification
    own = record.own_arithmetic
    detail = _error_of_limit(record)
    if own:
        detail += f"; in {row.option('dtype') or 'its own arithmetic'} {_error_of_limit(own)}"
    if verdict == "failed" and record.message:
        detail += f"; {record.message}"
    if row.summary.proven:
        detail += "; timed steps proven"
    return Cell(verdict, detail, verdict, _TONES.get(verdict, ""))
