"""bench_collectives: a Google Benchmark program whose rows are collectives at message sizes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SMALL = ["--min-bytes", "1K", "--max-bytes", "64K", "--step-factor", 64, "--repetitions", 1]
SCATTERS = ("reduce_scatter", "reduce_scatter_library")
HALVES = (*SCATTERS, "all_gather", "gather", "scatter", "all_to_all")
NAMES = ("all_reduce", "broadcast", "reduce", "rotate", "send", *HALVES)


def collectives(commands, *arguments, **variables):
    return commands("bench_collectives", *arguments, **variables)


def test_every_collective_has_bandwidths_and_a_link_model(commands, out):
    done = collectives(commands, *SMALL, "--out", out)
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        assert name in done.stdout
    results = commands.results(out)
    runs = [entry for entry in results["benchmarks"] if entry["run_type"] == "iteration"]
    assert len(runs) == len(NAMES) * 2
    for run in runs:
        bytes_a_second = run["bytes"] / (run["algorithm_gb_per_s"] * 1e9)
        assert min(run["stratagem"]["step_ms"]) <= 1e3 * bytes_a_second * (1 + 1e-9)
        assert 1e3 * bytes_a_second <= max(run["stratagem"]["step_ms"]) * (1 + 1e-9)
        factor = 0.5 if run["stratagem"]["strategy"] in HALVES else 1.0
        assert run["bus_gb_per_s"] == pytest.approx(factor * run["algorithm_gb_per_s"])
    sent = {
        name: {run["wire_bytes"] / run["bytes"] for run in runs if run["stratagem"]["strategy"] == name}
        for name in (*SCATTERS, "all_to_all", "rotate", "send")
    }
    # Gloo's own sums the whole everywhere: a ring's two passes.
    halves = {"reduce_scatter": {0.5}, "all_to_all": {0.5}}
    assert sent == {**halves, "reduce_scatter_library": {1.0}, "send": {1.0}, "rotate": {1.0}}
    calibration = results["context"]["stratagem"]["calibration"]
    for name in NAMES:
        assert calibration[f"{name}_latency_ms"] >= 0
        assert calibration.get(f"{name}_gb_per_s", 1) > 0


def test_the_report_draws_the_bandwidth(commands, out):
    options = ["--collectives", "all_reduce,send", *SMALL]
    assert collectives(commands, *options, "--out", out).returncode == 0

    def report(*options):
        return subprocess.run(
            [sys.executable, "-m", "stratagem_reports", "report", out, *options],
            env={**commands.environment, "PYTHONPATH": str(ROOT / "reports")},
            capture_output=True,
            text=True,
            check=False,
        )

    refused = report("--format", "markdown")
    assert refused.returncode == 2 and "--format markdown" in refused.stderr
    assert not (out.parent / "bandwidth.png").exists()
    done = report()
    assert done.returncode == 0, done.stderr
    assert (out.parent / "bandwidth.png").stat().st_size > 10_000
    assert (out.parent / "bandwidth.svg").exists()
    assert "Bandwidth of collectives" in (out.parent / "report.html").read_text(encoding="utf-8")


def test_filter_and_list(commands):
    listed = collectives(commands, *SMALL, "--benchmark_list_tests").stdout.split()
    assert listed[0] == "all_reduce/gloo/ranks:2/bytes:1024"
    assert len(listed) == len(NAMES) * 2
    kept = collectives(
        commands, *SMALL, "--benchmark_list_tests", "--benchmark_filter=send.*bytes:65536"
    )
    assert kept.stdout.split() == ["send/gloo/ranks:2/bytes:65536"]
    assert collectives(commands, *SMALL, "--benchmark_filter=nothing").returncode == 3


def test_devices_that_are_shared_are_in_the_name(commands):
    def names(*options):
        listing = ["--collectives", "send", "--max-bytes", "1K", "--benchmark_list_tests"]
        return collectives(commands, *listing, *options).stdout.split()

    usual = ["send/gloo/ranks:2/bytes:1024"]
    assert names("--device-ids", "0+1") == usual == names()
    assert names("--device-ids", "0+0") == ["send/gloo/ranks:2/device_ids:0+0/bytes:1024"]


def test_google_benchmarks_json_and_csv(commands, tmp_path):
    small = ["--collectives", "broadcast", "--max-bytes", "1K", "--repetitions", 1]
    done = collectives(commands, *small, "--benchmark_format=csv")
    assert done.returncode == 0, done.stderr
    assert "broadcast/gloo/ranks:2/bytes:1024" in done.stdout
    assert "bus_gb_per_s" in done.stdout


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--collectives", "gossip"], "gossip"),
        (["--min-bytes", "1X"], "--min-bytes"),
        (["--min-bytes", "2K", "--max-bytes", "1K"], "--max-bytes"),
        (["--ranks", 1], "--ranks"),
        (["--ranks", 64], "--oversubscribe"),
        (["--backend", "mpi"], "--backend"),
        (["--device-ids", "0+0+0", "--ranks", 2], "--device-ids: 3 ids for 2 ranks; give each"),
        (["--device-ids", "0"], "--device-ids: 1 id for 2 ranks; give each rank one"),
        (["--device", "cuda", "--backend", "gloo", "--ranks", 1024], "--device cuda: "),
    ],
)
def test_bad_input_is_one_line(commands, options, word):
    done = collectives(commands, *options)
    assert done.returncode == 2, done.stderr
    assert word in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
