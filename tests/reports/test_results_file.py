"""A results file as the C++ writer leaves it: the approved one, which a C++ test compares with.

Google Benchmark's own compare.py must read it, and so must our loader.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from reference_summaries import summarised
from stratagem_reports.results import load

APPROVED = Path(__file__).parents[1] / "approved" / "results.json"
COMPARE = Path("/usr/share/benchmark/compare.py")


def test_the_loader_reads_what_the_writer_wrote():
    results = load.load_results(APPROVED)
    single, pipeline, failed = results.rows
    assert single.strategy == "single"
    assert single.split_size is None
    assert len(pipeline.repetitions) == 6
    assert pipeline.repetitions[0].step_ms == [1584.5, 1585.5]
    assert pipeline.repetitions[0].devices[1].bubble.measured == 0.26
    assert "device 1 overran the limit of 120 s" in failed.error


def test_one_entry_needs_no_index_and_unnamed_aggregates_are_passed_over(write_json):
    document = json.loads(APPROVED.read_text(encoding="utf-8"))
    entry = document["benchmarks"][0]
    del entry["repetition_index"]
    document["benchmarks"] = [entry, {"name": "other_mean", "run_type": "aggregate"}]
    (row,) = load.load_results(write_json(document)).rows
    assert len(row.repetitions) == 1


@pytest.mark.skipif(not COMPARE.exists(), reason="needs the package libbenchmark-tools")
def test_google_benchmarks_compare_reads_it(tmp_path):
    slower = tmp_path / "slower.json"
    text = APPROVED.read_text(encoding="utf-8")
    assert '"real_time": 1590.0' in text
    slower.write_text(text.replace('"real_time": 1590.0', '"real_time": 3180.0'), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, COMPARE, "--no-color", "benchmarks", APPROVED, slower],
        capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("pipeline/")]
    change = {line[0].rsplit(":", 1)[-1]: line[1] for line in lines}
    assert change["1f1b_median"] == "+1.0000"
    assert any(line.startswith("single/") for line in done.stdout.splitlines())


def flat(value, path=""):
    """Every number and word of a value by where it stands; numbers nearly equal are equal."""
    if isinstance(value, (dict, list)):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: one for name, part in inner for key, one in flat(part, f"{path}.{name}").items()}
    return {path: pytest.approx(value, rel=1e-6) if isinstance(value, float) else value}


def test_the_reference_summaries_are_what_the_program_wrote():
    """Of a real run, which `record_results.py` made: what other tests take for the program's."""
    document = json.loads(APPROVED.with_name("measured_results.json").read_text(encoding="utf-8"))
    again = summarised(document)
    compared = 0
    for own, other in zip(document["benchmarks"], again["benchmarks"], strict=True):
        if summary := own.get("stratagem", {}).get("summary"):
            assert flat(summary) == flat(other["stratagem"]["summary"])
            compared += 1
    assert compared == 5
