"""The command as its caller meets it: files, exit codes, one line for bad input."""

import json
import os
import subprocess
import sys
from pathlib import Path

import fixture_results
import images
import pytest
from reference_summaries import summarised
from stratagem_reports import __main__ as command
from stratagem_reports.charts.theme import action_color, in_theme, strategy_color
from stratagem_reports.results import files

CHARTS = (
    "mp_vs_rn",
    "mp_vs_rn_vs_pp",
    "split_size_tradeoff",
    "gantt_best",
    "gantt_worst",
    "gantt_single",
    "gantt_model_parallel",
    "breakdown",
    "scaling",
    "memory",
    "memory_by_category",
    "time_and_memory",
)
PRODUCTS = {f"{name}.{extension}" for name in CHARTS for extension in ("png", "svg")}
PRODUCTS |= {"report.html"}


@pytest.fixture(scope="module")
def produced(tmp_path_factory):
    """The folder of one run on the whole fixture."""
    folder = tmp_path_factory.mktemp("produced")
    source = folder / "results.json"
    source.write_text(json.dumps(summarised(fixture_results.results())), encoding="utf-8")
    assert command.main(["report", str(source)]) == 0
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_everything_lies_beside_the_file_and_nothing_else(produced):
    assert names(produced) == PRODUCTS | {"results.json"}


def test_rows_that_name_no_batch_have_no_throughput_by_devices(tmp_path, capsys):
    approved = Path(__file__).parents[1] / "approved" / "results.json"
    source = tmp_path / "results.json"
    source.write_bytes(approved.read_bytes())
    assert command.main(["report", str(source)]) == 0
    assert "left out scaling: the row of single names no batch" in capsys.readouterr().out


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_not_blank(produced, name):
    picture = produced / f"{name}.png"
    assert images.distinct_colors(picture) > 50
    assert 0.03 < images.inked(picture) < 0.9
    svg = (produced / f"{name}.svg").read_text(encoding="utf-8")
    assert svg.count("<path") > 20


@pytest.mark.parametrize(
    ("name", "strategies"),
    [
        ("mp_vs_rn", {"model_parallel", "single", "single_all_cores"}),
        ("mp_vs_rn_vs_pp", {"model_parallel", "single", "single_all_cores", "pipeline"}),
    ],
)
def test_each_strategy_shows_its_colour(produced, name, strategies):
    for strategy in ("model_parallel", "single", "single_all_cores", "pipeline"):
        color = in_theme(strategy_color(strategy), "light")
        share = images.share_of(produced / f"{name}.png", color)
        assert (share > 0.01) is (strategy in strategies)


def test_gantt_shows_forward_and_backward(produced):
    for kind in ("forward", "backward", "optimizer"):
        color = in_theme(action_color(kind), "light")
        assert images.share_of(produced / "gantt_best.png", color) > 0.001


def test_pictures_have_two_dots_for_a_pixel(produced):
    header = (produced / "mp_vs_rn.png").read_bytes()
    at = header.index(b"pHYs") + 4
    assert int.from_bytes(header[at : at + 4], "big") == round(144 / 0.0254)


def test_a_second_run_gives_the_same_bytes(produced, tmp_path):
    again = tmp_path / "again"
    words = ["report", str(produced / "results.json"), "--out-dir", str(again)]
    reports = Path(command.__file__).resolve().parents[1]
    subprocess.run(
        [sys.executable, "-m", "stratagem_reports", *words], check=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(reports)},
    )  # fmt: skip
    for name in PRODUCTS:
        assert (again / name).read_bytes() == (produced / name).read_bytes(), name


def test_tutorial_results_make_the_same_set_but_what_takes_a_steady_step(write_json, tmp_path):
    document = fixture_results.results("tutorial", (1, 10, 12, 20), False, 10)
    source = write_json(summarised(document))
    assert command.main(["report", str(source)]) == 0
    assert names(tmp_path) == PRODUCTS - {"scaling.png", "scaling.svg"} | {"results.json"}


def test_charts_left_out_are_named_and_stale_ones_removed(write_json, tmp_path, capsys):
    document = fixture_results.results()
    document["benchmarks"] = [row for row in document["benchmarks"] if "single" in row["name"]]
    for name in ("gantt_best", "gantt_model_parallel"):
        (tmp_path / f"{name}.png").write_bytes(b"of an earlier run")
    assert command.main(["report", str(write_json(summarised(document)))]) == 0
    assert "left out gantt_best: no working pipeline row" in capsys.readouterr().out
    drawn = ("gantt_single", "breakdown", "memory", "memory_by_category", "time_and_memory")
    pictures = {f"{name}.{extension}" for name in drawn for extension in ("png", "svg")}
    assert names(tmp_path) == {"results.json", "report.html", *pictures}


def test_a_file_of_failed_rows_still_gives_a_report(write_json, tmp_path):
    document = fixture_results.results()
    document["benchmarks"] = [row for row in document["benchmarks"] if row.get("error_occurred")]
    assert command.main(["report", str(write_json(summarised(document)))]) == 0
    assert names(tmp_path) == {"results.json", "report.html"}
    assert "out of memory" in (tmp_path / "report.html").read_text(encoding="utf-8")


def broken(change) -> str:
    document = fixture_results.results()
    change(document)
    return json.dumps(document)


def first_row(**fields) -> str:
    """The fixture with other fields in its first entry."""
    return broken(lambda document: document["benchmarks"][0].update(fields))


BAD = {
    "truncated": (json.dumps(fixture_results.results())[:5000], "not valid JSON"),
    "empty": ("", "not valid JSON"),
    "list": ("[1, 2]", "expected `object`, got `array`"),
    "foreign": ('{"name": "something else"}', "context"),
    "other_benchmark": ('{"context": {"num_cpus": 2}, "benchmarks": []}', "context"),
    "not_a_number": ('{"context": NaN}', "not valid JSON"),
    "schema": (
        broken(lambda d: d["context"]["stratagem"].update(schema="stratagem/9")),
        "context.stratagem: expected schema \"stratagem/1\", found 'stratagem/9'",
    ),
    "no_rows": (broken(lambda d: d.update(benchmarks=[])), "no rows"),
    "aggregates_only": (
        broken(
            lambda d: d.update(
                benchmarks=[row for row in d["benchmarks"] if row["run_type"] == "aggregate"]
            )
        ),
        "has only aggregates; its repetitions are needed: write the file without",
    ),
    "step_kind": (
        broken(lambda d: d["benchmarks"][0]["stratagem"].update(step_ms=["fast"])),
        "benchmarks[0].stratagem.step_ms[0]: expected `float`, got `str`",
    ),
    "negative_step": (
        broken(lambda d: d["benchmarks"][0]["stratagem"].update(step_ms=[-1.0])),
        "benchmarks[0].stratagem.step_ms[0]: expected `float` > 0.0",
    ),
    "timeline": (
        broken(
            lambda d: d["benchmarks"][0]["stratagem"].update(
                timeline=[d["benchmarks"][0]["stratagem"]["timeline"][0] | {"end_ms": -1.0}]
            )
        ),
        "benchmarks[0].stratagem.timeline[0]: expected start_ms <= end_ms",
    ),
    "row_kind": (broken(lambda d: d["benchmarks"].append(7)), "]: expected `object`, got `int`"),
    "huge_step": (first_row(stratagem={"step_ms": [10**400]}), "step_ms[0]: number out of range"),
    "no_step": (first_row(stratagem={"step_ms": []}), "[0]: no stratagem.step_ms; expected"),
    "huge_number": (
        first_row(items_per_second=10**400),
        "benchmarks[0].items_per_second: number out of range",
    ),
    "index_list": (first_row(repetition_index=[]), "[0].repetition_index: expected `int | null`, got `array`"),
    "index_word": (first_row(repetition_index="x"), "[0].repetition_index: expected `int | null`"),
    "index_fraction": (first_row(repetition_index=0.5), "[0].repetition_index: expected `int |"),
    "index_missing": (first_row(repetition_index=None), "[0]: has no repetition_index, and single"),
    "run_name_kind": (first_row(run_name=["x"]), "[0].run_name: expected `str`, got `array`"),
    "no_name": (first_row(run_name="", name=""), "[0]: expected a row's name in `run_name` or"),
    "only_aggregates_of_a_row": (
        broken(lambda d: d["benchmarks"].append({"run_name": "a/b", "run_type": "aggregate"})),
        "a/b has only aggregates",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_2_and_leaves_nothing(case, tmp_path, capsys):
    text, words = BAD[case]
    source = tmp_path / "results.json"
    source.write_text(text, encoding="utf-8")
    assert command.main(["report", str(source)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1 and str(source) in captured.err
    assert words in captured.err
    assert names(tmp_path) == {"results.json"}


def test_binary_and_missing_files_are_refused(tmp_path, capsys):
    (tmp_path / "picture.json").write_bytes(b"\x89PNG\xff\xfe")
    assert command.main(["report", str(tmp_path / "picture.json")]) == 2
    assert "not UTF-8" in capsys.readouterr().err
    assert command.main(["report", str(tmp_path / "absent.json")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert command.main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_in_the_way_of_the_folder_is_refused(write_json, tmp_path, capsys):
    source = write_json(summarised(fixture_results.results()))
    (tmp_path / "taken").write_text("a file")
    assert command.main(["report", str(source), "--out-dir", str(tmp_path / "taken")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (tmp_path / "taken").read_text() == "a file"


def test_a_failure_while_writing_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_bytes(b"old")
    opened = Path.open

    def full(path, *mode, **more):
        if "b.txt" in path.name:
            raise OSError(28, "No space left on device")
        return opened(path, *mode, **more)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(files.InputError, match="No space left"):
        files.write_together(tmp_path, {"a.txt": b"new", "b.txt": b"new"})
    assert names(tmp_path) == {"a.txt"}
    assert (tmp_path / "a.txt").read_bytes() == b"old"


@pytest.mark.parametrize("extension", ["png", "svg"])
def test_gantt_of_a_simulation(write_json, tmp_path, capsys, extension):
    source = write_json(fixture_results.simulation(), "simulation.json")
    target = tmp_path / f"schedule.{extension}"
    assert command.main(["gantt", str(source), "--out", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    if extension == "png":
        assert images.share_of(target, in_theme(action_color("backward"), "light")) > 0.02
    else:
        assert target.read_text(encoding="utf-8").count("<path") > 20


def test_gantt_refuses_other_endings_and_empty_timelines(write_json, tmp_path, capsys):
    source = write_json(fixture_results.simulation(), "simulation.json")
    assert command.main(["gantt", str(source), "--out", str(tmp_path / "schedule.jpeg")]) == 2
    assert ".png or .svg" in capsys.readouterr().err
    empty = fixture_results.simulation()
    empty["simulation"]["timeline"] = []
    source = write_json(empty, "empty.json")
    assert command.main(["gantt", str(source), "--out", str(tmp_path / "schedule.png")]) == 2
    assert "nothing to draw" in capsys.readouterr().err
    assert names(tmp_path) == {"simulation.json", "empty.json"}


def test_gantt_takes_kinds_it_does_not_know(write_json, tmp_path):
    document = fixture_results.simulation()
    for index, action in enumerate(document["simulation"]["timeline"]):
        action["kind"] = ("all_reduce", "backward_input", "juggle")[index % 3]
    target = tmp_path / "schedule.png"
    source = write_json(document, "simulation.json")
    assert command.main(["gantt", str(source), "--out", str(target)]) == 0
    assert images.distinct_colors(target) > 20


def test_usage_errors_are_one_line(capsys):
    for arguments in (["report"], ["nonsense"], ["gantt", "file.json"]):
        with pytest.raises(SystemExit) as caught:
            command.main(arguments)
        assert caught.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_as_a_module_in_a_process_of_its_own(tmp_path):
    package = Path(command.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "stratagem_reports", "report", str(tmp_path / "absent.json")],
        env=os.environ | {"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "absent.json" in done.stderr
