"""Which rows the charts and the words speak about: one workload, its baselines, its pipelines.

A file may hold a grid over models, batches and devices; bars of different work must not stand side
by side. What is one workload, and which row is its baseline, the rows' summaries say. The workload
with the most rows is chosen, and within it the device count that most of its multi-device rows
share; everything else stays in the table, and `notes` says so.
"""

from collections import Counter
from dataclasses import dataclass, field

from ..results.load import Results, Row
from ..results.row_summary import Summary
from .labels import cores, row_label, workload_label

TUTORIAL_SPLIT = 20


@dataclass(frozen=True, eq=False)
class Measured:
    """A row that worked."""

    row: Row

    @property
    def summary(self) -> Summary:
        """What the results file says of the row's samples."""
        return self.row.summary

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
    rows = sorted(map(Measured, chosen), key=_time)
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


def working_rows(results: Results) -> list[Row]:
    """The rows that have samples, in file order."""
    return [row for row in results.rows if row.error is None and row.repetitions]


def series_label(line: list[Measured]) -> str:
    """What to call a series of splits: the row's label without its split."""
    row = line[0].row
    return row_label(row).replace(f", split {row.split_size}", "")


def _time(measured: Measured) -> float:
    return measured.time_ms


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


def _singles(rows: list[Measured]) -> tuple[Measured | None, Measured | None]:
    """The baseline, and the single process with all cores where that is another row."""
    named = {item.summary.baseline for item in rows}
    single = next((item for item in rows if item.row.name in named), None)
    others = [item for item in rows if item.row.strategy == "single" and item is not single]
    return single, max(others, key=lambda item: cores(item.row), default=None)


def _pipelines(rows: list[Measured]) -> list[list[Measured]]:
    """Pipeline rows grouped into series that differ in the split only, each by split size."""
    series: dict[str, list[Measured]] = {}
    for item in rows:
        if item.row.strategy == "pipeline" and item.row.split_size is not None:
            token = f"split:{item.row.split_size}"
            rest = "/".join(part for part in item.row.name.split("/") if part != token)
            series.setdefault(rest, []).append(item)
    return [sorted(line, key=lambda item: item.row.split_size) for line in series.values()]
