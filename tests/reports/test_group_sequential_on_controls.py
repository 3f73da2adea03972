"""The whole test, its stopping rule included, on recorded rounds of one build against itself.

control_rounds.jsonl is what `stratagem compare --interleave --control --record` left on a machine of
two cores; for a part of it another process took one of them. Blocks of neighbouring rounds are drawn
with all rows together, so that a disturbance keeps its length, its direction from round to round, and
falls on every row alike. Both sides are one build, so which of them is called head is drawn anew for
every block: otherwise the chance surplus of one side in the recording would count as a real
difference.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from replayed import replay
from stratagem_reports.comparison.group_sequential import make_plan
from stratagem_reports.comparison.verdicts import Verdict

RECORDED = Path(__file__).with_name("control_rounds.jsonl")
RESAMPLINGS = [400, pytest.param(2000, marks=pytest.mark.night)]
BLOCK = 4
ROUNDS = 40  # the budget that docs/explanation/statistics.md states
ALPHA = 0.03
THRESHOLD = 0.01


def recorded_log_ratios():
    """[round][row]: log(head / base)."""
    rounds = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    names = list(rounds[0]["ratio"])
    return names, np.log([[entry["ratio"][name] for name in names] for entry in rounds])


def shares(verdict, shift, resamplings):
    """How often each row got the verdict, with every head made `shift` slower."""
    names, values = recorded_log_ratios()
    plan = make_plan(ROUNDS, ALPHA)
    generator = np.random.default_rng(20)
    counts = dict.fromkeys(names, 0)
    for _ in range(resamplings):
        starts = generator.integers(0, len(values), size=-(-ROUNDS // BLOCK))
        drawn = (starts[:, None] + np.arange(BLOCK)).ravel()[:ROUNDS] % len(values)
        side = generator.choice((-1.0, 1.0), size=(len(starts), 1)).repeat(BLOCK, axis=0)[:ROUNDS]
        sample = side * values[drawn] + np.log1p(shift)
        rows = {name: sample[:, column].tolist() for column, name in enumerate(names)}
        for name, decision in replay(rows, plan, THRESHOLD).items():
            counts[name] += decision.verdict in verdict
    return {name: count / resamplings for name, count in counts.items()}


@pytest.mark.parametrize("resamplings", RESAMPLINGS)
def test_one_build_against_itself_raises_at_most_one_alarm_in_a_hundred(
    record_property, resamplings
):
    alarms = shares({Verdict.SLOWER, Verdict.FASTER}, 0.0, resamplings)
    record_property("false alarms", alarms)
    assert max(alarms.values()) <= 0.01, alarms


@pytest.mark.parametrize(("shift", "least"), [(0.05, 0.95), (0.03, 0.80)])
@pytest.mark.parametrize("resamplings", RESAMPLINGS)
def test_an_injected_slowdown_is_found(record_property, shift, least, resamplings):
    found = shares({Verdict.SLOWER}, shift, resamplings)
    record_property("found", found)
    assert min(found.values()) >= least, found
