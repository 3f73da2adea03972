"""Renders report.csv: one line a row, plain numbers, units in the headings."""

import csv
import io
from operator import attrgetter

from ..analysis.selection import Selection
from ..analysis.statistics import counter
from ..charts.bandwidth import BUS
from ..results.launch import Verification
from ..results.load import Results, Row
from .table import by_time

_OPTIONS = ("schedule", "split_size", "devices", "cores_per_device", "global_batch_size")
_OPTIONS += ("image_size", "sequence_length", "device", "protocol")
# What a row's summary has under these names.
_SUMMARY = {
    "median (ms)": "median",
    "interval low (ms)": "interval.low",
    "interval high (ms)": "interval.high",
    "interval coverage (fraction)": "interval.coverage",
    "mean (ms)": "mean",
    "standard deviation (ms)": "deviation",
    "samples": "count",
    "samples per second": "samples_per_second",
    "tokens per second": "tokens_per_second",
    "MFU (fraction)": "mfu",
    "HFU (fraction)": "hfu",
    "bubble (fraction)": "bubble.measured",
    "ideal bubble (fraction)": "bubble.ideal",
    "exposed communication (fraction)": "communication_exposed",
    "hidden communication (fraction)": "communication_hidden",
    "predicted (ms)": "predicted_ms",
    "peak memory (bytes)": "peak_memory_bytes",
    "verification": "verification",
    "timed steps proven": "proven",
}
COLUMNS = (
    "row",
    "strategy",
    "model",
    "workload",
    "mesh",
    *(name.replace("_", " ") for name in _OPTIONS),
    *_SUMMARY,
    "largest relative error",
    "tolerance",
    "largest relative error as timed",
    "tolerance as timed",
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
    others = dict.fromkeys(key for row in measured for key in row.summary.figures)
    writer = csv.DictWriter(stream, (*COLUMNS, *others), restval="", lineterminator="\n")
    writer.writeheader()
    for row in measured:
        writer.writerow({key: _plain(value) for key, value in _working(row).items()})
    for row in failed:
        writer.writerow(_known(row) | {"error": row.error or "no sample"})
    return stream.getvalue().encode("utf-8")


def _known(row: Row) -> dict[str, object]:
    options = {name.replace("_", " "): row.option(name) for name in _OPTIONS}
    options = {heading: "" if value is None else value for heading, value in options.items()}
    known = {"row": row.name, "strategy": row.strategy, "model": row.model}
    return known | {"workload": row.summary.workload, "mesh": row.mesh} | options


def _working(row: Row) -> dict[str, object]:
    losses = next((repetition.loss for repetition in row.repetitions if repetition.loss), [None])
    checked = row.verification
    own = checked.own_arithmetic or Verification()
    found = _known(row)
    found |= {heading: attrgetter(name)(row.summary) for heading, name in _SUMMARY.items()}
    return found | row.summary.figures | {
        "largest relative error": checked.max_relative_error,
        "tolerance": checked.tolerance,
        "largest relative error as timed": own.max_relative_error,
        "tolerance as timed": own.tolerance,
        "loss of the first step": losses[0],
        "loss of the last step": losses[-1],
        "bus bandwidth (GB/s)": counter(row, BUS),
        "marks": " ".join(row.summary.marks),
    }


def _plain(value: object) -> object:
    """Floats with nine digits: more than any clock here has; whole ones as such."""
    if not isinstance(value, float):
        return value
    return str(int(value)) if value.is_integer() else f"{value:.9g}"
