"""report.md and report.csv: complete, plain, and with nothing of a name as markup."""

import csv
import json

import fixture_results
import pytest
from reference_summaries import summarised
from stratagem_reports import __main__ as command
from stratagem_reports.analysis.selection import select
from stratagem_reports.results.load import load_results


@pytest.fixture
def written(write_json, tmp_path):
    def run(document, name):
        source = write_json(summarised(document))
        assert command.main(["report", str(source), "--format", name]) == 0
        return tmp_path

    return run


def lines_of(folder):
    with (folder / "report.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_a_line_a_row_with_plain_numbers(written, write_json):
    document = fixture_results.results()
    folder = written(document, "csv")
    assert {path.name for path in folder.iterdir()} == {"results.json", "report.csv"}
    lines = lines_of(folder)
    assert len(lines) == 12
    selection = select(load_results(folder / "results.json"))
    best = selection.best_pipeline
    line = next(line for line in lines if line["row"] == best.name)
    assert float(line["median (ms)"]) == pytest.approx(best.summary.median)
    assert float(line["interval low (ms)"]) == pytest.approx(best.summary.interval.low)
    assert line["split size"] == "12" and line["schedule"] == "1f1b"
    assert float(line["ideal bubble (fraction)"]) == pytest.approx(0.2)
    assert line["peak memory (bytes)"] == "3400000000" and line["verification"] == "passed"
    assert float(line["largest relative error as timed"]) == 2.4e-7
    assert float(line["tolerance as timed"]) == 3.8e-6
    times = [float(line["median (ms)"]) for line in lines[:-1]]
    assert times == sorted(times)
    assert lines[-1]["error"].startswith("rank 0: out of memory") and lines[-1]["median (ms)"] == ""


def test_a_new_number_of_the_summary_needs_no_change_of_the_csv(write_json, tmp_path):
    document = summarised(fixture_results.results())
    first = next(entry for entry in document["benchmarks"] if entry["run_type"] == "iteration")
    first["stratagem"]["summary"]["joules_per_step"] = 12.5
    source = write_json(document)
    assert command.main(["report", str(source), "--format", "csv"]) == 0
    found = {line["row"]: line["joules_per_step"] for line in lines_of(tmp_path)}
    assert found.pop(first["run_name"]) == "12.5" and set(found.values()) == {""}


def test_csv_of_tutorial_rows_and_of_an_odd_name(written):
    document = fixture_results.results("tutorial", (10, 20), False, 4)
    document["benchmarks"][0]["stratagem"]["marks"] = ['a,"b"']
    lines = lines_of(written(document, "csv"))
    assert {line["protocol"] for line in lines} == {"tutorial"}
    assert any(line["marks"] == 'a,"b"' for line in lines)


def test_markdown_has_summary_table_and_links_to_pictures_that_exist(written):
    folder = written(fixture_results.results(), "markdown")
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "## Summary\n\nSingle (all cores) is the fastest of 11 rows" in text
    links = [line.rsplit("](", 1)[1].rstrip(")") for line in text.splitlines() if line[:2] == "!["]
    assert len(links) == 12 and all((folder / link).is_file() for link in links)
    assert not (folder / "report.html").exists()
    table = text[text.index("| Row |") :].split("\n\n")[0].splitlines()
    assert len(table) == 14
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_markdown_of_a_name_with_markup(written):
    document = json.loads(json.dumps(fixture_results.results()).replace("out of memory", "a | b*"))
    text = (written(document, "markdown") / "report.md").read_text(encoding="utf-8")
    assert "a \\| b\\*" in text and "<allocating" not in text.replace("\\<", "")


def test_an_unknown_format_is_one_line(write_json, capsys):
    source = write_json(fixture_results.results())
    with pytest.raises(SystemExit) as caught:
        command.main(["report", str(source), "--format", "pdf"])
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "html" in error and "csv" in error


def test_help_names_the_formats(capsys):
    with pytest.raises(SystemExit):
        command.main(["report", "--help"])
    words = capsys.readouterr().out
    assert "report.md" in words and "report.csv" in words and "--format" in words
