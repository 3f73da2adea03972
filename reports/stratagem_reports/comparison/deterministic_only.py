"""The comparison that ignores times: `stratagem compare --exact-only`.

One launch a side tells, on any machine and between different ones: what is compared follows from
code and configuration. What depends on the hardware is left out where that differs.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from ..analysis.labels import counted
from ..results.load import Results
from .builds import LAUNCH_LIMIT_S, Build, result_set_of, run_once
from .deterministic import (
    MEMORY,
    Kind,
    MetricChange,
    bound_to_hardware,
    compare_metrics,
    count_compared,
)
from .result_set import Launches, ResultSet, common_units, differences
from .verdicts import Comparison, RowComparison, Timing, Verdict, common_rows, failed_timing

NOTHING = "no deterministic metric to compare"


def compare_metrics_only(
    base: ResultSet,
    head: ResultSet,
    across_machines: bool,
    interleaved: dict[str, Any] | None = None,
) -> Comparison:
    """Compares what both sides counted; InputError when a metric has two units.

    Machines may differ: `across_machines` compares what depends on them all the same.
    """
    found = differences(base.hardware, head.hardware)
    units = common_units(base, head)
    bound = () if across_machines else found
    rows = [
        _row(base.rows[name], head.rows[name], units, bound) for name in common_rows(base, head)
    ]
    return Comparison(
        base=base,
        head=head,
        rows=sorted(rows, key=lambda row: not row.regression),
        threshold=None,
        confidence=None,
        method="equality of what every launch counted; peak memory with a tolerance of 1%",
        deterministic_only=True,
        across_machines=found,
        interleaved=interleaved,
    )


def compare_builds_by_metrics(
    base: Build,
    head: Build,
    run_options: list[str],
    rounds: int,
    control: bool,
    progress: Callable[[str, float | None], None],
) -> Comparison:
    """Launches all rows by both builds, once a round; LaunchError when there are no results."""
    began = time.monotonic()
    results: dict[str, list[Results]] = {"base": [], "head": []}
    for number in range(1, rounds + 1):
        for build in (base, head):
            progress(f"round {number} of {rounds}, {build.label}", None)
            results[build.label].append(run_once(build, run_options, LAUNCH_LIMIT_S))
    about = _about(rounds, control, (time.monotonic() - began) / 60)
    one, two = (result_set_of(build, results[build.label]) for build in (base, head))
    return compare_metrics_only(one, two, False, about)


def _about(rounds: int, control: bool, minutes: float) -> dict[str, Any]:
    notes = [f"{counted(rounds, 'launch')} of each build in {minutes:.1f} min, all rows at once."]
    if control:
        notes.append("Control: both sides are one build, so what differs is not deterministic.")
    return {
        "rounds": rounds,
        "planned_rounds": rounds,
        "looks": [],
        "levels": [],
        "minutes": minutes,
        "control": control,
        "complete": True,
        "interrupted": False,
        "notes": notes,
    }


def _row(
    base: Launches, head: Launches, units: dict[str, str], fields: Collection[str]
) -> RowComparison:
    left_out = sorted({*bound_to_hardware(base, fields), *bound_to_hardware(head, fields)})
    changes = compare_metrics(base, head, units, left_out)
    verdict = _verdict(base, head, changes, left_out)
    note = NOTHING if verdict is Verdict.CANNOT_TELL else ""
    timing = failed_timing(base, head) or Timing([], [], None, None, verdict, note)
    return RowComparison(
        name=base.name,
        timing=replace(timing, base_ms=[], head_ms=[]),
        changes=changes,
        metrics_compared=count_compared(base, head, left_out),
        left_out=left_out,
    )


def _verdict(
    base: Launches, head: Launches, changes: list[MetricChange], left_out: Collection[str]
) -> Verdict:
    kinds = {change.kind for change in changes}
    if Kind.MORE in kinds:
        return Verdict.MORE
    if Kind.FEWER in kinds:
        return Verdict.FEWER
    unsteady = [change.metric for change in changes if change.kind is Kind.UNSTEADY]
    memory = base.peak_memory_bytes and head.peak_memory_bytes and MEMORY not in left_out
    steady = count_compared(base, head, {*left_out, *unsteady})
    return Verdict.SAME if steady or memory else Verdict.CANNOT_TELL
