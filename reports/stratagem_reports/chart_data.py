"""What each chart shows, as plain values: computed once here, drawn elsewhere.

Another renderer needs nothing but `build_charts`. Times are in milliseconds. A chart that the data
cannot feed is listed in `left_out` with the reason.
"""

from __future__ import annotations

from .chart_types import (
    Bar,
    BarChart,
    Breakdown,
    BreakdownBar,
    ChartSet,
    Point,
    SplitSeries,
    SplitSizeTradeoff,
)
from .crowding import fastest_bars, fastest_series
from .gantt_data import split_gantt, strategy_gantts
from .labels import listing, row_label, schedule_label, strategy_label
from .load import Results
from .scaling_data import memory, scaling
from .schedules_data import schedules
from .selection import Measured, Selection, series_label
from .statistics import (
    Interval,
    describe_deviation,
    describe_interval,
    distinguishable,
    median_or_none,
    speed_up,
)


def build_charts(results: Results, selection: Selection) -> ChartSet:
    """Every chart that the rows can feed."""
    return ChartSet.of(
        {
            "mp_vs_rn": _bars(selection, with_pipeline=False),
            "mp_vs_rn_vs_pp": _bars(selection, with_pipeline=True),
            "split_size_tradeoff": _split_size_tradeoff(selection),
            "gantt_best": split_gantt(selection, best=True),
            "gantt_worst": split_gantt(selection, best=False),
            **strategy_gantts(selection),
            "breakdown": _breakdown(selection),
            "scaling": scaling(results, selection),
            "memory": memory(selection, *fastest_bars(selection, labelled(selection))),
            "schedules": schedules(selection),
        }
    )


def mean_breakdown(measured: Measured) -> dict[str, float]:
    """The parts of the step in milliseconds, means over devices and repetitions; {} if unknown."""
    parts = [
        device.breakdown_ms
        for repetition in measured.row.repetitions
        for device in repetition.devices
        if device.breakdown_ms
    ]
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: sum(part.get(key, 0.0) for part in parts) / len(parts) for key in keys}


def predicted_ms(measured: Measured) -> float | None:
    """The simulator's step time from the calibration at this very split."""
    return median_or_none([item.predicted_ms for item in measured.row.repetitions])


def predicted_from_two_splits_ms(measured: Measured) -> float | None:
    """The simulator's step time from the costs at two splits only."""
    return median_or_none([item.predicted_from_two_splits_ms for item in measured.row.repetitions])


def _point(measured: Measured) -> Point:
    summary = measured.summary
    interval: Interval = summary.interval
    low, high = interval.low, interval.high
    if measured.row.tutorial:
        low, high = summary.mean - summary.deviation, summary.mean + summary.deviation
    return Point(measured.time_ms, low, high, summary.samples)


def _axis(selection: Selection) -> str:
    return "Time of one training call" if selection.tutorial else "Step time"


def _error_label(selection: Selection, rows: list[Measured]) -> str:
    describe = describe_deviation if selection.tutorial else describe_interval
    return describe([item.summary.count for item in rows])


def _bars(selection: Selection, with_pipeline: bool) -> BarChart | str:
    single, model_parallel = selection.single, selection.model_parallel
    missing = [
        name for name, row in (("single", single), ("model_parallel", model_parallel)) if not row
    ]
    pipeline = selection.charted_pipeline if with_pipeline else None
    if with_pipeline and not pipeline:
        missing.append("pipeline")
    if missing:
        return f"no working row of {listing(missing)}"
    rows = [(model_parallel, "Model parallel"), (single, "Single device")]
    if selection.single_all_cores:
        rows.append((selection.single_all_cores, "Single, all cores"))
    if pipeline:
        rows.append((pipeline, _pipeline_bar_label(selection, pipeline)))
    bars = [
        Bar(
            strategy="single_all_cores"
            if item is selection.single_all_cores
            else item.row.strategy,
            label=label,
            point=_point(item),
            speed=None if item is single else single.time_ms / item.time_ms,
        )
        for item, label in rows
    ]
    error_label = _error_label(selection, [item for item, _ in rows])
    centre = "mean" if selection.tutorial else "median"
    return BarChart(
        title="Model parallel, single device and pipeline"
        if pipeline
        else "Model parallel against a single device",
        subtitle=selection.workload,
        axis=_axis(selection),
        error_label=error_label,
        bars=bars,
        caption=f"Bar: {centre}. Error bar: {error_label}. Dot: one sample. "
        "The factor is the speed relative to the single device.",
    )


def _pipeline_bar_label(selection: Selection, pipeline: Measured) -> str:
    schedule = pipeline.row.option("schedule")
    name = f"Pipeline, {schedule_label(str(schedule))}" if schedule else "Pipeline"
    best = " (best)" if pipeline is selection.best_pipeline else ""
    return f"{name}\nsplit {pipeline.row.split_size}{best}"


def _split_size_tradeoff(selection: Selection) -> SplitSizeTradeoff | str:
    best = selection.best_pipeline
    if best is None:
        return "no working pipeline row"
    lines, shown = fastest_series([line for line in selection.pipelines if len(line) > 1])
    if best not in (item for line in lines for item in line):
        return "the pipeline was measured at one split only; it takes two or more"
    rows = [item for line in lines for item in line]
    best_series = next(index for index, line in enumerate(lines) if best in line)
    error_label = _error_label(selection, rows)
    centre = "Mean" if selection.tutorial else "Median"
    return SplitSizeTradeoff(
        title="Split-size trade-off of the pipeline",
        subtitle=selection.workload,
        axis=_axis(selection),
        error_label=error_label,
        series=[_split_series(line, selection.tutorial) for line in lines],
        levels=_levels(selection),
        best_series=best_series,
        best_index=lines[best_series].index(best),
        best_note=_best_note(selection, best),
        caption=f"{centre} over split size (samples in a micro-batch); splits are evenly spaced. "
        f"Error bar: {error_label}. Dot: one sample.{shown}",
    )


def _split_series(line: list[Measured], tutorial: bool) -> SplitSeries:
    """Predictions are of one step, so they have no place beside whole training calls."""
    return SplitSeries(
        label=series_label(line),
        splits=[item.row.split_size for item in line],
        points=[_point(item) for item in line],
        predicted_ms=[None if tutorial else predicted_ms(item) for item in line],
        predicted_from_two_splits_ms=[
            None if tutorial else predicted_from_two_splits_ms(item) for item in line
        ],
    )


def _levels(selection: Selection) -> list[tuple[str, str, float]]:
    candidates = [
        ("Single device", "single", selection.single),
        ("Single, all cores", "single_all_cores", selection.single_all_cores),
        ("Model parallel", "model_parallel", selection.model_parallel),
    ]
    return [(label, strategy, item.time_ms) for label, strategy, item in candidates if item]


def _best_note(selection: Selection, best: Measured) -> str:
    lines = [f"best: split {best.row.split_size}"]
    if selection.model_parallel:
        ratio = speed_up(selection.model_parallel.summary, best.summary)
        lines.append(f"{ratio.value:.2f}\u00d7 as fast as model parallel")
    rivals = [
        str(item.row.split_size)
        for item in selection.splits
        if item is not best and not distinguishable(best.summary, item.summary)
    ]
    if rivals:
        lines.append(f"cannot tell it from split {listing(rivals)}")
    return "\n".join(lines)


def _breakdown(selection: Selection) -> Breakdown | str:
    bars = []
    rows, shown = fastest_bars(selection, labelled(selection))
    for label, item in rows:
        parts = mean_breakdown(item)
        if parts:
            bars.append(BreakdownBar(label, parts))
    if not bars:
        return "no row has a breakdown of its step"
    return Breakdown(
        title="Where the step goes",
        subtitle=f"{selection.workload}; mean over the devices of a row",
        bars=bars,
        caption="Parts of the step, means over devices and timed steps. Hidden communication lies "
        "inside compute and is striped there. Bubble: idle for want of another stage's output. "
        f"Wait: inside a collective before its last peer came.{shown}",
    )


def labelled(selection: Selection) -> list[tuple[str, Measured]]:
    """Every row in the order of its role, with the label that it has beside the others."""
    return [(_breakdown_label(selection, item), item) for item in _by_role(selection)]


def _breakdown_label(selection: Selection, item: Measured) -> str:
    if item is selection.single_all_cores:
        return "Single, all cores"
    if item.row.strategy == "pipeline" and len(selection.pipelines) == 1:
        return f"Pipeline, split {item.row.split_size}"
    return row_label(item.row) if item.row.strategy != "single" else strategy_label("single")


def _by_role(selection: Selection) -> list[Measured]:
    """Baselines first, then other strategies by time, then each pipeline by split."""
    baselines = [
        item
        for item in (selection.single, selection.single_all_cores, selection.model_parallel)
        if item
    ]
    pipelines = [item for line in selection.pipelines for item in line]
    others = [item for item in selection.rows if item not in baselines and item not in pipelines]
    return baselines + others + pipelines
