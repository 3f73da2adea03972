"""The group sequential test run on recorded rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stratagem_reports.comparison.group_sequential import (
    Decision,
    Plan,
    all_clear,
    decide,
    keep_clear,
)


def replay(
    log_ratios: Mapping[str, Sequence[float]], plan: Plan, threshold: float
) -> dict[str, Decision]:
    """The whole test on recorded rounds: a row keeps the first clear verdict it gets."""
    decided: dict[str, Decision] = {}
    for look, level in zip(plan.looks, plan.levels, strict=True):
        seen = {name: list(values)[:look] for name, values in log_ratios.items()}
        decided = keep_clear(decided, decide(seen, level, threshold))
        if all_clear(decided):
            break
    return decided
