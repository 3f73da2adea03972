"""Exchange with other tools: round trips, foreign files, and what is refused."""

import json
from dataclasses import replace

import pytest
from stratagem_reports.history.points import UNKNOWN_HARDWARE
from stratagem_reports.history.store import load

import fixture_results
from fixture_history import ROW, START, commit, history, runs, store

SINGLE = "single/resnet50/devices:1"


def exchanged(tmp_path, kind, file, *arguments):
    """What is in a history that a file was imported into."""
    folder = tmp_path / "imported"
    assert history("import", file, "--format", kind, "--dir", folder, *arguments) == 0
    return load(folder)


def round_trip(tmp_path, kind, groups, file="file", read=(), written=()):
    folder = store(tmp_path / "exported", *groups)
    target = tmp_path / file
    arguments = ["--format", kind, "--dir", folder, "--out", target]
    assert history("export", *written, *arguments) == 0
    return exchanged(tmp_path, kind, target, *read)


def test_google_benchmark_keeps_a_run_whole(tmp_path, capsys):
    both = [runs(3), runs(3, SINGLE, seed=8)]
    got = round_trip(tmp_path, "google-benchmark", both)
    assert got == [both[0][-1], both[1][-1]]
    assert capsys.readouterr().err == ""


def test_google_benchmark_says_which_rows_it_cannot_hold(tmp_path, capsys):
    groups = [runs(3), runs(2, SINGLE)]
    assert round_trip(tmp_path, "google-benchmark", groups) == [groups[0][-1]]
    assert "left out 1 row without" in capsys.readouterr().err
    assert history("export", "--format", "bencher", "--dir", tmp_path / "exported",
                   "--commit", commit(1)) == 0  # fmt: skip
    assert set(json.loads(capsys.readouterr().out)) == {ROW, SINGLE}
    assert history("export", "--format", "bencher", "--dir", tmp_path / "exported",
                   "--commit", "fff") == 2  # fmt: skip
    assert "no run of this commit" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["data.js", "benchmark.json"])
def test_github_action_benchmark_keeps_all_runs_and_launches(tmp_path, file):
    both = [runs(3), runs(2, SINGLE, seed=8)]
    got = round_trip(tmp_path, "github-action-benchmark", both, file)
    assert len(got) == 5
    for run, original in zip(got, both[0] + both[1], strict=True):
        assert replace(run, hardware=original.hardware) == replace(
            original, metrics={}, software={}
        )
        assert run.hardware.digest == original.hardware.digest
    text = (tmp_path / file).read_text()
    assert text.startswith("window.BENCHMARK_DATA = {") is (file == "data.js")


def test_bencher_keeps_medians_extremes_and_metrics(tmp_path):
    original = runs(2)[-1]
    (run,) = round_trip(
        tmp_path, "bencher", [runs(2)], read=("--commit", "abc", "--date", "2026-03-01T00:00:00Z")
    )
    assert (run.name, run.commit) == (ROW, "abc")
    assert run.median == pytest.approx(original.median)
    assert run.launches == [run.median]
    assert run.interval == pytest.approx((min(original.launches), max(original.launches)))
    assert run.metrics == original.metrics
    assert run.hardware.digest == UNKNOWN_HARDWARE


def test_otava_csv_keeps_medians_metrics_and_the_machine(tmp_path):
    originals = runs(3)
    originals[1].metrics.pop("mfu")
    got = round_trip(
        tmp_path, "otava-csv", [originals, runs(2, SINGLE)],
        read=("--name", ROW), written=("split:12",),
    )  # fmt: skip
    assert len(got) == 3
    for run, original in zip(got, originals, strict=True):
        assert (run.time, run.commit, run.name) == (original.time, original.commit, ROW)
        assert run.median == original.median
        assert run.metrics == original.metrics
        assert run.hardware.digest == original.hardware.digest


def test_otava_csv_holds_one_row(tmp_path, capsys):
    folder = store(tmp_path / "h", runs(1), runs(1, SINGLE))
    assert history("export", "--format", "otava-csv", "--dir", folder) == 2
    assert "holds one row, and 2 match" in capsys.readouterr().err


def test_importing_again_changes_nothing(tmp_path, capsys):
    got = round_trip(tmp_path, "github-action-benchmark", [runs(3)])
    assert exchanged(tmp_path, "github-action-benchmark", tmp_path / "file") == got
    assert capsys.readouterr().out.count("already there") == 3


def google(*entries, **context) -> str:
    context = {"date": "2026-01-02T03:04:05+02:00", "host_name": "there", "num_cpus": 8} | context
    return json.dumps({"context": context, "benchmarks": list(entries)})


def entry(name="BM_Copy/8", time=2.5, unit="us", **more) -> dict:
    return {"name": name, "run_name": name, "run_type": "iteration", "iterations": 100,
            "real_time": time, "cpu_time": time, "time_unit": unit} | more  # fmt: skip


def test_a_foreign_google_benchmark_file(tmp_path, capsys):
    file = tmp_path / "file.json"
    file.write_text(
        google(
            entry(repetition_index=0, bytes_per_second=1e9),
            entry(repetition_index=1, time=3.5, bytes_per_second=3e9),
            entry(run_type="aggregate", aggregate_name="mean"),
            entry("BM_Only/1", 7.0, "s", run_type="aggregate", aggregate_name="median"),
            entry("BM_Failed/1", 0.0, error_occurred=True, error_message="no GPU"),
        )
    )
    arguments = ["import", file, "--format", "google-benchmark", "--dir", tmp_path / "h"]
    assert history(*arguments, "--commit", "abc") == 0
    assert "not imported: BM_Failed/1: no GPU" in capsys.readouterr().err
    copy, only = sorted(load(tmp_path / "h"), key=lambda run: run.name)
    assert copy.launches == [0.0025, 0.0035] and copy.median == 0.003
    assert copy.metrics["bytes_per_second"].value == 2e9
    assert f"{copy.time:%H:%M}" == "01:04"
    assert only.median == 7000.0


def github(*benches, **fields) -> str:
    commits = [{"commit": {"id": "abc"}, "date": 1573312140323, "tool": "cargo",
                "benches": list(benches)} | fields]  # fmt: skip
    return json.dumps({"lastUpdate": 1, "repoUrl": "", "entries": {"Rust": commits}})


def bench(name="fib", value=254, unit="ns/iter") -> dict:
    return {"name": name, "value": value, "unit": unit, "range": "+/- 35"}


def test_a_foreign_data_js(tmp_path):
    file = tmp_path / "data.js"
    file.write_text(f"window.BENCHMARK_DATA = {github(bench(), bench('sort', 2, 's'))};\n")
    fib, sort = exchanged(tmp_path, "github-action-benchmark", file)
    assert (fib.name, fib.median, fib.launches) == ("Rust/fib", 254e-6, [254e-6])
    assert sort.median == 2000.0
    assert f"{fib.time:%Y-%m-%d %H:%M}" == "2019-11-09 15:09"


def test_a_foreign_otava_csv_and_bencher_file(tmp_path):
    file = tmp_path / "sample.csv"
    file.write_text(
        "time,commit,throughput,elapsed,host\n"
        "2024.01.01 3:00:00 +0100,aaa0,154023,10.43,a\n1704164400,aaa1,138455,10.23,b\n"
    )
    first, second = exchanged(
        tmp_path, "otava-csv", file, "--metric", "elapsed", "--unit", "s"
    )
    assert (first.name, first.median) == ("sample", 10430.0)
    assert f"{first.time:%H}" == "02" and second.time > first.time
    assert second.metrics["throughput"].value == 138455.0 and "host" not in second.metrics
    file = tmp_path / "bmf.json"
    file.write_text('{"build": {"build-time-s": {"value": 87.0}, "size": {"value": 4}}}')
    (build,) = [
        run
        for run in exchanged(tmp_path, "bencher", file, "--commit", "a", "--date", "2026-01-01")
        if run.name == "build"
    ]
    assert build.median == 87000.0 and build.metrics["size"].value == 4.0


HEADER = "time,commit,step_ms"
WHEN = ("--commit", "abc", "--date", "2026-01-01")
BAD = {
    "google_truncated": ("google-benchmark", google(entry())[:80], "not valid JSON"),
    "google_foreign": ("google-benchmark", '{"a": 1}', "Google Benchmark's"),
    "google_own": ("google-benchmark", json.dumps(fixture_results.results()), "history add"),
    "google_no_rows": ("google-benchmark", google(), "no benchmark"),
    "google_unit": ("google-benchmark", google(entry(unit="fortnight")), "found 'fortnight'"),
    "google_mixed": (
        "google-benchmark",
        google(entry(repetition_index=0), entry(repetition_index=1, unit="ms")),
        "is in 'us' and in 'ms'",
    ),
    "google_twice": ("google-benchmark", google(entry(), entry()), "is there twice"),
    "google_zero": ("google-benchmark", google(entry(time=0.0)), "positive time"),
    "google_unit_kind": ("google-benchmark", google(entry(unit=[])), "found []"),
    "google_huge": ("google-benchmark", google(entry(time=10**400)), "finite number"),
    "google_huge_counter": ("google-benchmark", google(entry(loss=10**400)), "finite number"),
    "google_seconds": ("google-benchmark", google(entry(time=1e308, unit="s")), "found inf"),
    "google_index_list": (
        "google-benchmark",
        google(entry(repetition_index=[])),
        "benchmarks[0].repetition_index: expected a whole number or null, found []",
    ),
    "google_index_word": ("google-benchmark", google(entry(repetition_index="x")), "found 'x'"),
    "google_name": ("google-benchmark", google(entry(name=["x"])), "expected a string"),
    "google_nan": ("google-benchmark", google(entry(time=float("nan"))), "NaN is not JSON"),
    "google_date": ("google-benchmark", google(entry(), date="soon"), "expected a date"),
    "github_foreign": ("github-action-benchmark", '{"a": 1}', "entries"),
    "github_unit": ("github-action-benchmark", github(bench(unit="iter/sec")), "'iter/sec'"),
    "github_twice": ("github-action-benchmark", github(bench(), bench()), "twice in one entry"),
    "github_commit": ("github-action-benchmark", github(bench(), commit={"id": ""}), "commit"),
    "github_date": ("github-action-benchmark", github(bench(), date="x"), "finite number"),
    "github_unit_kind": ("github-action-benchmark", github(bench(unit=[])), "found []"),
    "github_huge": ("github-action-benchmark", github(bench(value=10**400)), "finite number"),
    "github_huge_date": ("github-action-benchmark", github(bench(), date=10**400), "finite number"),
    "github_value": ("github-action-benchmark", github(bench(value="1")), "finite number"),
    "bencher_list": ("bencher", "[]", "expected a JSON object"),
    "bencher_empty": ("bencher", "{}", "no benchmark"),
    "bencher_twice": ("bencher", '{"a": {}, "a": {}}', "'a' is given twice"),
    "bencher_no_value": ("bencher", '{"a": {"latency": {"lower_value": 1}}}', "`value`"),
    "bencher_no_time": ("bencher", '{"a": {"size": {"value": 1}}}', "found size"),
    "bencher_nan": ("bencher", '{"a": {"latency": {"value": NaN}}}', "NaN"),
    "bencher_huge": ("bencher", f'{{"a": {{"latency": {{"value": {10**400}}}}}}}', "finite number"),
    "csv_no_commit": ("otava-csv", "time,step_ms\n2026-01-01,1", "no column 'commit'"),
    "csv_no_time": ("otava-csv", "commit,step_ms\nabc,1", "no column 'time'"),
    "csv_no_unit": ("otava-csv", "time,commit,steps\n2026-01-01,abc,1", "found 0 of"),
    "csv_two_units": ("otava-csv", "time,commit,a_ms,b_us\n2026-01-01,abc,1,2", "found 2 of"),
    "csv_twice": ("otava-csv", "time,commit,step_ms,step_ms\n", "two columns"),
    "csv_cells": ("otava-csv", f"{HEADER}\n2026-01-01,abc", "line 2: 2 cells; expected 3"),
    "csv_nan": ("otava-csv", f"{HEADER}\n2026-01-01,abc,nan", "finite number"),
    "csv_word": ("otava-csv", f"{HEADER}\n2026-01-01,abc,fast", "found 'fast'"),
    "csv_date": ("otava-csv", f"{HEADER}\nsoon,abc,1", "line 2: time: expected a date"),
    "csv_none": ("otava-csv", f"{HEADER}\n", "no line below the header"),
    "empty": ("otava-csv", "", "empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_one_line_and_nothing_is_added(case, tmp_path, capsys):
    kind, text, words = BAD[case]
    file = tmp_path / "file"
    file.write_text(text, encoding="utf-8")
    given = WHEN if kind in ("google-benchmark", "bencher") and "date" not in case else ()
    given = ("--commit", "abc") if case == "google_date" else given
    arguments = ["import", file, "--format", kind, "--dir", tmp_path / "h", *given]
    assert history(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and words in captured.err, captured.err
    assert not (tmp_path / "h").exists()


def test_what_a_format_lacks_must_be_given(tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text('{"a": {"latency": {"value": 1}}}')
    assert history("import", file, "--format", "bencher", "--dir", tmp_path / "h") == 2
    assert "give --commit, --date" in capsys.readouterr().err
    file.write_text(google(entry()))
    assert history("import", file, "--format", "google-benchmark", "--dir", tmp_path / "h") == 2
    assert "give one with --commit" in capsys.readouterr().err
    assert history("import", tmp_path / "no", "--format", "bencher", "--dir", tmp_path / "h") == 2
    assert "cannot be read" in capsys.readouterr().err


def test_an_imported_interval_stays(tmp_path):
    run = replace(runs(1)[0], launches=[100.0], median=100.0, interval=(99.0, 102.0))
    (got,) = round_trip(
        tmp_path, "bencher", [[run]], read=("--commit", "abc", "--date", START.isoformat())
    )
    assert got.interval == pytest.approx((99.0, 102.0))
