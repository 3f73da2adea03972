"""Rows of different work in one file: never ranked, charted or compared with each other."""

import copy
import csv
import io
import re

import fixture_results
import pytest
from compared_files import compare_files
from fixture_history import history, refused
from reference_summaries import summarised
from stratagem_reports import __main__ as command
from stratagem_reports.analysis.selection import select
from stratagem_reports.charts.registry import draw_charts
from stratagem_reports.history.series import series_of
from stratagem_reports.history.store import load
from stratagem_reports.report.csv import render_csv
from stratagem_reports.report.markdown import render_markdown
from stratagem_reports.report.summary import sentences
from stratagem_reports.report.table import build_table
from stratagem_reports.results.load import load_results
from stratagem_reports.results.row_summary import may_be_one_workload

SINGLE = "single/resnet50/devices:2/batch:48/image:128"
OTHERS = {"dtype": "bfloat16", "optimizer": "adamw"}


def mixed() -> dict:
    """The fixture, and its single device and best pipeline again in half the time with another
    number format, and with another optimizer.
    """
    document = fixture_results.results(failed=False)
    rows = [row for row in document["benchmarks"] if row["run_type"] == "iteration"]
    again = [row for row in rows if "split:12/" in row["name"] or row["name"] == SINGLE]
    for key, value in OTHERS.items():
        for row in copy.deepcopy(again):
            row["name"] = row["run_name"] = f"{row['name']}/{key}:{value}"
            own = row["stratagem"]
            own["config"][key] = value
            own["step_ms"] = [step / 2 for step in own["step_ms"]]
            rows.insert(0, row)
    return document | {"benchmarks": rows}


@pytest.fixture
def read(write_json):
    def run(document, name="results.json"):
        return load_results(write_json(summarised(document), name))

    return run


@pytest.fixture
def both(read):
    """The results of the mixed file, and those of the fixture alone."""
    return read(mixed()), read(fixture_results.results(failed=False), "plain.json")


def drawn(results):
    return draw_charts("strategies", results, select(results))


def of_another(name: str) -> bool:
    return any(value in name for value in OTHERS.values())


def test_every_workload_has_its_own_baseline(both):
    for row in both[0].rows:
        assert of_another(row.name) == of_another(row.summary.baseline)
        assert not any(of_another(row.name) != of_another(name) for name in row.summary.cannot_tell)
    assert len({row.summary.workload for row in both[0].rows}) == 3


def test_charts_show_what_they_would_without_the_other_work(both):
    mixed_charts, plain = (drawn(item) for item in both)
    assert mixed_charts.charts == plain.charts and mixed_charts.left_out == plain.left_out


def test_words_are_those_without_the_other_work_and_say_that_there_is_some(both):
    mixed_words, plain = (sentences(item, select(item)) for item in both)
    assert mixed_words[: len(plain)] == plain
    (note,) = mixed_words[len(plain) :]
    assert "more than one workload" in note and "float32" in note and "sgd" in note


def test_the_table_ranks_the_charted_work_alone_and_keeps_workloads_together(both):
    rows = build_table(both[0], select(both[0]))
    others = [row for row in rows if of_another(row.cells[0].detail)]
    workloads = [row.facts["workload"] for row in rows]
    assert rows[-4:] == others and len({name for (name,) in workloads}) == 3
    assert [rows.index(row) for row in rows if row.style == "best"] == [0]
    assert {row.cells[3].text for row in others} == {"\u2013"}
    assert sum(one != two for one, two in zip(workloads, workloads[1:], strict=False)) == 2
    text = render_markdown(both[0], select(both[0]), drawn(both[0]))
    assert "Single (all cores) is the fastest of 11 rows" in text.decode()


def test_the_page_can_be_filtered_by_workload(write_json, tmp_path):
    assert command.main(["report", str(write_json(summarised(mixed())))]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<select name="workload">' in page
    assert not re.search("<th [^>]*aria-sort", page) and "Workload by workload" in page
    assert page.count('<option value="resnet50/') == 3


def test_the_csv_names_the_workload_the_mesh_and_the_loss(both):
    lines = list(csv.DictReader(io.StringIO(render_csv(both[0], select(both[0])).decode())))
    assert len({line["workload"] for line in lines}) == 3
    assert {line["mesh"] for line in lines} == {"", "pipeline=2"}
    assert {line["loss of the last step"] for line in lines} == {"0.0012"}


def test_the_history_keeps_them_apart_and_refuses_to_join_them(write_json, tmp_path, capsys):
    folder = tmp_path / "history"
    assert history("add", write_json(summarised(mixed())), "--dir", folder) == 0
    series = series_of(load(folder))
    assert len(series) == 15 and all(len(item.runs) == 1 for item in series)
    assert len({item.runs[0].workload for item in series}) == 3
    later = mixed()
    for row in later["benchmarks"]:
        row["stratagem"]["config"]["dtype"] = "float64"
    capsys.readouterr()
    source = write_json(summarised(later), "later.json")
    assert history("add", source, "--dir", folder, "--date", "2026-02-01") == 2
    refused(capsys, "a row's history holds one workload")
    assert len(load(folder)) == 15


def test_a_comparison_of_one_name_and_two_workloads_is_refused(tmp_path, capsys):
    base, head = mixed(), mixed()
    for row in head["benchmarks"]:
        row["stratagem"]["config"]["optimizer"] = "adam"
    code, captured, found = compare_files(tmp_path, capsys, summarised(base), summarised(head))
    assert (code, found) == (2, None)
    assert captured.err.count("\n") == 1 and "times of different work" in captured.err
    code, captured, _ = compare_files(
        tmp_path, capsys, [summarised(base), summarised(head)], summarised(base)
    )
    assert code == 2 and "times of different work" in captured.err
    assert compare_files(tmp_path, capsys, summarised(base), head)[0] == 0


def test_a_comparison_names_another_number_of_timed_steps(tmp_path, capsys):
    base, head = mixed(), mixed()
    for row in base["benchmarks"]:
        row["stratagem"]["config"]["steps"] = 2
    for row in head["benchmarks"]:
        row["stratagem"]["config"]["steps"] = 4
    same = compare_files(tmp_path, capsys, summarised(base), summarised(base))[1].out
    other = compare_files(tmp_path, capsys, summarised(base), summarised(head))[1].out
    note = "a launch times 2 steps in the base and 4 in the head"
    assert note in " ".join(other.split()) and "a launch times" not in " ".join(same.split())


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("toy/batch:8", "toy/batch:8", True),
        ("toy/batch:8", "toy/batch:8/momentum:0.9", True),
        ("toy/batch:8/momentum:0.9", "toy/batch:8", True),
        ("toy/batch:8", "toy/batch:80", False),
        ("toy/batch:8/momentum:0.9", "toy/batch:8/momentum:0.8", False),
    ],
)
def test_files_of_earlier_versions_name_fewer_parts_of_a_workload(one, two, same):
    assert may_be_one_workload(one, two) == same


def test_a_report_of_rows_without_summaries_says_what_is_missing(write_json, tmp_path, capsys):
    source = write_json(fixture_results.results())
    assert command.main(["report", str(source)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert "has no stratagem.summary" in captured.err and "measure it again" in captured.err
    assert {path.name for path in tmp_path.iterdir()} == {"results.json"}


BAD = {
    "kind": (7, "summary: expected `object | null`, got `int`"),
    "workload": ({"workload": None}, "summary: workload: expected `str`, got `null`"),
    "verification": ({"verification": "maybe"}, "summary: verification: expected `str` matching regex '^(passed|"),
    "median": ({"median_ms": "fast"}, "summary: median_ms: expected `float | null`, got `str`"),
    "no_median": ({"median_ms": None}, "summary: no `median_ms`, which a row that worked has"),
    "samples": ({"samples_ms": []}, "summary: samples_ms: expected `array` of length >= 1"),
    "interval": ({"interval_ms": {"low": 1.0}}, "interval_ms: object missing required field `high`"),
    "outliers": ({"outliers": ["first"]}, "summary: outliers[0]: expected `int`, got `str`"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_summary_is_one_line_that_names_the_place(case, write_json, capsys):
    change, words = BAD[case]
    document = summarised(fixture_results.results())
    own = document["benchmarks"][0]["stratagem"]
    own["summary"] = own["summary"] | change if isinstance(change, dict) else change
    assert command.main(["report", str(write_json(document))]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "benchmarks[0].stratagem" in captured.err and words in captured.err
