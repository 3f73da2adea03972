"""The comparison as JUnit XML, one test case a row: a regression fails, no verdict is skipped."""

from xml.etree import ElementTree

from .formatting import DETERMINISTIC_ONLY, SEPARATE_FILES, change_sentence, machine_notes, table
from .verdicts import Comparison, RowComparison, Verdict


def render_junit(comparison: Comparison) -> str:
    """A test suite; a case's time is the head's median step in seconds, 0 if it is not compared."""
    unclear = [row for row in comparison.ambiguous if not row.regression]
    suite = ElementTree.Element(
        "testsuite",
        name="stratagem compare",
        tests=str(len(comparison.rows)),
        failures=str(len(comparison.regressions)),
        skipped=str(len(unclear)),
        errors="0",
    )
    _add_properties(suite, comparison)
    for row, shown in zip(comparison.rows, table(comparison), strict=True):
        seconds = (row.timing.head_median or 0.0) / 1e3
        case = ElementTree.SubElement(
            suite, "testcase", classname="stratagem", name=row.name, time=f"{seconds:.6f}"
        )
        if row.regression:
            failure = ElementTree.SubElement(case, "failure", message=_message(row, shown))
            failure.text = "\n".join(change_sentence(change) for change in row.changes)
        elif row.timing.verdict in (Verdict.CANNOT_TELL, Verdict.TOO_FEW):
            ElementTree.SubElement(case, "skipped", message=_message(row, shown))
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _add_properties(suite: ElementTree.Element, comparison: Comparison) -> None:
    """How far the verdicts can be trusted, for readers that do not see the other outputs."""
    judged = not comparison.deterministic_only
    values = {
        "across_machines": " ".join(machine_notes(comparison)),
        "separate_files": SEPARATE_FILES if judged and comparison.interleaved is None else "",
        "exact_only": "" if judged else DETERMINISTIC_ONLY,
    }
    found = {name: value for name, value in values.items() if value}
    holder = ElementTree.SubElement(suite, "properties") if found else None
    for name, value in found.items():
        ElementTree.SubElement(holder, "property", name=name, value=value)


def _message(row: RowComparison, shown: dict[str, str]) -> str:
    time = f"{shown['Change']} ({shown['Interval']})" if "Change" in shown else "time not compared"
    note = f"; {row.timing.note}" if row.timing.note else ""
    changes = shown["Deterministic metrics"]
    return f"{shown['Verdict']}: {time}; deterministic metrics: {changes}{note}"
