"""The report's table: every row of the file, fastest first, failed ones last."""

from __future__ import annotations

from dataclasses import dataclass

from .chart_data import mean_breakdown, predicted_from_two_splits_ms, predicted_ms
from .labels import percent, row_label, significant, time_text
from .load import Results, Row
from .selection import Measured, Selection
from .statistics import distinguishable, median_or_none, samples_ms, summarise

COLUMNS = (
    ("Row", "Strategy and what sets it apart; under it the full name"),
    ("Time", "Median of the samples; mean under the tutorial's protocol"),
    (
        "Interval",
        "Interval of the median with the coverage it has; under the tutorial's protocol "
        "also the standard deviation",
    ),
    ("Against the fastest", "Extra time; cannot tell where the intervals overlap"),
    ("Samples/s", "Training samples a second; under it tokens a second"),
    ("MFU", "Model FLOP/s over the calibrated peak"),
    ("Bubble", "Idle for want of another stage: measured / ideal, mean over devices"),
    (
        "Communication",
        "Share of the step that devices stood still for transfers and peers, mean over devices; "
        "under it the share that computation hid",
    ),
    ("Predicted", "Simulated from calibration at this split, and its error"),
    ("From two splits", "Simulated from the costs at two splits only, and its error"),
    ("Peak memory", "Largest over the devices"),
    ("Verification", "Largest relative error against the oracle"),
    ("Marks", "What to know before comparing this row"),
)


@dataclass(frozen=True)
class Cell:
    """Text, an optional second line, and what to sort by (None sorts last)."""

    text: str = "\u2013"
    detail: str = ""
    key: float | str | None = None


@dataclass(frozen=True)
class TableRow:
    """One row of the table; `failed` rows carry their error in the second cell alone."""

    cells: list[Cell]
    best: bool = False
    failed: bool = False


def build_table(results: Results, selection: Selection) -> list[TableRow]:
    """All rows of the file, sorted by time."""
    working = [row for row in results.rows if row.error is None and row.repetitions]
    measured = [
        _known(selection, row) or Measured(row, summarise(samples_ms(row))) for row in working
    ]
    measured.sort(key=lambda item: item.time_ms)
    failed = [row for row in results.rows if row not in working]
    return [_working(selection, item) for item in measured] + [_failed(row) for row in failed]


def _known(selection: Selection, row: Row) -> Measured | None:
    return next((item for item in selection.rows if item.row is row), None)


def _failed(row: Row) -> TableRow:
    return TableRow([_name(row), Cell(f"failed: {row.error or 'no sample'}")], failed=True)


def _working(selection: Selection, item: Measured) -> TableRow:
    row, repetitions = item.row, item.row.repetitions
    rate = median_or_none([repetition.items_per_second for repetition in repetitions])
    mfu = median_or_none([repetition.mfu for repetition in repetitions])
    cells = [
        _name(row),
        Cell(time_text(item.time_ms), key=item.time_ms),
        _interval(item),
        _against_fastest(selection, item),
        Cell() if rate is None else Cell(significant(rate), _tokens(row), rate),
        Cell() if mfu is None else Cell(percent(mfu), key=mfu),
        _bubble(row),
        _communication(item),
        _prediction(item, predicted_ms(item)),
        _prediction(item, predicted_from_two_splits_ms(item)),
        _memory(row),
        _verification(row),
        Cell(", ".join(row.marks), key=", ".join(row.marks)) if row.marks else Cell(),
    ]
    return TableRow(cells, best=bool(selection.rows) and item is selection.rows[0])


def _name(row: Row) -> Cell:
    return Cell(row_label(row), row.name, row.name)


def _interval(item: Measured) -> Cell:
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
    devices = [device for repetition in row.repetitions for device in repetition.devices]
    measured, ideal = (
        [value for value in values if value is not None]
        for values in (
            [device.bubble_measured for device in devices],
            [device.bubble_ideal for device in devices],
        )
    )
    if not measured:
        return Cell()
    mean = sum(measured) / len(measured)
    beside = f" / {percent(sum(ideal) / len(ideal))}" if ideal else ""
    return Cell(f"{percent(mean)}{beside}", key=mean)


def _tokens(row: Row) -> str:
    rate = median_or_none([item.counters.get("tokens_per_second") for item in row.repetitions])
    return "" if rate is None else f"{significant(rate)} tokens/s"


def _communication(item: Measured) -> Cell:
    parts = mean_breakdown(item)
    whole = sum(parts.values()) - parts.get("communication_hidden", 0.0)
    exposed = parts.get("communication_exposed", 0.0) + parts.get("wait", 0.0)
    hidden = parts.get("communication_hidden", 0.0)
    if whole <= 0.0 or exposed + hidden <= 0.0:
        return Cell()
    return Cell(percent(exposed / whole), f"{percent(hidden / whole)} hidden", exposed / whole)


def _prediction(item: Measured, value: float | None) -> Cell:
    if value is None:
        return Cell()
    if item.row.tutorial:
        return Cell(time_text(value), "of one step", value)
    error = 100.0 * (value / item.summary.median - 1.0)
    return Cell(time_text(value), f"{error:+.1f}%", value)


def _memory(row: Row) -> Cell:
    peaks = [
        device.peak_memory_bytes
        for repetition in row.repetitions
        for device in repetition.devices
        if device.peak_memory_bytes
    ]
    return Cell(f"{significant(max(peaks) / 2**30)} GiB", key=max(peaks)) if peaks else Cell()


def _verification(row: Row) -> Cell:
    found = [repetition.verification for repetition in row.repetitions]
    checked = [item for item in found if item is not None]
    if not checked:
        return Cell("not verified", key="not verified")
    bad = [item for item in checked if not item.get("passed")]
    shown = (bad or checked)[0]
    error, tolerance = shown.get("max_relative_error"), shown.get("tolerance")
    verdict = "failed" if bad else "passed"
    numbers = [value for value in (error, tolerance) if isinstance(value, (int, float))]
    detail = " of ".join(f"{value:.1e}" for value in numbers)
    if bad and shown.get("message"):
        detail += f"; {shown['message']}"
    return Cell(verdict, detail, verdict)
