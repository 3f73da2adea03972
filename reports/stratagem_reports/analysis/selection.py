"""Which rows the charts and the words speak about: one workload, its baselines, its pipelines.

A file may hold a grid over models, batches and devices; bars of different work must not stand side
by side. What is one workload, and which row is its baseline, the rows' summaries say. The workload
with the most rows is chosen, and within it the device count that most of its multi-device rows
share; everything else stays in the table, and `notes` says so.
"""

from collections import Counter
from dataclasses import dataclass, field

from ..results.load import Results, Row
from .labels import cores, row_label, workload_label

TUTORIAL_SPLIT = 20


@dataclass(frozen=True)
class Selection:
    """The rows of one workload by role, fastest first in `rows`; None or empty where absent."""

    workload: str
    rows: list[Row]
    single: Row | None
    single_all_cores: Row | None
    model_parallel: Row | None
    pipelines: list[list[Row]]
    tutorial: bool
    notes: list[str] = field(default_factory=list)

    @property
    def baselines(self) -> list[Row]:
        """The rows that the others are held against."""
        candidates = (self.single, self.single_all_cores, self.model_parallel)
        return [row for row in candidates if row]

    @property
    def best_pipeline(self) -> Row | None:
        """The fastest pipeline row."""
        return min((row for line in self.pipelines for row in line), key=_time, default=None)

    @property
    def splits(self) -> list[Row]:
        """The pipeline rows that differ from the best one in the split only, by split size."""
        best = self.best_pipeline
        return next((line for line in self.pipelines if best in line), [])

    @property
    def charted_pipeline(self) -> Row | None:
        """The pipeline beside the other strategies: the tutorial's split 20, else the best."""
        fixed = [item for item in self.splits if item.split_size == TUTORIAL_SPLIT]
        return fixed[0] if self.tutorial and fixed else self.best_pipeline


def select(results: Results) -> Selection:
    """Chooses the workload to chart; an empty selection when no row worked."""
    notes = []
    working = working_rows(results)
    timed = [row for row in working if "oversubscribed" not in row.marks]
    if len(timed) < len(working):
        notes.append(
            f"{len(working) - len(timed)} oversubscribed rows share cores between devices: their "
            "times stand in the table, not in the charts and not in the ranking."
        )
    if not timed:
        return Selection("", [], None, None, None, [], False, notes)
    workload = Counter(row.summary.workload for row in timed).most_common(1)[0][0]
    same = [row for row in timed if row.summary.workload == workload]
    chosen = _of_most_devices(same)
    if len(same) < len(timed):
        notes.append(
            "The file holds more than one workload, and rows of one are not compared with those of "
            f"another: the charts and the summary are about {workload}; the table has all rows."
        )
    if len(chosen) < len(same):
        notes.append(
            f"The charts and the summary are about {workload_label(_widest(chosen))}; the table "
            "has rows of other numbers of devices, too."
        )
    rows = sorted(chosen, key=_time)
    single = _baseline(rows)
    beside = [row for row in rows if _has_the_kernels_of(single, row)]
    return Selection(
        workload=workload_label(_widest(chosen)),
        rows=rows,
        single=single,
        single_all_cores=_single_all_cores(single, beside),
        model_parallel=next((row for row in beside if row.strategy == "model_parallel"), None),
        pipelines=_pipelines(rows),
        tutorial=any(row.tutorial for row in chosen),
        notes=notes,
    )


def working_rows(results: Results) -> list[Row]:
    """The rows that have samples, in file order."""
    return [row for row in results.rows if row.error is None and row.repetitions]


def series_label(line: list[Row]) -> str:
    """What to call a series of splits: the row's label without its split."""
    row = line[0]
    return row_label(row).replace(f", split {row.split_size}", "")


def _time(row: Row) -> float:
    return row.time_ms


def _of_most_devices(rows: list[Row]) -> list[Row]:
    """The rows with the number of devices that most have; a single device goes with all of them."""
    devices = Counter(row.option("devices") for row in rows if row.strategy != "single")
    if len(devices) < 2:
        return rows
    count = devices.most_common(1)[0][0]
    return [row for row in rows if row.strategy == "single" or row.option("devices") == count]


def _widest(rows: list[Row]) -> Row:
    """The row with the most devices: `single` may state only the one it uses."""
    return max(rows, key=lambda row: (row.option("devices") or 0, row.strategy != "single"))


def _baseline(rows: list[Row]) -> Row | None:
    named = {item.summary.baseline for item in rows}
    return next((item for item in rows if item.name in named), None)


def _has_the_kernels_of(single: Row | None, row: Row) -> bool:
    return single is None or row.option("kernels") == single.option("kernels")


def _single_all_cores(single: Row | None, rows: list[Row]) -> Row | None:
    """The single process with all cores, where that is another row than the baseline."""
    others = [item for item in rows if item.strategy == "single" and item is not single]
    return max(others, key=cores, default=None)


def _pipelines(rows: list[Row]) -> list[list[Row]]:
    """Pipeline rows grouped into series that differ in the split only, each by split size."""
    series: dict[str, list[Row]] = {}
    for item in rows:
        if item.strategy == "pipeline" and item.split_size is not None:
            token = f"split:{item.split_size}"
            rest = "/".join(part for part in item.name.split("/") if part != token)
            series.setdefault(rest, []).append(item)
    return [sorted(line, key=lambda item: item.split_size) for line in series.values()]
