"""The benchmark executables are Google Benchmark programs, flags and files included."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

# Small enough for a second: two linear layers.
TOY = ["--model", "toy", "--global-batch-size", "20"]
SMALL = [*TOY, "--split-size", "5", "--no-verify", "--no-predict", "--benchmark_repetitions=2"]
SMALL += ["--no-repeat-disturbed"]
PIPELINE = "pipeline/toy/devices:2/batch:20/split:5/schedule:1f1b"
PROGRAMS = Path(__file__).resolve().parents[2] / "bench" / "programs"
COMPARE = Path("/usr/share/benchmark/compare.py")


def run(benchmarks, *arguments, **variables):
    return benchmarks("bench_strategies", *arguments, **variables)


def test_list_and_filter_do_not_measure(benchmarks):
    everything = run(benchmarks, "--benchmark_list_tests").stdout.split()
    assert "model_parallel/resnet50/devices:2/batch:16/image:64" in everything
    kept = run(benchmarks, "--benchmark_list_tests=true", "--benchmark_filter=^pipe.*gpt")
    assert kept.stdout.split() == [n for n in everything if n.startswith("pipeline/gpt-small")]
    others = run(benchmarks, "--benchmark_list_tests", "--benchmark_filter=-single")
    assert others.stdout.split() == [n for n in everything if "single" not in n]


def listed(benchmarks, what):
    """Each name of this build, with its summary."""
    entries = json.loads(benchmarks("stratagem", "list", what, "--json").stdout)[what]
    return {entry["name"]: entry["summary"] for entry in entries}


@pytest.mark.parametrize(("devices", "too_few"), [(2, {"ddp_model_parallel"}), (4, set())])
def test_every_registered_strategy_that_fits_is_measured(benchmarks, devices, too_few):
    strategies = set(listed(benchmarks, "strategies"))
    names = run(benchmarks, "--benchmark_list_tests", "--devices", devices).stdout.split()
    found = {
        model: {name.split("/")[0] for name in names if f"/{model}/" in name}
        for model in ("resnet50", "gpt-small")
    }
    assert found["gpt-small"] == strategies - too_few
    of_tokens = {"tensor_parallel", "sequence_parallel", "context_parallel"}
    assert found["resnet50"] == found["gpt-small"] - of_tokens


def test_every_program_shows_the_summary_that_list_gives(benchmarks):
    summaries = listed(benchmarks, "benchmarks")
    assert {"bench_strategies", "bench_collectives"} <= set(summaries)
    for name, summary in summaries.items():
        assert (PROGRAMS / f"{name}.cpp").read_text().startswith(f"// {summary}.\n")
    for name in ("bench_strategies", "bench_collectives"):
        assert benchmarks(name, "--help").stdout.startswith(summaries[name] + "\n")


def test_the_split_size_benchmark_has_the_presets_rows(benchmarks):
    names = benchmarks("bench_split_size", "--benchmark_list_tests").stdout.split()
    assert sum(name.startswith("pipeline/resnet50/") for name in names) >= 8
    assert any(name.startswith("model_parallel/resnet50/") for name in names)


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--benchmark_filter=nothing_like_this"], 3, "nothing_like_this"),
        (["--benchmark_filter=("], 2, "regular expression"),
        (["--benchmark_min_time=1"], 2, "--benchmark_min_time"),
        (["--benchmark_min_warmup_time=1"], 2, "--benchmark_min_warmup_time"),
        (["--benchmark_perf_counters=CYCLES"], 2, "--benchmark_perf_counters"),
        (["--benchmark_fliter=x"], 2, "--benchmark_filter"),
        (["--benchmark_format=xml"], 2, "xml"),
        (["--benchmark_repetitions=none"], 2, "none"),
        (["--split-sise=5"], 2, "--split-size"),
        (["--benchmark_out=/nonexistent/file.json"], 2, "/nonexistent/file.json"),
    ],
)
def test_wrong_flags(benchmarks, arguments, code, word):
    done = run(benchmarks, *arguments)
    assert done.returncode == code
    assert done.stderr.count("\n") == 1 and word in done.stderr
    assert done.stdout == ""


# Programs whose rows the library measures itself.
OF_THE_LIBRARY = [
    "bench_attention", "bench_batch_norm", "bench_convolution", "bench_harness_cost",
    "bench_linear", "bench_loader",
]  # fmt: skip


@pytest.mark.parametrize("program", OF_THE_LIBRARY)
def test_wrong_flags_of_a_program_of_the_library(benchmarks, program):
    for arguments, code, word in (
        (["--benchmark_filter=nothing_like_this"], 3, "nothing_like_this"),
        (["--benchmark_filter=("], 2, f"{program}: --benchmark_filter: "),
        (["--benchmark_fliter=x"], 2, f"{program}: unknown option --benchmark_fliter: did you mean"),
        (["--benchmark_format=xml"], 2, f"{program}: --benchmark_format: "),
        (["--benchmark_min_time=long"], 2, "--benchmark_min_time"),
        (["--benchmark_out=/nonexistent/file.json"], 2, "/nonexistent/file.json"),
        (["--nonsense"], 2, f"{program}: unknown option --nonsense; --help lists the options"),
        (["word"], 2, f"{program}: unknown option word"),
    ):
        done = benchmarks(program, *arguments)
        assert (done.returncode, done.stdout) == (code, ""), arguments
        # The library counts the arguments of the rows.
        lines = [line for line in done.stderr.splitlines() if "inputs is very large" not in line]
        assert len(lines) == 1 and word in lines[0]
    listed = benchmarks(program, "--benchmark_list_tests")
    assert listed.returncode == 0 and listed.stdout


@pytest.fixture(scope="module")
def pipeline_run(module_benchmarks, module_folder):
    """What the program printed of one row, and the file it wrote."""
    out = module_folder / "pipeline.json"
    done = run(module_benchmarks, *SMALL, "--benchmark_filter=pipeline", f"--benchmark_out={out}")
    assert done.returncode == 0, done.stderr
    return done, out


@pytest.mark.xdist_group("benchmarks")
def test_console_shows_rows_under_their_own_names(pipeline_run):
    done, out = pipeline_run
    lines = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("pipeline")]
    assert lines == [PIPELINE] * 2 + [
        f"{PIPELINE}_{aggregate}" for aggregate in ("mean", "median", "stddev", "cv")
    ]
    results = json.loads(out.read_text())
    times = [r["real_time"] for r in results["benchmarks"] if r["run_type"] == "iteration"]
    shown = [
        float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith(PIPELINE)
    ]
    assert shown[:2] == pytest.approx(times, rel=1e-2, abs=1e-3)
    assert results["context"]["stratagem"]["schema"] == "stratagem/1"


def test_json_holds_the_record_and_the_custom_context(benchmarks):
    done = run(
        benchmarks, *SMALL, "--benchmark_filter=pipeline", "--benchmark_format=json",
        "--benchmark_context=purpose=test",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["context"]["purpose"] == "test"
    assert results["benchmarks"][0]["name"] == PIPELINE
    assert results["benchmarks"][0]["stratagem"]["timeline"]


def test_every_row_has_as_many_launches_as_the_table_needs(benchmarks, out):
    rows = "-(all|cores|ddp|zero|parallel)"  # single and pipeline, of two grids
    done = run(
        benchmarks, *TOY, "--split-size", 5, "--steps", 1, "--no-verify", "--no-predict",
        "--no-repeat-disturbed", f"--benchmark_filter={rows}", f"--benchmark_out={out}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    launches = [
        run["name"] for run in benchmarks.results(out)["benchmarks"]
        if run["run_type"] == "iteration"
    ]  # fmt: skip
    counts = {name: launches.count(name) for name in launches}
    assert len(counts) == 2 and set(counts.values()) == {4}, counts


def test_aggregates_only(benchmarks, tmp_path):
    out = tmp_path / "results.json"
    done = run(
        benchmarks, *SMALL, "--benchmark_filter=pipeline", "--benchmark_format=csv",
        "--benchmark_report_aggregates_only=true", f"--benchmark_out={out}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = [row["name"] for row in csv.DictReader(io.StringIO(done.stdout))]
    assert names and all(name != PIPELINE for name in names)
    assert {r["run_type"] for r in json.loads(out.read_text())["benchmarks"]} == {"aggregate"}


def test_csv_file(benchmarks, tmp_path):
    out = tmp_path / "results.csv"
    done = run(
        benchmarks, *SMALL, "--benchmark_filter=pipeline", f"--benchmark_out={out}",
        "--benchmark_out_format=csv",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["name"] for row in rows][:2] == [PIPELINE] * 2


def test_a_failed_row_is_shown_as_one(benchmarks):
    done = run(
        benchmarks, *SMALL, "--benchmark_filter=pipeline|model_parallel",
        STRATAGEM_TEST_FAULT="throw@1B0@pipeline",
    )  # fmt: skip
    assert done.returncode == 4
    assert "ERROR OCCURRED" in done.stdout and "an injected fault" in done.stdout
    assert "model_parallel/toy/devices:2/batch:20_mean" in done.stdout


def test_the_environment_is_read_as_the_library_does(benchmarks):
    done = run(benchmarks, "--benchmark_list_tests", BENCHMARK_FILTER="gpt")
    assert done.stdout.split() and all("/gpt-small/" in name for name in done.stdout.split())


@pytest.mark.xdist_group("benchmarks")
def test_google_benchmarks_compare_reads_two_results(pipeline_run):
    if not COMPARE.exists():
        pytest.skip("libbenchmark-tools is not installed")
    pytest.importorskip("scipy", reason="compare.py needs scipy")
    _, out = pipeline_run
    done = subprocess.run(
        [sys.executable, COMPARE, "--no-color", "benchmarks", out, out],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert PIPELINE in done.stdout


@pytest.mark.parametrize(
    ("arguments", "schedules"),
    [
        (
            ["--cut", "blocks.1", "--benchmark_filter=-(interleaved|zb_v)"],
            "naive gpipe 1f1b zb_h1 zb_h2",
        ),
        (
            ["--cut", "blocks.0+blocks.1+norm", "--benchmark_filter=interleaved|zb_v"],
            "interleaved_1f1b zb_v",
        ),
    ],
)
def test_schedules_are_measured_beside_prediction_and_closed_form(
    benchmarks, out, arguments, schedules
):
    done = benchmarks(
        "bench_schedules", "--model", "gpt-tiny", "--global-batch-size", 4, "--steps", 1,
        "--no-verify", "--benchmark_repetitions=1", f"--benchmark_out={out}", *arguments,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = benchmarks.iterations(benchmarks.results(out), "pipeline")
    found = {row["stratagem"]["config"]["schedule"]: row["stratagem"] for row in rows}
    assert set(found) == set(schedules.split())
    for name, row in found.items():
        assert row["step_ms"][0] > 0 and row["predicted_ms"] > 0, name
        ideal = row["devices"][0]["bubble"]["ideal"]
        assert (ideal == 0) == (name in ("zb_h2", "zb_v")) and 0 <= ideal < 1, name
