"""The command on results over time: adding, showing, and what is refused."""

import json

import pytest
from stratagem_reports.history.points import time_text
from stratagem_reports.history.store import load

import fixture_results
from fixture_history import ROW, commit, contents, history, refused, runs, store
from reference_summaries import summarised


def test_add_keeps_launches_metrics_and_machine(write_json, tmp_path, capsys):
    document = fixture_results.results(splits=(12,))
    for entry in document["benchmarks"]:
        if entry["run_type"] == "iteration":
            entry["cpu_time"] = 1234.5
            entry["stratagem"]["flops_per_step"] = 1.5e12
            entry["stratagem"]["communication"] = {
                "all_reduce": {"calls": 2, "payload_bytes": 1024, "wire_bytes": 2048}
            }
    folder = tmp_path / "deep" / "history"
    assert history("add", write_json(document), "--dir", folder) == 0
    out = capsys.readouterr().out
    assert "not added: pipeline/resnet50/devices:2/batch:48/image:128/split:48" in out
    assert "out of memory" in out and "added 4 runs of 4 rows" in out
    (run,) = (run for run in load(folder) if run.name.endswith("split:12/schedule:1f1b"))
    assert time_text(run.time) == "2026-01-15T10:20:30Z"
    assert run.commit == "0123456789abcdef"
    assert len(run.launches) == 7
    assert run.median == sorted(run.launches)[3]
    assert run.metrics["communication.all_reduce.wire_bytes"].value == 2048.0
    assert run.metrics["cpu_time"].value == 1234.5
    assert run.metrics["flops_per_step"].deterministic
    assert run.metrics["peak_memory_bytes"].value == 3.4e9
    assert run.metrics["peak_memory_bytes"].better == "lower"
    assert run.hardware.fields["cpu_model"] == "Example EPYC 2-core"
    assert len(run.hardware.digest) == 12
    assert run.software["torch"] == "2.11.0"


@pytest.mark.parametrize("predicted_ms", [9.0, 11.0])
def test_add_keeps_how_far_the_prediction_was_off(predicted_ms, write_json, tmp_path):
    document = fixture_results.results(splits=(12,), failed=False, repetitions=3)
    for entry in document["benchmarks"]:
        if entry["run_type"] == "iteration":
            pipelined = entry["stratagem"]["strategy"] == "pipeline"
            entry["stratagem"]["step_ms"] = [10.0]
            entry["stratagem"]["predicted_ms"] = predicted_ms if pipelined else None
    assert history("add", write_json(summarised(document)), "--dir", tmp_path / "h") == 0
    for run in load(tmp_path / "h"):
        error = run.metrics.get("prediction_error")
        assert (error is not None) == run.name.startswith("pipeline/")
        assert error is None or (error.value, error.better) == (pytest.approx(0.1), "lower")


def test_a_launch_is_the_median_of_its_steps(write_json, tmp_path):
    document = fixture_results.results(splits=(), failed=False, repetitions=1)
    for entry in document["benchmarks"]:
        if entry["run_type"] == "iteration":
            entry["stratagem"]["step_ms"] = [10.0, 90.0, 20.0]
    assert history("add", write_json(document), "--dir", tmp_path / "h") == 0
    assert {tuple(run.launches) for run in load(tmp_path / "h")} == {(20.0,)}


def test_adding_a_run_again_changes_nothing_and_says_so(write_json, tmp_path, capsys):
    source = write_json(fixture_results.results(splits=(12,), failed=False))
    folder = tmp_path / "history"
    assert history("add", source, "--dir", folder) == 0
    before = contents(folder)
    capsys.readouterr()
    assert history("add", source, "--dir", folder) == 0
    assert capsys.readouterr().out.count("already there") == 4
    assert contents(folder) == before
    other = ("--commit", "fedcba", "--date", "2026-02-01")
    assert history("add", source, "--dir", folder, *other) == 0
    assert len(load(folder)) == 8


BAD_RESULTS = {
    "empty": ("", "not valid JSON"),
    "truncated": (json.dumps(fixture_results.results())[:5000], "not valid JSON"),
    "foreign": ('{"name": "something else"}', "context"),
    "future": (
        json.dumps(fixture_results.results()).replace("stratagem/1", "stratagem/9"),
        "found 'stratagem/9'",
    ),
    "not_a_number": ('{"context": NaN}', "not valid JSON"),
    "no_date": (
        json.dumps(fixture_results.results()).replace('"date"', '"day"'),
        "expected a date",
    ),
    "no_commit": (
        json.dumps(fixture_results.results()).replace("0123456789abcdef", "unknown"),
        "--commit",
    ),
}


@pytest.mark.parametrize("case", BAD_RESULTS)
def test_one_bad_file_among_good_ones_adds_nothing(case, write_json, tmp_path, capsys):
    text, words = BAD_RESULTS[case]
    good = write_json(fixture_results.results())
    bad = tmp_path / "bad.json"
    bad.write_text(text, encoding="utf-8")
    assert history("add", good, bad, "--dir", tmp_path / "history") == 2
    assert "bad.json" in refused(capsys, words)
    assert not (tmp_path / "history").exists()


def test_bad_commits_and_dates_are_refused(write_json, tmp_path, capsys):
    good = write_json(fixture_results.results())
    for option, value in (("--commit", "two words"), ("--commit", "a\n"), ("--date", "yesterday")):
        assert history("add", good, "--dir", tmp_path / "h", option, value) == 2
        refused(capsys, option)
    assert history("add", good, good, "--dir", tmp_path / "h") == 2
    refused(capsys, "given twice")
    assert contents(tmp_path) == {"results.json": good.read_bytes()}


def test_an_unwritable_folder_is_refused(write_json, tmp_path, capsys):
    good = write_json(fixture_results.results())
    (tmp_path / "taken").write_text("a file")
    assert history("add", good, "--dir", tmp_path / "taken") == 2
    refused(capsys, "cannot be written")
    assert (tmp_path / "taken").read_text() == "a file"


def test_reading_without_a_history_or_a_match(tmp_path, capsys):
    assert history("show", "--dir", tmp_path / "absent") == 2
    refused(capsys, "no such folder")
    (tmp_path / "empty").mkdir()
    assert history("trend", "--dir", tmp_path / "empty") == 2
    refused(capsys, "holds no runs")
    folder = store(tmp_path / "history", runs(1))
    for kind in (["show"], ["trend"], ["export", "--format", "bencher"]):
        assert history(*kind, "no-such-row", "--dir", folder) == 3
        refused(capsys, "'no-such-row'")


def test_show_compares_with_the_run_before_and_the_recent_median(tmp_path, capsys):
    many = runs(12, step_at=11, factor=2.0)
    folder = store(tmp_path / "history", many)
    assert history("show", "split:12", "--last", 2, "--dir", folder) == 0
    header, row, *last = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["row", "hardware", "runs", "first"]
    cells = row.split()
    assert cells[0] == ROW and cells[2:5] == ["12", "2026-01-01", "2026-01-12"]
    before = [run.median for run in many[1:11]]
    assert cells[6] == f"{100 * (many[11].median / many[10].median - 1):+.1f}%"
    assert cells[7] == f"{100 * (many[11].median / (sum(sorted(before)[4:6]) / 2) - 1):+.1f}%"
    assert [line.split()[2] for line in last] == [f"{commit(10)},", f"{commit(11)},"]


def test_usage_errors_are_one_line(capsys):
    for text in ("", "add", "show --last -1", "trend --max-p 2", "import f"):
        with pytest.raises(SystemExit) as caught:
            history(*text.split())
        assert caught.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


def conditions(before, after):
    return {"canary_before_ms": before, "canary_after_ms": after, "other_processes_cores": None}


def test_add_takes_the_canary_of_the_slowest_device_and_the_step_in_canaries(write_json, tmp_path):
    document = fixture_results.results(splits=(), failed=False, repetitions=2)
    for entry in document["benchmarks"]:
        if entry["run_type"] == "iteration":
            entry["stratagem"]["step_ms"] = [100.0]
            entry["stratagem"]["conditions"] = conditions([20.0, 18.0], [19.0, 30.0])
    assert history("add", write_json(document), "--dir", tmp_path / "h") == 0
    for run in load(tmp_path / "h"):
        assert run.metrics["canary_ms"].value == 25.0
        assert run.metrics["step_in_canaries"].value == 4.0
        assert run.metrics["step_in_canaries"].better == "lower"


def test_add_leaves_disturbed_launches_out_and_keeps_the_mark_where_all_were(write_json, tmp_path):
    for name, disturbed in (("some", 1), ("all", 3)):
        document = fixture_results.results(splits=(), failed=False, repetitions=3)
        for entry in document["benchmarks"]:
            if entry["run_type"] == "iteration":
                index = entry["repetition_index"]
                entry["stratagem"]["step_ms"] = [100.0 + index]
                entry["stratagem"]["marks"] = ["disturbed"] if index < disturbed else []
        assert history("add", write_json(document), "--dir", tmp_path / name) == 0
    assert {tuple(run.launches) for run in load(tmp_path / "some")} == {(101.0, 102.0)}
    assert not any(run.marks for run in load(tmp_path / "some"))
    assert {tuple(run.launches) for run in load(tmp_path / "all")} == {(100.0, 101.0, 102.0)}
    assert all(run.marks == ["disturbed"] for run in load(tmp_path / "all"))
