"""stratagem compare marks outlying steps and launches by the report's rule, and keeps them."""

import functools

import pytest
from compared_files import compare_files
from comparison_documents import document, launch
from reference_summaries import summarised
from stratagem_reports.results.load import load_results

ROW = "single/mlp/devices:1/batch:8"
STEADY = [100.0, 100.3, 99.8, 100.1, 99.9, 100.2]


@pytest.fixture
def compare(tmp_path, capsys):
    """Runs the command on documents; gives the exit code, what it printed, and JSON."""
    return functools.partial(compare_files, tmp_path, capsys)


def steady(**own):
    return document({ROW: [launch(1.0, step_ms=[time] * 3, **own) for time in STEADY]})


def disturbed(**own):
    """The fourth launch's last step took half as long again; the sixth launch, all the time."""
    steps = [[time, time + 0.1, time - 0.1] for time in STEADY[:5]] + [[150.0, 150.1, 149.9]]
    steps[3][2] = 150.0
    return document({ROW: [launch(1.0, step_ms=times, **own) for times in steps]})


def test_outlying_steps_and_launches_are_marked_and_kept(compare, tmp_path):
    markdown = tmp_path / "c.md"
    _, captured, found = compare(steady(), disturbed(), "--markdown", markdown)
    (row,) = found["rows"]
    assert row["outliers"] == {
        "base": {"samples": 0, "launches": 0}, "head": {"samples": 4, "launches": 1}
    }  # fmt: skip
    assert len(row["head_ms"]) == 6 and max(row["head_ms"]) == 150.0
    words = "head: 4 outlying steps and 1 outlying launch kept"
    assert words in captured.out.splitlines()[2]
    (shown,) = (line for line in markdown.read_text().splitlines() if f"`{ROW}`" in line)
    assert shown.endswith(f"| 5 equal | {words} |")
    assert "beyond Tukey's fences" in captured.out


def test_outliers_follow_the_rule_of_the_report(compare, write_json):
    _, _, found = compare(disturbed(), disturbed())
    (row,) = load_results(write_json(summarised(disturbed()))).rows
    assert found["rows"][0]["outliers"]["base"] == {
        "samples": 4,
        "launches": len(row.summary.outliers),
    }


def test_outliers_of_several_files_are_sought_in_all_of_them(compare):
    """A file of one launch alone has none; beside the others its launch is one."""
    times = [document({ROW: [launch(time)]}) for time in [*STEADY, 150.0]]
    _, _, found = compare(times, steady())
    assert found["rows"][0]["outliers"]["base"] == {"samples": 1, "launches": 1}


def test_outliers_of_the_tutorial_are_training_calls(compare):
    side = disturbed(config={"protocol": "tutorial"})
    _, captured, _ = compare(side, side)
    assert "base: 1 outlying training call kept" in captured.out


def test_rows_without_marks_or_outliers_have_no_column_for_them(compare):
    _, captured, _ = compare(steady(), steady())
    assert "Marks" not in captured.out and "Tukey" not in captured.out
    _, captured, _ = compare(steady(), steady(marks=["waited"]))
    assert captured.out.splitlines()[2].endswith(f"waited  {ROW}")


def test_disturbed_launches_are_left_out_while_there_are_others(compare):
    head = steady()
    head["benchmarks"].append(head["benchmarks"][0] | {"repetition_index": 6})
    head["benchmarks"][6]["stratagem"] = launch(200.0, marks=["disturbed"])
    _, _, found = compare(steady(), head)
    assert found["rows"][0]["head_ms"] == STEADY


def test_nothing_is_said_of_a_side_that_was_disturbed_throughout(compare):
    slow = steady(marks=["disturbed"])
    code, captured, found = compare(steady(), slow)
    assert code == 0 and found["rows"][0]["verdict"] == "cannot tell"
    assert "every launch of the head was disturbed" in captured.out
