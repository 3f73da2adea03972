"""What six runs of the README's first command told, three of them beside a compiler.

`readme_runs.jsonl` is made by record_readme_runs.py. Nothing is timed here.
"""

import itertools
import json
from pathlib import Path

import pytest

RUNS = [
    json.loads(line)
    for line in Path(__file__).with_name("readme_runs.jsonl").read_text().splitlines()
]
QUIET = [run for run in RUNS if not run["neighbour"]]
BUSY = [run for run in RUNS if run["neighbour"]]


def told(run, one, other):
    """-1 where the first row is told to be the faster, 1 where the other is, else 0."""
    rows = run["rows"]
    if other in rows[one]["cannot_tell"] or one in rows[other]["cannot_tell"]:
        return 0
    return -1 if rows[one]["median_ms"] < rows[other]["median_ms"] else 1


def pairs():
    return list(itertools.combinations(sorted(RUNS[0]["rows"]), 2))


def majority(one, other):
    """What the quiet runs tell together, by their medians where they tell nothing."""
    total = sum(told(run, one, other) for run in QUIET)
    if total == 0:
        medians = [(run["rows"][one]["median_ms"], run["rows"][other]["median_ms"]) for run in QUIET]
        total = sum(-1 if first < second else 1 for first, second in medians)
    return -1 if total < 0 else 1


def test_all_runs_are_there_and_whole():
    assert (len(QUIET), len(BUSY)) == (3, 3)
    for run in RUNS:
        assert not any(row["error"] for row in run["rows"].values())
        assert set(run["rows"]) == set(RUNS[0]["rows"])


@pytest.mark.parametrize("run", RUNS, ids=lambda run: "busy" if run["neighbour"] else "quiet")
def test_no_verdict_contradicts_the_majority_of_the_quiet_runs(run):
    for one, other in pairs():
        assert told(run, one, other) in (0, majority(one, other)), (one, other)


def test_quiet_runs_tell_most_pairs_apart():
    for run in QUIET:
        assert sum(told(run, *pair) != 0 for pair in pairs()) >= len(pairs()) * 2 / 3


@pytest.mark.parametrize("run", RUNS, ids=lambda run: "busy" if run["neighbour"] else "quiet")
def test_a_prediction_holds_or_is_doubted(run):
    for name, row in run["rows"].items():
        if (error := row["prediction_error"]) is not None and not row["doubt"]:
            assert abs(error) < (0.10 if run["neighbour"] else 0.05), name


def test_the_parts_of_a_step_leave_nothing_unexplained():
    for run in QUIET:
        assert all(row["other"] < 0.01 for row in run["rows"].values())
