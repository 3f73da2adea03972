"""Renders report.csv: one line a row, plain numbers, units in the headings."""

import csv
import io

from ..analysis.selection import Measured, Selection
from ..analysis.statistics import counter
from ..charts.bandwidth import BUS
from ..results.load import Results, Row
from .table import by_time

_OPTIONS = {
    "schedule": "schedule",
    "split size": "split_size",
    "devices": "devices",
    "cores per device": "cores_per_device",
    "global batch size": "global_batch_size",
    "image size": "image_size",
    "sequence length": "sequence_length",
    "device": "device",
    "protocol": "protocol",
}
COLUMNS = (
    "row",
    "strategy",
    "model",
    "workload",
    "mesh",
    *_OPTIONS,
    "median (ms)",
    "interval low (ms)",
    "interval high (ms)",
    "interval coverage (fraction)",
    "mean (ms)",
    "standard deviation (ms)",
    "samples",
    "samples per second",
    "tokens per second",
    "MFU (fraction)",
    "bubble (fraction)",
    "ideal bubble (fraction)",
    "exposed communication (fraction)",
    "hidden communication (fraction)",
    "predicted (ms)",
    "peak memory (bytes)",
    "verification",
    "largest relative error",
    "tolerance",
    "loss of the first step",
    "loss of the last step",
    "bus bandwidth (GB/s)",
    "marks",
    "error",
)


def render_csv(results: Results, selection: Selection) -> bytes:
    """The file's rows, workload by workload, fastest first, failed ones last; unknowns empty."""
    measured, failed = by_time(results, selection)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for item in measured:
        writer.writerow({key: _plain(value) for key, value in _working(item).items()})
    for row in failed:
        writer.writerow(_known(row) | {"error": row.error or "no sample"})
    return stream.getvalue().encode("utf-8")


def _known(row: Row) -> dict[str, object]:
    options = {heading: row.option(key) for heading, key in _OPTIONS.items()}
    options = {heading: "" if value is None else value for heading, value in options.items()}
    known = {"row": row.name, "strategy": row.strategy, "model": row.model}
    return known | {"workload": row.summary.workload, "mesh": row.mesh} | options


def _working(item: Measured) -> dict[str, object]:
    row, summary = item.row, item.summary
    losses = [repetition.loss for repetition in row.repetitions if repetition.loss]
    return _known(row) | {
        "median (ms)": summary.median,
        "interval low (ms)": summary.interval.low,
        "interval high (ms)": summary.interval.high,
        "interval coverage (fraction)": summary.interval.coverage,
        "mean (ms)": summary.mean,
        "standard deviation (ms)": summary.deviation,
        "samples": summary.count,
        "samples per second": summary.samples_per_second,
        "tokens per second": summary.tokens_per_second,
        "MFU (fraction)": summary.mfu,
        "bubble (fraction)": summary.bubble_measured,
        "ideal bubble (fraction)": summary.bubble_ideal,
        "exposed communication (fraction)": summary.communication_exposed,
        "hidden communication (fraction)": summary.communication_hidden,
        "predicted (ms)": summary.predicted_ms,
        "peak memory (bytes)": summary.peak_memory_bytes,
        "verification": summary.verification,
        "largest relative error": row.verification.get("max_relative_error"),
        "tolerance": row.verification.get("tolerance"),
        "loss of the first step": losses[0][0] if losses else None,
        "loss of the last step": losses[0][-1] if losses else None,
        "bus bandwidth (GB/s)": counter(row, BUS),
        "marks": " ".join(summary.marks),
    }


def _plain(value: object) -> object:
    """Floats with nine digits: more than any clock here has; whole ones as such."""
    if not isinstance(value, float):
        return value
    return str(int(value)) if value.is_integer() else f"{value:.9g}"
