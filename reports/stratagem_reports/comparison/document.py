"""The comparison as JSON: everything that was decided, and from which launches."""

import json
from typing import Any

from .formatting import headline, notes
from .result_set import ResultSet
from .verdicts import Comparison, RowComparison

SCHEMA = "stratagem-comparison/1"


def render_json(comparison: Comparison) -> str:
    """One object; ratios are head over base, times in ms, empty where they are not compared.

    A row's `outliers` counts by side the samples and the launches beyond Tukey's fences; a sample
    is a timed step, or a training call under the tutorial's protocol.
    """
    document = {
        "schema": SCHEMA,
        "summary": headline(comparison),
        "regression": bool(comparison.regressions),
        "times_compared": not comparison.deterministic_only,
        "method": comparison.method,
        "threshold": comparison.threshold,
        "confidence": comparison.confidence,
        "base": _result_set(comparison.base),
        "head": _result_set(comparison.head),
        "hardware_differences": _pairs(comparison.across_machines),
        "software_differences": _pairs(comparison.software),
        "only_base": comparison.only_base,
        "only_head": comparison.only_head,
        "interleaved": comparison.interleaved,
        "rows": [_row(row) for row in comparison.rows],
        "notes": notes(comparison),
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _result_set(found: ResultSet) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("sources", "commits", "hardware", "software")}


def _pairs(found: dict[str, tuple[Any, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {"base": one, "head": two} for name, (one, two) in found.items()}


def _row(row: RowComparison) -> dict[str, Any]:
    timing, change = row.timing, row.timing.change
    return {
        "name": row.name,
        "verdict": timing.verdict.value,
        "regression": row.regression,
        "note": timing.note,
        "base_ms": timing.base_ms,
        "head_ms": timing.head_ms,
        "ratio": None
        if change is None
        else {"value": change.ratio, "low": change.low, "high": change.high},
        "p_value": None if change is None else change.p_value,
        "adjusted_p_value": timing.adjusted_p,
        "exact": [
            {
                "metric": item.metric,
                "unit": item.unit,
                "base": item.base,
                "head": item.head,
                "change": item.kind.value,
                "regression": item.regression,
                "accepted": item.accepted,
            }
            for item in row.changes
        ],
        "not_compared": row.left_out,
        "marks": row.marks,
        "outliers": row.outliers,
    }
