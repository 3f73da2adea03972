"""The report of a file of collectives: the bandwidth chart inside, the link model in words."""

import fixture_collectives
import pytest
from drawn import rows
from reference_summaries import summarised
from stratagem_reports import __main__ as command
from stratagem_reports.analysis import labels
from stratagem_reports.charts.bandwidth import draw
from stratagem_reports.results.load import load_results


@pytest.fixture
def written(write_json, tmp_path):
    def run(document):
        assert command.main(["report", str(write_json(summarised(document)))]) == 0
        return tmp_path, (tmp_path / "report.html").read_text(encoding="utf-8")

    return run


def test_the_chart_is_in_the_report_and_beside_it(written):
    folder, page = written(fixture_collectives.collectives())
    names = {path.name for path in folder.iterdir()}
    assert names == {"results.json", "report.html", "bandwidth.png", "bandwidth.svg"}
    assert page.count("<figure") == 1 and page.count("<script>") == 2
    assert "All reduce, 1 KiB: " in page and "; All reduce, 4 MiB: " in page
    assert "All reduce: a message takes 0.0400 ms, plus its size over 3.00 GB/s." in page
    assert "Send: a message takes 0.0400 ms, whatever its size." in page


def test_lines_are_the_medians_of_the_rounds(write_json):
    chart = draw(load_results(write_json(fixture_collectives.collectives(("all_gather",)))))
    points = rows(chart, "low", "words")
    size = fixture_collectives.SIZES[-1]
    time_ms = 1.03 * (fixture_collectives.LATENCY_MS + size / fixture_collectives.GB_PER_S / 1e6)
    assert points[-1]["y"] == pytest.approx(0.5 * size / time_ms / 1e6)


def test_rows_that_failed_are_in_the_table_alone(written):
    _, page = written(fixture_collectives.collectives(failed=True))
    assert "failed: rank 1: no answer" in page and "1 row failed" in page
    assert "16 MiB" not in page.split("<figure")[1].split("</figure>")[0]


def test_without_a_row_that_always_worked_there_is_no_chart(written, capsys):
    document = fixture_collectives.collectives(("send",))
    for entry in document["benchmarks"]:
        if entry["repetition_index"] == 2:
            entry["error_occurred"] = True
    _, page = written(document)
    assert "left out bandwidth: no row worked in every round" in capsys.readouterr().out
    assert "<figure" not in page and "<code>bandwidth</code>" in page


def test_markdown_is_refused_in_one_line(write_json, tmp_path, capsys):
    source = write_json(summarised(fixture_collectives.collectives()))
    assert command.main(["report", str(source), "--format", "markdown"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "--format markdown" in error
    assert {path.name for path in tmp_path.iterdir()} == {"results.json"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7.2e-07, "0.000000720"),
        (0.0123456, "0.0123"),
        (2.2, "2.20"),
        (9.996, "10.0"),
        (999.96, "1,000"),
        (1112.84, "1,113"),
        (4.9e6, "4,900,000"),
        (float("inf"), "inf"),
    ],
)
def test_a_number_has_no_exponent(value, text):
    assert labels.significant(value) == text


def test_a_figure_that_is_whole_has_no_fraction():
    assert [labels.figure(value) for value in (2.0, 2.5, 123456.5)] == ["2", "2.500", "123,456"]
