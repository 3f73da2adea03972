"""What a report says of six runs of the README's first command, three of them beside a compiler.

`readme_runs.jsonl` is made by record_readme_runs.py. The report's own functions are asked about
each run's summaries, as its results file had them. Nothing is timed here.
"""

import itertools
import json
import re
from pathlib import Path

import pytest
from stratagem_reports.analysis.selection import select
from stratagem_reports.analysis.statistics import distinguishable
from stratagem_reports.report.summary import error_of_predictions, sentences, verdict
from stratagem_reports.results.load import load_results

RUNS = [
    json.loads(line)
    for line in Path(__file__).with_name("readme_runs.jsonl").read_text().splitlines()
]
ROWS = sorted(RUNS[0]["rows"])
SINGLE = "single/resnet50/devices:1/batch:24/image:128"
ALL_CORES = f"{SINGLE}/cores:2"


def entry(name, recorded):
    """A launch of a row, with the row's recorded summary."""
    options = dict(part.split(":") for part in name.split("/") if ":" in part)
    config = {"global_batch_size": 24, "image_size": 128, "schedule": options.get("schedule")}
    config["devices"] = int(options["devices"])
    config["cores_per_device"] = int(options.get("cores", 1))
    config["split_size"] = int(options["split"]) if "split" in options else None
    interval, median = recorded["interval_ms"], recorded["median_ms"]
    summary = {
        "workload": "resnet50/batch:24/image:128",
        "verification": "passed",
        "baseline": SINGLE,
        "samples_ms": [interval["low"], median, interval["high"]],
        "mean_ms": median,
        "deviation_ms": 0.0,
        "outliers": [],
        "ratios": {},
        **{key: value for key, value in recorded.items() if key not in {"doubt", "other"}},
    }
    own = {"config": config, "step_ms": [median], "summary": summary}
    return {"run_name": name, "run_type": "iteration", "repetition_index": 0, "stratagem": own}


@pytest.fixture(params=RUNS, ids=lambda run: "busy" if run["neighbour"] else "quiet")
def run(request):
    return request.param


@pytest.fixture
def results(run, write_json):
    return read(run, write_json)


def read(run, write_json):
    """The run as a report reads it."""
    return load_results(write_json({
        "context": {"stratagem": {"schema": "stratagem/1"}},
        "benchmarks": [entry(name, recorded) for name, recorded in run["rows"].items()],
    }))


def told(results):
    """The faster row of each pair that is told apart."""
    pairs = itertools.combinations(sorted(results.rows, key=lambda row: row.name), 2)
    return {
        (one.name, two.name): min(one, two, key=lambda row: row.time_ms).name
        for one, two in pairs
        if distinguishable(one.summary, two.summary)
    }


@pytest.fixture
def faster(write_json):
    """Of each pair of rows the one that most quiet runs find faster, told apart or not."""
    quiet = [read(run, write_json).rows for run in RUNS if not run["neighbour"]]
    assert len(quiet) == 3
    times = [{row.name: row.time_ms for row in rows} for rows in quiet]
    return {
        (one, two): one if sum(run[one] < run[two] for run in times) >= 2 else two
        for one, two in itertools.combinations(ROWS, 2)
    }


def test_no_verdict_contradicts_the_majority_of_the_quiet_runs(results, faster):
    assert [row.error for row in results.rows] == [None] * 7
    wrong = {pair: row for pair, row in told(results).items() if row != faster[pair]}
    assert not wrong


def test_only_a_quiet_run_tells_pairs_apart(run, results):
    pairs = len(ROWS) * (len(ROWS) - 1) // 2
    if run["neighbour"]:
        assert not told(results)
    else:
        assert len(told(results)) >= pairs * 2 / 3


def test_only_a_quiet_run_has_a_winner(run, results):
    words, first = sentences(results, select(results)), verdict(select(results))
    name = re.search(r"(\S+ \(.*?\)) (is the fastest|has the lowest)", first)[1]
    close = [word for word in words if word.startswith(f"{name} is not significantly different")]
    if run["neighbour"]:
        assert first.startswith("No row is clearly the fastest at 95% confidence. ")
        assert "disturbed launches" in close[0]
    else:
        assert first.startswith("Single (all cores) is the fastest of 7 rows at 95% confidence. ")
        assert not close


def test_no_run_names_a_best_split_where_another_may_be_it(run, results):
    selection = select(results)
    assert [row.split_size for row in selection.splits] == [2, 4, 6, 12]
    best = next(word for word in sentences(results, selection) if word.startswith("The best split"))
    assert "is not significantly different from split" in best
    assert selection.single_all_cores.name == ALL_CORES


def test_a_prediction_holds_or_is_doubted(run, results):
    for row in results.rows:
        doubt, error = run["rows"][row.name]["doubt"], row.summary.prediction_error
        assert doubt or error is None or abs(error) < (0.10 if run["neighbour"] else 0.05), row.name


def test_the_report_tells_how_far_off_the_predictions_were(run, results):
    errors = {
        row.split_size: error
        for row in results.rows
        if row.split_size and (error := row.summary.prediction_error) is not None
    }
    found = error_of_predictions(select(results))
    if not errors:
        assert run["neighbour"] and found is None
        return
    worst = max(errors, key=lambda split: abs(errors[split]))
    assert (found.worst_split, found.worst) == (worst, errors[worst])
    assert found.mean_absolute == pytest.approx(sum(map(abs, errors.values())) / len(errors))
