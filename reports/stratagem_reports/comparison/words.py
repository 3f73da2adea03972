"""The words and numbers that every renderer shows, so that they agree with each other."""

from __future__ import annotations

from ..labels import listing, percent, time_text
from .exact import ExactChange, Kind
from .verdicts import Comparison, RowComparison, Timing, Verdict

COLUMNS = ("Verdict", "Row", "Base", "Head", "Change", "Interval", "Exact metrics")

SEPARATE_FILES = (
    "Two files measured apart cannot tell a regression from a busy neighbour: the machine may have "
    "been another one at the other time. `stratagem compare --interleave BASE_BUILD HEAD_BUILD` "
    "launches both in turns and can."
)


def headline(comparison: Comparison) -> str:
    """One sentence: how many rows, and what became of them."""
    counts = [
        (len([row for row in comparison.rows if row.timing.verdict is verdict]), verdict.value)
        for verdict in Verdict
    ]
    parts = [f"{count} {word}" for count, word in counts if count]
    exact = sum(1 for row in comparison.rows if any(item.regression for item in row.exact))
    if exact:
        parts.append(f"{exact} with an exact metric that grew")
    noun = "row" if len(comparison.rows) == 1 else "rows"
    verdict = "Regression" if comparison.regressions else "No regression found"
    where = " (across machines)" if comparison.across_machines else ""
    return f"{verdict}: {len(comparison.rows)} {noun}, {listing(parts)}{where}."


def cells(row: RowComparison) -> list[str]:
    """A row's cells under COLUMNS."""
    timing = row.timing
    return [
        timing.verdict.value,
        row.name,
        _time(timing.base_median, timing.base_ms),
        _time(timing.head_median, timing.head_ms),
        change_text(timing),
        interval_text(timing),
        exact_text(row),
    ]


def change_text(timing: Timing) -> str:
    """The change of the step time, "+5.2%"; above zero is slower."""
    return f"{100 * (timing.change.ratio - 1):+.1f}%" if timing.change else "\u2013"


def interval_text(timing: Timing) -> str:
    """The interval of the change; a verdict of "too few" has none worth showing."""
    change = timing.change
    if change is None or change.low is None or timing.verdict is Verdict.TOO_FEW:
        return "\u2013"
    low, high = (100 * (value - 1) for value in (change.low, change.high))
    return f"{low:+.1f}% to {high:+.1f}%"


def exact_text(row: RowComparison) -> str:
    """How many metrics are equal, or how many are not and how many could not be compared."""
    unsteady = sum(1 for change in row.exact if change.kind is Kind.UNSTEADY)
    worse = sum(1 for change in row.exact if change.regression)
    counts = {"changed": len(row.exact) - unsteady, "worse": worse, "not compared": unsteady}
    words = [f"{count} {what}" for what, count in counts.items() if count]
    if words:
        return ", ".join(words)
    return f"{row.exact_compared} equal" if row.exact_compared else "none"


def change_sentence(change: ExactChange) -> str:
    """An exact change as words: "communication.all_reduce.calls: 4 -> 5 (+25.0%)"."""
    if change.kind is Kind.UNSTEADY:
        return f"{change.metric}: {change.kind.value}, so it was not compared"
    if change.kind in (Kind.NEW, Kind.GONE):
        value = change.head if change.kind is Kind.NEW else change.base
        return f"{change.metric}: {change.kind.value} ({number(value)} {change.unit})".strip()
    relative = f" ({change.head / change.base - 1:+.1%})" if change.base else ""
    values = f"{number(change.base)} \u2192 {number(change.head)}"
    return f"{change.metric}: {values} {change.unit}".rstrip() + relative


def notes(comparison: Comparison) -> list[str]:
    """What the reader has to know, one sentence each."""
    words = [
        f"Method: {comparison.method}; confidence {percent(comparison.confidence, 0)}; changes "
        f"below {percent(comparison.threshold)} count as none."
    ]
    words += machine_notes(comparison) + _software_notes(comparison)
    for side, names in (("base", comparison.only_base), ("head", comparison.only_head)):
        words += [f"Only in the {side}, not compared: {name}" for name in names]
    few = [row.timing.note for row in comparison.rows if row.timing.verdict is Verdict.TOO_FEW]
    if few:
        words.append(f"Too few for a verdict on the time: {'; '.join(dict.fromkeys(few))}.")
    marked = [f"{row.name} ({', '.join(row.marks)})" for row in comparison.rows if row.marks]
    if marked:
        words.append(f"Marked rows: {'; '.join(marked)}")
    if comparison.interleaved is None:
        words.append(SEPARATE_FILES)
    else:
        words += comparison.interleaved["notes"]
    return words


def machine_notes(comparison: Comparison) -> list[str]:
    """What differs between the machines, one sentence each; none where both are of one kind."""
    return [
        f"ACROSS MACHINES: {name} is {one} in the base and {two} in the head."
        for name, (one, two) in comparison.across_machines.items()
    ]


def _software_notes(comparison: Comparison) -> list[str]:
    words = [
        f"Software differs: {name} is {one} in the base and {two} in the head."
        for name, (one, two) in comparison.software.items()
    ]
    for side in (comparison.base, comparison.head):
        for name, values in side.mixed_software.items():
            shown = listing([f"{value} in {source}" for source, value in values])
            words.append(f"Software differs within the {side.label}: {name} is {shown}.")
    return words


def details(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Of each row that has any: the exact changes and the remark on its timing."""
    found = []
    for row in comparison.rows:
        lines = [change_sentence(change) for change in row.exact]
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
    return "\u2013" if median is None else f"{time_text(median)} ({len(launches)})"
