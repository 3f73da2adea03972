"""stratagem compare --interleave with real processes: builds are scripts that write results."""

import json
import os

import pytest
from scripted_builds import compare_interleaved, write_build

BUILD = """#!{python}
import json, random, sys
sys.path.insert(0, {tests!r})
from comparison_documents import document, launch
if sys.argv[1:] == ["--version"]:
    print("stratagem 0.1.0 (test)")
    sys.exit(0)
{before}
only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
out = sys.argv[sys.argv.index("--out") + 1]
rows = {{
    name: [launch(time * {factor} * random.uniform(0.999, 1.001), **{own})]
    for name, time in {{"single/mlp": 100.0, "ddp/mlp": 50.0}}.items()
    if only in ("", name)
}}
with open({log!r}, "a") as file:
    file.write({label!r} + (":" + only if only else "") + " ")
with open(out, "w") as file:
    json.dump(document(rows), file)
"""


@pytest.fixture
def build(tmp_path):
    """Makes a build folder whose stratagem takes `factor` times as long."""

    def make(label, factor=1.0, before="", own=None):
        return write_build(
            tmp_path / label, BUILD, label=label, factor=factor, before=before, own=own or {},
            log=str(tmp_path / "log"),
        )  # fmt: skip

    return make


@pytest.fixture
def compare(tmp_path, capsys):
    def run(*words, options=("--model", "mlp")):
        out = tmp_path / "comparison.json"
        code, found = compare_interleaved(out, "--whole-launches", *words, options=options)
        return code, capsys.readouterr(), found

    return run


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("HARDWARE['cpu_model'] = 'Other'", "cpu_model is Example"),
        ("METRICS['real_time']['unit'] = 'us'", "metrics.real_time: its unit is 'us'"),
    ],
)
def test_what_cannot_be_compared_is_refused_after_the_first_round(
    build, compare, tmp_path, change, words
):
    base = build("base")
    head = build("head", before=f"import comparison_documents as d; d.{change}")
    code, captured, found = compare(base, head, "--rounds", "12")
    assert (code, found) == (2, None)
    assert captured.err.count("\n") == 1 and words in captured.err
    assert len((tmp_path / "log").read_text().split()) == 2 + 4  # prepared, and one round


def test_a_slower_build_is_found_early_and_the_rounds_stop(build, compare, tmp_path):
    base, head = build("base"), build("head", 1.05)
    record = tmp_path / "rounds.jsonl"
    code, captured, found = compare(base, head, "--rounds", "24", "--record", record)
    assert code == 1, captured
    assert [row["verdict"] for row in found["rows"]] == ["slower", "slower"]
    assert found["interleaved"]["rounds"] == 12
    launched = (tmp_path / "log").read_text().split()
    assert launched[:2] == ["base", "head"]  # prepared, not measured
    pairs = [launched[index : index + 2] for index in range(2, len(launched), 2)]
    assert len(pairs) == 2 * 12
    rows = [[entry.split(":")[1] for entry in pair] for pair in pairs]
    assert all(one == two for one, two in rows), "a row's launches stand side by side"
    assert {frozenset({rows[at][0], rows[at + 1][0]}) for at in range(0, 24, 2)} == {
        frozenset({"single/mlp", "ddp/mlp"})
    }
    firsts = [pair[0].split(":")[0] for pair in pairs]
    assert set(firsts) == {"base", "head"}, "the order within a pair is random"
    rounds = [json.loads(line) for line in record.read_text().splitlines()]
    assert [entry["round"] for entry in rounds] == list(range(1, 13))
    assert [label for entry in rounds for _, label in entry["first"]] == firsts


def test_builds_without_a_row_in_common_are_3(build, compare, tmp_path):
    other = "document = lambda rows, make=document: make({'o/' + key: rows[key] for key in rows})"
    code, captured, found = compare(build("base"), build("head", before=other))
    assert (code, found) == (3, None)
    assert "no row has the same name on both sides" in captured.err
    assert (tmp_path / "log").read_text().split() == ["base", "head"]


def test_a_control_finds_nothing_and_tells_the_noise(build, compare):
    code, captured, found = compare(build("base"), "--control", "--rounds", "20")
    assert code == 0
    assert {row["verdict"] for row in found["rows"]} == {"same"}
    assert "of the same build, half of the rounds differ by" in captured.out


def test_deterministic_metrics_gate_in_a_single_round(build, compare):
    head = build("head", own={"calls": 3})
    code, captured, found = compare(build("base"), head, "--rounds", "1")
    assert code == 1
    assert {row["verdict"] for row in found["rows"]} == {"too few launches"}
    assert "communication.all_reduce.calls: 2 \u2192 3" in captured.out


def test_the_budget_ends_the_rounds(build, compare):
    base = build("base", before="import time; time.sleep(0.3)")
    code, captured, found = compare(base, "--control", "--minutes", "0.05")
    assert code == 0
    assert 1 <= found["interleaved"]["rounds"] <= 5
    assert "would be enough" in captured.out


def test_builds_that_do_not_start_are_refused(build, compare, tmp_path):
    base = build("base")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no such library' >&2\nexit 127\n")
    os.chmod(broken, 0o755)
    (tmp_path / "other").write_text("#!/bin/sh\necho hello\n")
    os.chmod(tmp_path / "other", 0o755)
    plain = tmp_path / "plain"
    plain.write_text("text")
    for head, words in [
        (broken, "does not start: exit code 127: no such library"),
        (tmp_path / "other", "is not stratagem"),
        (plain, "not executable"),
        (tmp_path / "absent", "no executable there"),
    ]:
        code, captured, found = compare(base, head)
        assert (code, found) == (2, None)
        assert captured.err.count("\n") == 1 and words in captured.err


def test_a_launch_without_results_is_4_and_names_the_reason(build, compare):
    head = build("head", before="sys.exit('error: no such model')")
    code, captured, found = compare(build("base"), head)
    assert (code, found) == (4, None)
    assert "error: no such model" in captured.err and captured.err.count("\n") == 1


def test_options_that_a_build_refuses_are_2_and_name_the_build(build, compare):
    wrong = "print('stratagem run: --modle: unknown option', file=sys.stderr); sys.exit(2)"
    code, captured, found = compare(build("base", before=wrong), build("head"))
    assert (code, found) == (2, None)
    assert captured.err.count("\n") == 1
    assert "base" in captured.err and "--modle: unknown option" in captured.err


def test_a_failed_row_is_4_and_the_others_are_compared(build, compare):
    own = {"error": {"rank": 1, "message": "lost"}}
    code, captured, found = compare(build("base"), build("head", own=own), "--rounds", "2")
    assert code == 4
    assert {row["verdict"] for row in found["rows"]} == {"failed"}


def test_wrong_usage_is_refused(build, compare):
    base = build("base")
    assert compare(base)[0] == 2
    assert compare(base, base, "--control")[0] == 2
    assert compare(base, base, "--across-machines")[0] == 2
    code, captured, _ = compare(base, base, options=("--out", "x.json"))
    assert code == 2 and "--out after --" in captured.err
