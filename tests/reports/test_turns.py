"""Two builds that take turns: real processes, scripts that speak the word of `run --turns`."""

import functools
import json
import time

import pytest
from scripted_builds import compare_interleaved, write_build

BUILD = """#!{python}
import fcntl, json, socket, sys, time
sys.path.insert(0, {tests!r})
from comparison_documents import document, launch
if sys.argv[1:] == ["--version"]:
    print("stratagem 0.1.0 (test)")
    sys.exit(0)
STEPS = 6
out = sys.argv[sys.argv.index("--out") + 1]
turns = socket.socket(socket.AF_UNIX)
taken = "--turns" in sys.argv
if taken:
    turns.settimeout(20)
    turns.connect(sys.argv[sys.argv.index("--turns") + 1])
    turns.sendall(b"r")
times = []
for step in range(STEPS):
    {before}
    if taken and turns.recv(1) != b"g":
        sys.exit("error: the turns ended")
    # The machine: every step of whoever it is takes a little longer than the one before.
    with open({machine!r}, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refuses two at a time
        file.seek(0)
        count = len(file.read())
        time.sleep(0.005)
        file.write({label!r}[0])
    times.append(100.0 * {factor} * (1 + 0.002 * count))
    if taken:
        turns.sendall(b"d")
with open(out, "w") as file:
    json.dump(document({{"single/mlp": [launch(100.0) | {{"step_ms": times}} | {own}]}}), file)
"""


@pytest.fixture
def build(tmp_path):
    """Makes a build folder whose stratagem takes `factor` times as long a step."""

    def make(label, factor=1.0, before="pass", own=None):
        return write_build(
            tmp_path / label, BUILD, label=label, factor=factor, before=before, own=own or {},
            machine=str(tmp_path / "machine"),
        )  # fmt: skip

    return make


@pytest.fixture
def compare(tmp_path, capsys):
    def run(*words):
        code, found = compare_interleaved(tmp_path / "comparison.json", *words)
        return code, capsys.readouterr(), found

    return run


def test_both_live_at_once_and_run_a_step_each_in_balanced_pairs(build, compare, tmp_path):
    record = tmp_path / "rounds.jsonl"
    code, captured, found = compare(build("base"), build("head"), "--rounds", 3, "--record", record)
    assert code == 0, captured
    assert "step by step in turns" in " ".join(found["notes"])
    prepared, steps = 2 * 6, (tmp_path / "machine").read_text()
    for start in range(prepared, len(steps), 12):
        launched = steps[start : start + 12]
        pairs = [launched[at : at + 2] for at in range(0, 12, 2)]
        assert sorted(pairs) == ["bh"] * 3 + ["hb"] * 3, "each is first in half of the pairs"
    assert len(steps) == prepared + 3 * 12
    rounds = [json.loads(line) for line in record.read_text().splitlines()]
    assert len(rounds[0]["base"]["single/mlp"]) == len(rounds[0]["head"]["single/mlp"]) == 6


def test_a_machine_that_slows_down_is_neither_builds_fault(build, compare, tmp_path):
    """Twenty rounds in which the machine's speed halves."""
    code, captured, found = compare(build("base"), build("head"), "--rounds", 20)
    assert code == 0, captured
    (row,) = found["rows"]
    assert row["verdict"] == "same"
    assert len((tmp_path / "machine").read_text()) >= 10 * 12


def test_a_slower_build_is_found_on_such_a_machine(build, compare):
    code, captured, found = compare(build("base"), build("head", 1.03), "--rounds", 20)
    assert code == 1, captured
    (row,) = found["rows"]
    assert row["verdict"] == "slower"
    assert row["ratio"]["value"] == pytest.approx(1.03, abs=0.005)


@pytest.mark.parametrize("at", [0, 3])
def test_a_launch_that_ends_early_ends_the_comparison(build, compare, at):
    began = time.monotonic()
    before = f"if taken and step == {at}: sys.exit('error: out of memory')"
    code, captured, found = compare(build("base"), build("head", before=before), "--rounds", 2)
    assert (code, found) == (4, None)
    assert "error: out of memory" in captured.err and captured.err.count("\n") == 1
    assert time.monotonic() - began < 30


def test_a_launch_that_hangs_is_ended(build, compare, monkeypatch):
    from stratagem_reports.comparison import interleave

    limited = functools.partial(interleave.Settings, launch_limit_s=6.0)
    monkeypatch.setattr(interleave, "Settings", limited)
    before = "time.sleep(600 if taken and step == 2 else 0)"
    code, captured, _ = compare(build("base"), build("head", before=before), "--rounds", 2)
    assert code == 4
    assert captured.err.count("\n") == 1


def test_whole_launches_can_be_had(build, compare, tmp_path):
    code, _, found = compare(build("base"), "--control", "--rounds", 2, "--whole-launches")
    assert code == 0
    assert "one right after the other" in " ".join(found["notes"])
