"""Every figure of a row stands under its own heading: one row in which all numbers differ."""

import copy
import csv

import fixture_results
import pytest
from reference_summaries import summarised
from stratagem_reports import __main__ as command

SUMMARY = {
    "proven": True,
    "mean_ms": 211.5,
    "median_ms": 212.5,
    "deviation_ms": 3.25,
    "interval_ms": {"low": 201.5, "high": 224.5, "coverage": 0.875},
    "bubble": {"measured": 0.21, "ideal": 0.19},
    "communication_share": {"exposed": 0.05, "hidden": 0.31},
    "samples_per_second": 112.0,
    "tokens_per_second": 2468.0,
    "mfu": 0.57,
    "hfu": 0.61,
    "peak_memory_bytes": 5 * 2**29,
    "predicted_ms": 207.5,
    "prediction_error": -0.024,
    "spread": 0.091,
    "wide": True,
    "outliers": [3],
}
CSV = {
    "row": "pipeline/resnet50/devices:2/batch:48/image:128/split:12/schedule:1f1b",
    "strategy": "pipeline",
    "model": "resnet50",
    "mesh": "pipeline=2",
    "schedule": "1f1b",
    "split size": "12",
    "devices": "2",
    "cores per device": "4",
    "global batch size": "48",
    "image size": "128",
    "sequence length": "17",
    "device": "cpu",
    "protocol": "steady",
    "median (ms)": "212.5",
    "interval low (ms)": "201.5",
    "interval high (ms)": "224.5",
    "interval coverage (fraction)": "0.875",
    "mean (ms)": "211.5",
    "standard deviation (ms)": "3.25",
    "samples": "7",
    "samples per second": "112",
    "tokens per second": "2468",
    "MFU (fraction)": "0.57",
    "HFU (fraction)": "0.61",
    "bubble (fraction)": "0.21",
    "ideal bubble (fraction)": "0.19",
    "exposed communication (fraction)": "0.05",
    "hidden communication (fraction)": "0.31",
    "predicted (ms)": "207.5",
    "peak memory (bytes)": "2684354560",
    "verification": "passed",
    "timed steps proven": "True",
    "largest relative error": "3.1e-13",
    "tolerance": "1e-09",
    "largest relative error as timed": "2.4e-07",
    "tolerance as timed": "3.8e-06",
    "loss of the first step": "0.75",
    "loss of the last step": "0.625",
    "bus bandwidth (GB/s)": "1.5",
    "marks": "waited",
    "error": "",
}
MARKDOWN = {
    "Row": "pipeline/resnet50/devices:2/batch:48/image:128/split:12/schedule:1f1b",
    "Time": "212 ms",
    "Interval": "202 ms to 224 ms (87.5%, 7 samples)",
    "Against the fastest": "median",
    "Samples/s": "112 (2,468 tokens/s)",
    "MFU": "57.0%",
    "Bubble": "21.0% / 19.0%",
    "Communication": "5.0% (31.0% hidden)",
    "Predicted": "208 ms (-2.4%)",
    "Peak memory": "2.50 GiB",
    "Verification": "passed (3.1e-13 of 1.0e-09; in float32 2.4e-07 of 3.8e-06; timed steps proven)",
    "Marks": "waited, wide spread (9%), 1 outlying",
}


@pytest.fixture
def report(write_json, tmp_path):
    """Writes a report of the one row in a format, and gives the folder."""
    document = fixture_results.results(splits=(12,), failed=False)
    document["benchmarks"] = [
        entry
        for entry in document["benchmarks"]
        if entry["run_name"] == CSV["row"] and entry["run_type"] == "iteration"
    ]
    for one in document["benchmarks"]:
        own = one["stratagem"]
        own["config"] |= {"cores_per_device": 4, "sequence_length": 17}
        own["loss"] = [0.75, 0.6875, 0.625]
        own["marks"] = ["waited"]
        own["counters"] = {"bus_gb_per_s": 1.5} if one is document["benchmarks"][0] else {}
    document = summarised(document)
    document["benchmarks"][0]["stratagem"]["summary"] |= copy.deepcopy(SUMMARY)
    source = write_json(document)

    def write(form):
        assert command.main(["report", str(source), "--format", form]) == 0
        return tmp_path

    return write


def test_every_column_of_the_csv(report):
    with (report("csv") / "report.csv").open(encoding="utf-8", newline="") as file:
        (line,) = csv.DictReader(file)
    assert line.pop("workload").startswith("resnet50/batch:48/")
    assert line == CSV


def test_every_column_of_the_table(report):
    text = (report("markdown") / "report.md").read_text(encoding="utf-8")
    headings, _, line = (
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in text[text.index("| Row |") :].split("\n\n")[0].splitlines()
    )
    assert dict(zip(headings, line, strict=True)) == MARKDOWN
