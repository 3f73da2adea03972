"""Which rows the charts and the words speak about: one workload, its baselines, its pipelines.

A file may hold a grid over models, batches and devices; bars of different work must not stand side
by side. The workload with the most rows is chosen, and within it the device count that most of its
multi-device rows share; everything else stays in the table, and `notes` says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .labels import cores, row_label, workload_label
from .load import Results, Row
from .statistics import Summary, samples_ms, summarise

_WORKLOAD = ("global_batch_size", "image_size", "sequence_length", "dtype", "device", "protocol")
TUTORIAL_SPLIT = 20


@dataclass(frozen=True, eq=False)
class Measured:
    """A row that worked, with its statistics."""

    row: Row
    summary: Summary

    @property
    def time_ms(self) -> float:
        """What its bar shows: the mean under the tutorial's protocol, else the median."""
        return self.summary.mean if self.row.tutorial else self.summary.median


@dataclass(frozen=True)
class Selection:
    """The rows of one workload by role, fastest first in `rows`; None or empty where absent."""

    workload: str
    rows: list[Measured]
    single: Measured | None
    single_all_cores: Measured | None
    model_parallel: Measured | None
    pipelines: list[list[Measured]]
    tutorial: bool
    notes: list[str] = field(default_factory=list)

    @property
    def best_pipeline(self) -> Measured | None:
        """The fastest pipeline row."""
        return min((row for line in self.pipelines for row in line), key=_time, default=None)

    @property
    def splits(self) -> list[Measured]:
        """The pipeline rows that differ from the best one in the split only, by split size."""
        best = self.best_pipeline
        return next((line for line in self.pipelines if best in line), [])

    @property
    def charted_pipeline(self) -> Measured | None:
        """The pipeline beside the other strategies: the tutorial's split 20, else the best."""
        fixed = [item for item in self.splits if item.row.split_size == TUTORIAL_SPLIT]
        return fixed[0] if self.tutorial and fixed else self.best_pipeline


def select(results: Results) -> Selection:
    """Chooses the workload to chart; an empty selection when no row worked."""
    notes = []
    working = [row for row in results.rows if row.error is None and row.repetitions]
    timed = [row for row in working if "oversubscribed" not in row.marks]
    if len(timed) < len(working):
        notes.append(
            f"{len(working) - len(timed)} oversubscribed rows share cores between devices: their "
            "times stand in the table, not in the charts and not in the ranking."
        )
    if not timed:
        return Selection("", [], None, None, None, [], False, notes)
    chosen = _main_workload(timed)
    if len(chosen) < len(timed):
        notes.append(
            f"The file holds more than one workload: the charts and the summary are about "
            f"{workload_label(_widest(chosen))}; the table has all rows."
        )
    rows = sorted((Measured(row, summarise(samples_ms(row))) for row in chosen), key=_time)
    single, all_cores = _singles(rows)
    return Selection(
        workload=workload_label(_widest(chosen)),
        rows=rows,
        single=single,
        single_all_cores=all_cores,
        model_parallel=next((m for m in rows if m.row.strategy == "model_parallel"), None),
        pipelines=_pipelines(rows),
        tutorial=any(row.tutorial for row in chosen),
        notes=notes,
    )


def series_label(line: list[Measured]) -> str:
    """What to call a series of splits: the row's label without its split."""
    row = line[0].row
    return row_label(row).replace(f", split {row.split_size}", "")


def _time(measured: Measured) -> float:
    return measured.time_ms


def _main_workload(rows: list[Row]) -> list[Row]:
    keys = [(row.model, *(str(row.option(key)) for key in _WORKLOAD)) for row in rows]
    wanted = Counter(keys).most_common(1)[0][0]
    chosen = [row for row, key in zip(rows, keys, strict=True) if key == wanted]
    devices = Counter(row.option("devices") for row in chosen if row.strategy != "single")
    if len(devices) > 1:
        count = devices.most_common(1)[0][0]
        chosen = [
            row for row in chosen if row.strategy == "single" or row.option("devices") == count
        ]
    return chosen


def _widest(rows: list[Row]) -> Row:
    """The row with the most devices: `single` may state only the one it uses."""
    return max(rows, key=lambda row: (row.option("devices") or 0, row.strategy != "single"))


def _singles(rows: list[Measured]) -> tuple[Measured | None, Measured | None]:
    """The single device, and the single process with all cores where that is another row."""
    singles = [item for item in rows if item.row.strategy == "single"]
    if not singles:
        return None, None
    fewest = min(cores(item.row) for item in singles)
    most = max(cores(item.row) for item in singles)
    single = next(item for item in singles if cores(item.row) == fewest)
    all_cores = next(item for item in singles if cores(item.row) == most)
    return single, all_cores if most > fewest else None


def _pipelines(rows: list[Measured]) -> list[list[Measured]]:
    """Pipeline rows grouped into series that differ in the split only, each by split size."""
    series: dict[str, list[Measured]] = {}
    for item in rows:
        if item.row.strategy == "pipeline" and item.row.split_size is not None:
            token = f"split:{item.row.split_size}"
            rest = "/".join(part for part in item.row.name.split("/") if part != token)
            series.setdefault(rest, []).append(item)
    return [sorted(line, key=lambda item: item.row.split_size) for line in series.values()]
