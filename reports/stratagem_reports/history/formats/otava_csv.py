"""CSV as Apache Otava reads it: one line a run, columns time, commit and one for each metric.

A file is the history of one row. Kept: time, commit, median (step_ms), values of metrics, and the
hardware's digest as an attribute. Lost: the row's name, which an import takes from --name or the
file's, the single launches, units and directions of metrics that are not known by name, the
hardware's fields, software, marks, an imported interval.

Of a file of other programs, the run's time is the one column whose name ends in a unit (step_ms,
"time (us)"), or that of --metric, in --unit; other columns of numbers are metrics and columns of
text are passed over. Times are ISO 8601, Otava's 2026.01.15 10:20:30 +0000, or seconds since 1970.
"""

from __future__ import annotations

import csv
import io
from datetime import datetime, timezone

from ...errors import InputError
from ..add import describe
from ..points import STEP, Hardware, Metric, Run, as_utc, finite, parse_time, time_text
from .common import Source, Target, milliseconds, read_text, unit_in

_OTAVA_TIME = "%Y.%m.%d %H:%M:%S %z"
_TIME, _COMMIT, _HARDWARE = "time", "commit", "hardware"


def read(source: Source) -> list[Run]:
    """Every line of the file as a run of one row."""
    try:
        lines = list(csv.reader(io.StringIO(read_text(source.path))))
    except csv.Error as error:
        raise InputError(f"{source.path}: not CSV: {error}") from None
    header = [cell.strip() for cell in lines[0]]
    for column in header:
        if header.count(column) > 1:
            raise InputError(f"{source.path}: two columns are named {column!r}; expected one")
    for column in (_TIME, *(() if source.commit else (_COMMIT,))):
        if column not in header:
            raise InputError(f"{source.path}: no column {column!r}; found {', '.join(header)}")
    main, unit = _main(source, header)
    name = source.name or source.path.stem
    runs = []
    for number, cells in enumerate(lines[1:], start=2):
        if not cells:
            continue
        where = f"{source.path}: line {number}"
        if len(cells) != len(header):
            raise InputError(f"{where}: {len(cells)} cells; expected {len(header)}")
        row = {column: cell.strip() for column, cell in zip(header, cells, strict=True)}
        median = milliseconds(_number(row[main], f"{where}: {main}"), unit, f"{where}: {main}")
        runs.append(
            Run(
                time=_time(source.date or row[_TIME], f"{where}: {_TIME}"),
                commit=source.run_commit(row.get(_COMMIT), f"{where}: {_COMMIT}"),
                name=name,
                launches=[median],
                median=median,
                metrics=_metrics(row, main, where),
                hardware=Hardware(row[_HARDWARE]) if row.get(_HARDWARE) else Hardware(),
            )
        )
    if not runs:
        raise InputError(f"{source.path}: no line below the header")
    return runs


def write(runs: list[Run], target: Target) -> bytes:
    """All runs of one row, oldest first; a metric that a run lacks is an empty cell."""
    names = sorted({run.name for run in runs})
    if len(names) > 1:
        raise InputError(
            f"otava-csv holds one row, and {len(names)} match: {names[0]}, {names[1]}...; "
            "give more of the row's name"
        )
    own = (_TIME, _COMMIT, _HARDWARE, STEP)
    metrics = list(dict.fromkeys(name for run in runs for name in run.metrics if name not in own))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*own, *metrics])
    for run in sorted(runs, key=lambda run: run.time):
        values = [run.value(name) for name in (STEP, *metrics)]
        cells = ["" if value is None else repr(value) for value in values]
        writer.writerow([time_text(run.time), run.commit, run.hardware.digest, *cells])
    return stream.getvalue().encode()


def _main(source: Source, header: list[str]) -> tuple[str, str]:
    """The column that is the run's time, and its unit."""
    times = [column for column in header if unit_in(column)]
    if source.metric:
        if source.metric not in header:
            raise InputError(
                f"{source.path}: no column {source.metric!r} of --metric; found {', '.join(header)}"
            )
        times = [source.metric]
    elif STEP in times:
        times = [STEP]
    if len(times) != 1:
        raise InputError(
            f"{source.path}: expected one column whose name ends in ns, us, ms or s, found "
            f"{len(times)} of {', '.join(header)}; name one with --metric and --unit"
        )
    unit = source.unit or unit_in(times[0])
    if unit is None:
        raise InputError(f"--metric {times[0]}: its unit is not known; give --unit ns, us, ms or s")
    return times[0], unit


def _metrics(row: dict[str, str], main: str, where: str) -> dict[str, Metric]:
    metrics = {}
    for column, cell in row.items():
        if column in (_TIME, _COMMIT, _HARDWARE, main) or not cell:
            continue
        try:
            value = float(cell)
        except ValueError:
            continue
        metrics[column] = describe(column, finite(value, f"{where}: {column}"))
    return metrics


def _number(cell: str, where: str) -> float:
    try:
        return finite(float(cell), where)
    except ValueError:
        raise InputError(f"{where}: expected a number, found {cell!r}") from None


def _time(cell: str, where: str) -> datetime:
    try:
        if cell.isdigit():
            return datetime.fromtimestamp(int(cell), timezone.utc)
        return as_utc(datetime.strptime(cell, _OTAVA_TIME))
    except (OverflowError, OSError, ValueError):
        return parse_time(cell, where)
