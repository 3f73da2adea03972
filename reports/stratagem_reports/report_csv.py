"""Renders report.csv: one line a row, plain numbers, units in the headings."""

from __future__ import annotations

import csv
import io

from .bandwidth_data import BUS
from .chart_data import predicted_from_two_splits_ms, predicted_ms
from .load import Results, Row
from .row_numbers import (
    bubble,
    communication,
    counter,
    model_flops_utilisation,
    peak_memory_bytes,
    samples_per_second,
    tokens_per_second,
    verification,
)
from .selection import Measured, Selection
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
    "predicted from two splits (ms)",
    "peak memory (bytes)",
    "verification",
    "largest relative error",
    "tolerance",
    "bus bandwidth (GB/s)",
    "marks",
    "error",
)


def render_csv(results: Results, selection: Selection) -> bytes:
    """Every row of the file, fastest first, failed ones last; what is unknown is empty."""
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
    return {"row": row.name, "strategy": row.strategy, "model": row.model} | options


def _working(item: Measured) -> dict[str, object]:
    row, summary = item.row, item.summary
    measured, ideal = bubble(row)
    exposed, hidden = communication(item)
    verdict, record = verification(row)
    return _known(row) | {
        "median (ms)": summary.median,
        "interval low (ms)": summary.interval.low,
        "interval high (ms)": summary.interval.high,
        "interval coverage (fraction)": summary.interval.coverage,
        "mean (ms)": summary.mean,
        "standard deviation (ms)": summary.deviation,
        "samples": summary.count,
        "samples per second": samples_per_second(row),
        "tokens per second": tokens_per_second(row),
        "MFU (fraction)": model_flops_utilisation(row),
        "bubble (fraction)": measured,
        "ideal bubble (fraction)": ideal,
        "exposed communication (fraction)": exposed,
        "hidden communication (fraction)": hidden,
        "predicted (ms)": predicted_ms(item),
        "predicted from two splits (ms)": predicted_from_two_splits_ms(item),
        "peak memory (bytes)": peak_memory_bytes(row),
        "verification": verdict,
        "largest relative error": record.get("max_relative_error"),
        "tolerance": record.get("tolerance"),
        "bus bandwidth (GB/s)": counter(row, BUS),
        "marks": " ".join(row.marks),
    }


def _plain(value: object) -> object:
    """Floats with nine digits: more than any clock here has; whole ones as such."""
    if not isinstance(value, float):
        return value
    return str(int(value)) if value.is_integer() else f"{value:.9g}"
