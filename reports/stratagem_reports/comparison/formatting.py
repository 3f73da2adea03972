"""The words and numbers that every renderer shows, so that they agree with each other."""

from collections import Counter

from ..analysis.labels import counted, listing, percent, time_text
from .deterministic import Kind, MetricChange
from .verdicts import Comparison, RowComparison, Timing, Verdict

_OF_TIMES = ("Base", "Head", "Change", "Interval")
_UNDECIDED = {Verdict.CANNOT_TELL, Verdict.TOO_FEW}
NONE = "\u2013"

SEPARATE_FILES = (
    "Files measured at different times cannot distinguish a regression from a busy neighbour. "
    "`stratagem compare --interleave BASE_BUILD HEAD_BUILD` runs both builds in turn."
)
DETERMINISTIC_ONLY = (
    "Deterministic metrics only: times were not compared. Calls, bytes, FLOPs, live micro-batches "
    "and operators follow from code and configuration, so one launch on any machine is enough."
)
OUTLIERS = (
    "Outlying steps and launches lie beyond Tukey's fences (1.5 interquartile ranges) among all "
    "steps or launches of the row in base or head. They are marked and still counted."
)


def headline(comparison: Comparison) -> str:
    """One sentence: how many rows, and what became of them."""
    counts = [
        (len([row for row in comparison.rows if row.timing.verdict is verdict]), verdict.value)
        for verdict in Verdict
    ]
    parts = [f"{count} {word}" for count, word in counts if count]
    worse = sum(1 for row in comparison.rows if any(item.regression for item in row.changes))
    if worse and not comparison.deterministic_only:
        parts.append(f"{worse} with an increased deterministic metric")
    rows = counted(len(comparison.rows), "row")
    told = {row.timing.verdict for row in comparison.rows} - _UNDECIDED
    verdict = "Regression" if comparison.regressions else "No regression found"
    if not comparison.regressions and not told:
        verdict = "Undecided"
    where = " (across machines)" if comparison.across_machines else ""
    ignored = "; times were not compared" if comparison.deterministic_only else ""
    return f"{verdict}: {rows}, {listing(parts)}{where}{ignored}."


def table(comparison: Comparison) -> list[dict[str, str]]:
    """Each row's cells by their column, those columns alone that have something to say."""
    rows = [_cells(row) for row in comparison.rows]
    unused = set(_OF_TIMES) if comparison.deterministic_only else set()
    if all(row["Marks"] == NONE for row in rows):
        unused.add("Marks")
    return [{name: text for name, text in row.items() if name not in unused} for row in rows]


def _cells(row: RowComparison) -> dict[str, str]:
    timing = row.timing
    return {
        "Verdict": timing.verdict.value,
        "Row": row.name,
        "Base": _time(timing.base_median, timing.base_ms),
        "Head": _time(timing.head_median, timing.head_ms),
        "Change": f"{timing.change.ratio - 1:+.1%}" if timing.change else NONE,
        "Interval": _interval(timing),
        "Deterministic metrics": _changes(row),
        "Marks": "; ".join(row.marks + _outliers(row)) or NONE,
    }


def _outliers(row: RowComparison) -> list[str]:
    """For each side that has any: "base: 2 outlying steps kept"."""
    texts = []
    for label, counts in row.outliers.items():
        found = {row.sample: counts["samples"], "launch": counts["launches"]}
        words = [counted(count, f"outlying {noun}") for noun, count in found.items() if count]
        if words:
            texts.append(f"{label}: {listing(words)} kept")
    return texts


def _interval(timing: Timing) -> str:
    """The interval of the change; a verdict of "too few" has none worth showing."""
    change = timing.change
    if change is None or change.low is None or timing.verdict is Verdict.TOO_FEW:
        return NONE
    return f"{change.low - 1:+.1%} to {change.high - 1:+.1%}"


def _changes(row: RowComparison) -> str:
    """How many metrics are equal, or how many are not and how many could not be compared."""
    unsteady = sum(1 for change in row.changes if change.kind is Kind.UNSTEADY)
    worse = sum(1 for change in row.changes if change.regression)
    counts = {"changed": len(row.changes) - unsteady, "worse": worse, "not compared": unsteady}
    words = [f"{count} {what}" for what, count in counts.items() if count]
    if words:
        return ", ".join(words)
    return f"{row.metrics_compared} equal" if row.metrics_compared else "none"


def change_sentence(change: MetricChange) -> str:
    """A change of a metric as words: "communication.all_reduce.calls: 4 -> 5 (+25.0%)"."""
    if change.kind is Kind.UNSTEADY:
        return f"{change.metric}: {change.kind.value}, so it was not compared"
    if change.kind in (Kind.NEW, Kind.GONE):
        value = change.head if change.kind is Kind.NEW else change.base
        return f"{change.metric}: {change.kind.value} ({number(value)} {change.unit})".strip()
    relative = f" ({change.head / change.base - 1:+.1%})" if change.base else ""
    values = f"{number(change.base)} \u2192 {number(change.head)}"
    accepted = ", accepted" if change.accepted else ""
    return f"{change.metric}: {values} {change.unit}".rstrip() + relative + accepted


def notes(comparison: Comparison) -> list[str]:
    """What the reader has to know, one sentence each."""
    words = _method(comparison)
    words += machine_notes(comparison) + _software_notes(comparison)
    words += _step_notes(comparison)
    for side, names in (("base", comparison.only_base), ("head", comparison.only_head)):
        words += [f"Only in the {side}, not compared: {name}" for name in names]
    words += [
        f"--accept {one}: no metric of this name grew in these rows."
        for one in comparison.accepted_in_vain
    ]
    few = [row.timing.note for row in comparison.rows if row.timing.verdict is Verdict.TOO_FEW]
    if few:
        words.append(f"Too few for a verdict on the time: {'; '.join(dict.fromkeys(few))}.")
    if any(_outliers(row) for row in comparison.rows):
        words.append(OUTLIERS)
    if comparison.interleaved is not None:
        words += comparison.interleaved["notes"]
    elif not comparison.deterministic_only:
        words.append(SEPARATE_FILES)
    return words


def _step_notes(comparison: Comparison) -> list[str]:
    """The rows whose launches time another number of steps on the other side."""
    words = []
    for row in comparison.rows:
        one, two = (
            side.rows[row.name].config.get("steps") for side in (comparison.base, comparison.head)
        )
        if one != two:
            words.append(
                f"{row.name}: a launch times {one} steps in the base and {two} in the head; a step "
                f"contains its share of a pipeline's ramp."
            )
    return words


def _method(comparison: Comparison) -> list[str]:
    if comparison.deterministic_only:
        return [DETERMINISTIC_ONLY, f"Method: {comparison.method}."]
    return [
        f"Method: {comparison.method}; confidence {percent(comparison.confidence, 0)}; changes "
        f"below {percent(comparison.threshold)} count as none."
    ]


def machine_notes(comparison: Comparison) -> list[str]:
    """What differs between the machines, one sentence each; none where both are of one kind.

    Where metrics were left out for it, all is one sentence.
    """
    if any(row.left_out for row in comparison.rows):
        return [_left_out(comparison)]
    return [
        f"ACROSS MACHINES: {name} is {_shown(one)} in the base and {_shown(two)} in the head."
        for name, (one, two) in comparison.across_machines.items()
    ]


def _shown(value: object) -> str:
    """A field of a fingerprint, in words where it has none."""
    if value is None:
        return "not recorded"
    return "none" if value == "" else str(value)


def _left_out(comparison: Comparison) -> str:
    """Which metrics were not compared because of the hardware; those of some rows with a count."""
    fields = [
        f"{name}: {_shown(one)} and {_shown(two)}"
        for name, (one, two) in comparison.across_machines.items()
    ]
    rows = len(comparison.rows)
    metrics = Counter(metric for row in comparison.rows for metric in row.left_out)
    shown = [
        name if count == rows else f"{name} (of {count} of {rows} rows)"
        for name, count in sorted(metrics.items())
    ]
    advice = "; --across-machines compares it all the same" if not comparison.interleaved else ""
    return (
        f"Hardware differs ({'; '.join(fields)}): what depends on it was not compared: "
        f"{listing(shown)}{advice}."
    )


def _software_notes(comparison: Comparison) -> list[str]:
    words = [
        f"Software differs: {name} is {_shown(one)} in the base and {_shown(two)} in the head."
        for name, (one, two) in comparison.software.items()
    ]
    for result_set in (comparison.base, comparison.head):
        for name, values in result_set.mixed_software.items():
            shown = listing([f"{_shown(value)} in {source}" for source, value in values])
            words.append(f"Software differs within the {result_set.label}: {name} is {shown}.")
    return words


def details(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Of each row that has any: the changed metrics and the remark on its timing."""
    found = []
    for row in comparison.rows:
        lines = [change_sentence(change) for change in row.changes]
        if row.timing.note and row.timing.verdict is not Verdict.TOO_FEW:
            lines.append(row.timing.note)
        if lines:
            found.append((row.name, lines))
    return found


def number(value: float | None) -> str:
    """A count without a fraction, anything else with six digits."""
    if value is None:
        return "none"
    return f"{value:,.0f}" if value == int(value) else f"{value:.6g}"


def _time(median: float | None, launches: list[float]) -> str:
    return NONE if median is None else f"{time_text(median)} ({len(launches)})"
