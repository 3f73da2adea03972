"""The history written for other tools: what each format holds, and what is refused."""

import csv
import json

import pytest

from fixture_history import ROW, commit, history, refused, runs, store

SINGLE = "single/resnet50/devices:1"


@pytest.fixture
def exported(tmp_path):
    """The text of a history of these runs as another tool's file."""

    def export(kind, groups, *arguments, file="file"):
        folder = store(tmp_path / "history", *groups)
        target = tmp_path / file
        words = ["--format", kind, "--dir", folder, "--out", target]
        assert history("export", *arguments, *words) == 0
        return target.read_text(encoding="utf-8")

    return export


def test_google_benchmark_holds_the_newest_run_of_each_row(exported, capsys):
    both = [runs(3), runs(3, SINGLE, seed=8)]
    document = json.loads(exported("google-benchmark", both))
    newest = both[0][-1]
    assert document["context"]["git_commit"] == newest.commit
    assert document["context"]["date"] == "2026-01-03T12:00:00+00:00"
    assert document["context"]["hardware"]["digest"] == newest.hardware.digest
    entries = [entry for entry in document["benchmarks"] if entry["run_name"] == ROW]
    assert [entry["real_time"] for entry in entries] == newest.launches
    assert [entry["repetition_index"] for entry in entries] == list(range(5))
    assert {entry["time_unit"] for entry in entries} == {"ms"}
    assert entries[0]["mfu"] == newest.metrics["mfu"].value
    assert {entry["cpu_time"] for entry in entries} == {newest.metrics["cpu_time"].value}
    assert document["context"]["caches"] == []
    assert {entry["run_name"] for entry in document["benchmarks"]} == {ROW, SINGLE}
    assert capsys.readouterr().err == ""


def test_a_history_without_processor_time_gives_no_other_in_its_place(exported, capsys):
    old = runs(1)
    old[0].metrics.pop("cpu_time")
    document = json.loads(exported("google-benchmark", [old]))
    assert {entry["cpu_time"] for entry in document["benchmarks"]} == {0.0}
    assert "cpu_time is 0 in 1 row whose history does not have it" in capsys.readouterr().err


def test_a_format_of_one_run_says_which_rows_it_cannot_hold(exported, tmp_path, capsys):
    document = json.loads(exported("google-benchmark", [runs(3), runs(2, SINGLE)]))
    assert {entry["run_name"] for entry in document["benchmarks"]} == {ROW}
    assert "left out 1 row without" in capsys.readouterr().err
    words = ["export", "--format", "bencher", "--dir", tmp_path / "history", "--commit"]
    assert history(*words, commit(1)) == 0
    assert set(json.loads(capsys.readouterr().out)) == {ROW, SINGLE}
    assert history(*words, "fff") == 2
    refused(capsys, "no run of this commit")


@pytest.mark.parametrize("file", ["data.js", "benchmark.json"])
def test_github_action_benchmark_holds_all_runs_and_launches(exported, file):
    both = [runs(3), runs(2, SINGLE, seed=8)]
    text = exported("github-action-benchmark", both, file=file)
    start = "window.BENCHMARK_DATA = "
    assert text.startswith(start) is (file == "data.js")
    entries = json.loads(text.removeprefix(start))["entries"]["Stratagem"]
    assert [entry["commit"]["id"] for entry in entries] == [commit(index) for index in range(3)]
    assert [len(entry["benches"]) for entry in entries] == [2, 2, 1]
    (bench,) = entries[2]["benches"]
    newest = both[0][2]
    assert (bench["name"], bench["value"], bench["unit"]) == (ROW, newest.median, "ms")
    assert repr(newest.launches[0]) in bench["extra"] and newest.hardware.digest in bench["extra"]
    assert entries[2]["date"] == newest.time.timestamp() * 1e3


def test_bencher_holds_the_median_its_extremes_and_metrics(exported):
    original = runs(2)[-1]
    measures = json.loads(exported("bencher", [runs(2)]))[ROW]
    assert measures["latency"] == {
        "value": original.median * 1e6,
        "lower_value": min(original.launches) * 1e6,
        "upper_value": max(original.launches) * 1e6,
    }
    assert measures["mfu"] == {"value": original.metrics["mfu"].value}


def test_otava_csv_holds_all_runs_of_one_row(exported):
    originals = runs(3)
    originals[1].metrics.pop("mfu")
    lines = exported("otava-csv", [originals, runs(2, SINGLE)], "split:12").splitlines()
    rows = list(csv.DictReader(lines))
    assert [row["commit"] for row in rows] == [run.commit for run in originals]
    assert [float(row["step_ms"]) for row in rows] == [run.median for run in originals]
    assert {row["hardware"] for row in rows} == {originals[0].hardware.digest}
    assert rows[1]["mfu"] == "" and float(rows[2]["mfu"]) == originals[2].metrics["mfu"].value


def test_otava_csv_holds_one_row(tmp_path, capsys):
    folder = store(tmp_path / "h", runs(1), runs(1, SINGLE))
    assert history("export", "--format", "otava-csv", "--dir", folder) == 2
    refused(capsys, "holds one row, and 2 match")
