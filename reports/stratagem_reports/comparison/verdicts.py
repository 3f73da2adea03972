"""Joins what the statistics and the deterministic metrics say into a verdict for each row."""

import fnmatch
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from ..results.errors import InputError
from .conditions import unlike_conditions
from .deterministic import MetricChange, compare_metrics, count_compared
from .mann_whitney import Change, compare_launches, launches_needed, smallest_p_value
from .result_set import Launches, ResultSet, check_workload, common_units, differences


class Verdict(Enum):
    """What is known of a row's step time, or of what it counted where times are not compared."""

    SLOWER = "slower"
    FASTER = "faster"
    MORE = "does more"
    FEWER = "does less"
    SAME = "same"
    CANNOT_TELL = "cannot tell"
    TOO_FEW = "too few launches"
    FAILED = "failed"


@dataclass(frozen=True)
class Timing:
    """A row's times; `adjusted_p` is corrected for the number of rows, `note` says what is missing.

    `base_ms` and `head_ms` are the sides' launches, in pairs where the rounds were interleaved, and
    empty where times are not compared: the verdict is that of the deterministic metrics there.
    """

    base_ms: list[float]
    head_ms: list[float]
    change: Change | None
    adjusted_p: float | None
    verdict: Verdict
    note: str = ""
    broke: bool = False  # failed in the head only

    @property
    def base_median(self) -> float | None:
        """The base's median launch in ms."""
        return float(np.median(self.base_ms)) if self.base_ms else None

    @property
    def head_median(self) -> float | None:
        """The head's median launch in ms."""
        return float(np.median(self.head_ms)) if self.head_ms else None


@dataclass(frozen=True)
class RowComparison:
    """One row on both sides.

    `left_out` are metrics that depend on the hardware, which differs; `outliers` says by side how
    many samples (each a `sample`) and launches are outliers, empty where times are not compared.
    """

    name: str
    timing: Timing
    changes: list[MetricChange]
    metrics_compared: int
    marks: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    sample: str = "step"
    outliers: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def regression(self) -> bool:
        """True when the head is slower, does more, or fails where the base worked."""
        return (
            self.timing.verdict is Verdict.SLOWER
            or any(change.regression for change in self.changes)
            or self.timing.broke
        )

    @property
    def compared(self) -> bool:
        """True when both sides worked and had something to compare."""
        without = (Verdict.FAILED, Verdict.CANNOT_TELL, Verdict.TOO_FEW)
        return self.timing.verdict not in without


@dataclass(frozen=True)
class Comparison:
    """Everything a renderer shows; where `deterministic_only`, no time and no threshold."""

    base: ResultSet
    head: ResultSet
    rows: list[RowComparison]
    threshold: float | None
    confidence: float | None
    method: str
    deterministic_only: bool = False
    across_machines: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    interleaved: dict[str, Any] | None = None
    accepted_in_vain: list[str] = field(default_factory=list)

    @property
    def only_base(self) -> list[str]:
        """The names of rows that the head lacks."""
        return [name for name in self.base.rows if name not in self.head.rows]

    @property
    def only_head(self) -> list[str]:
        """The names of rows that the base lacks."""
        return [name for name in self.head.rows if name not in self.base.rows]

    @property
    def software(self) -> dict[str, tuple[Any, Any]]:
        """Software fields that differ: reported, never refused."""
        return differences(self.base.software, self.head.software)

    @property
    def regressions(self) -> list[RowComparison]:
        """The rows that got worse."""
        return [row for row in self.rows if row.regression]

    @property
    def ambiguous(self) -> list[RowComparison]:
        """The rows of which nothing can be said."""
        unclear = (Verdict.CANNOT_TELL, Verdict.TOO_FEW)
        return [row for row in self.rows if row.timing.verdict in unclear]

    def exit_code(self, fail_on_ambiguous: bool) -> int:
        """0; 1 with a regression; 5 where something cannot be told, if that is asked for."""
        if self.regressions:
            return 1
        return 5 if fail_on_ambiguous and self.ambiguous else 0


def accept(comparison: Comparison, intended: list[str]) -> Comparison:
    """Marks increases that are intended: "METRIC=ROW", with the shell's wildcards."""
    grown = {
        f"{change.metric}={row.name}"
        for row in comparison.rows
        for change in row.changes
        if change.regression
    }
    accepted = {name for one in intended for name in fnmatch.filter(grown, one)}
    rows = [
        replace(
            row,
            changes=[
                replace(change, accepted=f"{change.metric}={row.name}" in accepted)
                for change in row.changes
            ],
        )
        for row in comparison.rows
    ]
    vain = [one for one in intended if not fnmatch.filter(grown, one)]
    return replace(comparison, rows=rows, accepted_in_vain=vain)


def compare_result_sets(
    base: ResultSet, head: ResultSet, threshold: float, confidence: float, across_machines: bool
) -> Comparison:
    """Compares two result sets measured apart; InputError when their machines differ."""
    common = common_rows(base, head)
    across = check_machines(base, head, across_machines)
    timings = _timings(base, head, common, threshold, confidence, not across)
    return Comparison(
        base=base,
        head=head,
        rows=compare_rows(base, head, timings),
        threshold=threshold,
        confidence=confidence,
        method="Mann-Whitney over launches, corrected by Holm for the number of rows",
        across_machines=across,
    )


def common_rows(base: ResultSet, head: ResultSet) -> list[str]:
    """The names both sides have, in the base's order; InputError where they name other work."""
    names = [name for name in base.rows if name in head.rows]
    for name in names:
        check_workload(name, base.rows[name].workload, head.rows[name].workload, head.sources[0])
    return names


def check_machines(base: ResultSet, head: ResultSet, allowed: bool) -> dict[str, tuple[Any, Any]]:
    """The hardware fields that differ; InputError unless that is allowed."""
    found = differences(base.hardware, head.hardware)
    for name, (one, two) in found.items():
        if not allowed:
            raise InputError(
                f"hardware differs: {name} is {one} in {base.sources[0]} and {two} in "
                f"{head.sources[0]}; measure both on one machine, or give --across-machines"
            )
    return found


def compare_rows(
    base: ResultSet, head: ResultSet, timings: dict[str, Timing]
) -> list[RowComparison]:
    """Joins the timings with the changed metrics; regressions first, then by change of time."""
    units = common_units(base, head)
    rows = [
        RowComparison(
            name=name,
            timing=timing,
            changes=compare_metrics(base.rows[name], head.rows[name], units),
            metrics_compared=count_compared(base.rows[name], head.rows[name]),
            marks=list(dict.fromkeys(base.rows[name].marks + head.rows[name].marks)),
            sample=base.rows[name].sample,
            outliers={own.label: own.rows[name].outliers for own in (base, head)},
        )
        for name, timing in timings.items()
    ]
    return sorted(rows, key=lambda row: (not row.regression, -_ratio(row)))


def judge(change: Change, adjusted_p: float, level: float, threshold: float) -> Verdict:
    """The verdict over one row.

    Slower or faster: the test refuses "no change" at the level after the correction, and the change
    is at least the threshold, below which nobody would act. Same: the interval lies inside the
    threshold.
    """
    refused = adjusted_p <= level
    if refused and change.ratio >= 1 + threshold:
        return Verdict.SLOWER
    if refused and change.ratio <= 1 / (1 + threshold):
        return Verdict.FASTER
    if change.low is None or change.high is None:
        return Verdict.CANNOT_TELL
    same = 1 / (1 + threshold) <= change.low and change.high <= 1 + threshold
    return Verdict.SAME if same else Verdict.CANNOT_TELL


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down adjustment (1979): each is to be held against the level for all together."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def failed_timing(base: Launches, head: Launches) -> Timing | None:
    """The timing of a row that failed on a side; None where it worked on both."""
    failures = {
        label: launches.error or "no launch"
        for label, launches in (("base", base), ("head", head))
        if launches.error or not launches.step_ms
    }
    if not failures:
        return None
    note = "; ".join(f"failed in the {label}: {reason}" for label, reason in failures.items())
    broke = "base" not in failures
    return Timing(base.step_ms, head.step_ms, None, None, Verdict.FAILED, note, broke)


def _timings(
    base: ResultSet,
    head: ResultSet,
    common: list[str],
    threshold: float,
    confidence: float,
    one_machine: bool,
) -> dict[str, Timing]:
    timings = {name: failed_timing(base.rows[name], head.rows[name]) for name in common}
    working = [name for name, failed in timings.items() if failed is None]
    level = (1 - confidence) / max(1, len(working))
    # Each interval at its share of the level: all of them hold together, and so does every "same".
    changes = {
        name: compare_launches(base.rows[name].step_ms, head.rows[name].step_ms, 1 - level)
        for name in working
    }
    adjusted = dict(zip(working, holm([changes[name].p_value for name in working]), strict=True))
    for name in working:
        one, two = base.rows[name].step_ms, head.rows[name].step_ms
        if note := unlike_conditions(base.rows[name], head.rows[name], one_machine):
            timings[name] = Timing(one, two, changes[name], None, Verdict.CANNOT_TELL, note)
            continue
        if smallest_p_value(len(one), len(two)) > level:
            needed = launches_needed(level)
            note = f"{len(one)} and {len(two)} launches; {needed} a side would be enough"
            timings[name] = Timing(one, two, changes[name], None, Verdict.TOO_FEW, note)
            continue
        verdict = judge(changes[name], adjusted[name], 1 - confidence, threshold)
        timings[name] = Timing(one, two, changes[name], adjusted[name], verdict)
    return timings


def _ratio(row: RowComparison) -> float:
    return row.timing.change.ratio if row.timing.change else 0.0
