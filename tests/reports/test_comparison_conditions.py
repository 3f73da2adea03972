"""stratagem compare does not compare times of launches that ran under unlike conditions."""

import functools

import pytest
from compared_files import compare_files
from comparison_documents import document, launch, launches

ROW = "single/mlp/devices:1/batch:8"
STEADY = [100.0, 100.3, 99.8, 100.1, 99.9, 100.2]


@pytest.fixture
def compare(tmp_path, capsys):
    """Runs the command on documents; gives the exit code, what it printed, and JSON."""
    return functools.partial(compare_files, tmp_path, capsys)


def marked(*marks, launches_with=6, canary_ms=None, times=STEADY, **own):
    """A side of which so many launches have the marks."""
    conditions = {"canary_before_ms": [canary_ms], "canary_after_ms": [canary_ms]}
    if canary_ms is not None:
        own["conditions"] = conditions
    rows = launches(times, **own)
    for one in rows[:launches_with]:
        one["marks"] = list(marks)
    return document({ROW: rows})


def slower(marks=(), **own):
    return marked(*marks, times=[1.05 * time for time in STEADY], **own)


@pytest.mark.parametrize(
    ("base", "head", "note"),
    [
        (marked("disturbed"), slower(), "every launch of the base was disturbed"),
        (marked("shared_cores", launches_with=1), slower(), "used the cores of the base"),
        (marked("test_fault"), slower(), "the base has an injected fault"),
        (marked("not_stationary", launches_with=3), slower(), "before they were steady"),
        (marked("slow_machine"), slower(), "the machine of the base was slower"),
        (marked("oversubscribed"), slower(), "oversubscribed in the base only"),
        (marked("shared"), slower(), "shared in the base only"),
        (marked(canary_ms=20), slower(canary_ms=21.5), "the canary of the head took 7% longer"),
        (marked(canary_ms=21.5), slower(canary_ms=20), "the canary of the base took 7% longer"),
        (
            marked(),
            document({ROW: [launch(100, step_ms=[105.0] * 2) for _ in STEADY]}),
            "--steps 1 in the base and 2 in the head",
        ),
    ],
)
def test_unlike_conditions_cannot_be_told(compare, base, head, note):
    code, captured, found = compare(base, head)
    assert found["rows"][0]["verdict"] == "cannot tell"
    assert note in found["rows"][0]["note"]
    assert note in captured.out
    assert code == 0


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (marked("not_stationary", launches_with=2), slower()),
        (marked("oversubscribed"), slower(marks=["oversubscribed"])),
        (marked(canary_ms=20), slower(canary_ms=20.9)),
        (marked("slow_machine", canary_ms=22), slower(canary_ms=22)),
        (marked(canary_ms=20), slower()),
    ],
    ids=["few unsteady", "both oversubscribed", "near canaries", "both slow", "no canary"],
)
def test_like_conditions_are_compared(compare, base, head):
    assert compare(base, head)[2]["rows"][0]["verdict"] == "slower"


def test_canaries_of_unlike_machines_are_not_compared(compare):
    head = slower(canary_ms=40)
    head["context"]["stratagem"]["fingerprint"]["hardware"] = {"cpu_model": "Another"}
    _, _, found = compare(marked(canary_ms=20), head, "--across-machines")
    assert found["rows"][0]["verdict"] == "slower"
