"""Change points: where they are, what is said of them, and their charts."""

import json
import subprocess
import sys

import pytest
from msgspec.structs import replace
from stratagem_reports.charts.theme import in_theme, part_color, strategy_color
from stratagem_reports.history.points import Metric
from stratagem_reports.history.series import series_of
from stratagem_reports.history.trend import trend_of
from stratagem_reports.results.launch import UNRELIABLE_MARKS

import images
from fixture_history import ROW, commit, history, runs, store

SINGLE = "single/resnet50/devices:1"
OTHER = {"cpu_model": "Other processor"}


def changes(many, metric="step_ms"):
    (series,) = series_of(many)
    return trend_of(series, metric, max_p=0.001, min_change=1.0).changes


@pytest.mark.parametrize(("factor", "direction"), [(1.05, "slower"), (1 / 1.05, "faster")])
def test_a_step_of_five_per_cent_is_found_between_its_commits(factor, direction):
    (change,) = changes(runs(40, step_at=25, factor=factor))
    assert change.index == 25
    assert (change.before.commit, change.after.commit) == (commit(24), commit(25))
    assert change.percent == pytest.approx(100 * (factor - 1), abs=0.7)
    assert change.direction == direction
    assert change.p_value < 0.001


def test_noise_has_no_change_point():
    assert [changes(runs(60, seed=seed)) for seed in range(10)] == [[]] * 10


def test_runs_are_put_in_order_of_time():
    (change,) = changes(runs(40, step_at=25)[::-1])
    assert change.before.commit == commit(24)


def test_few_runs_and_equal_runs_have_none():
    for many in (runs(1), runs(2), runs(3, step_at=2)):
        assert changes(many) == []
    same = runs(1)[0]
    equal = [replace(same, time=run.time) for run in runs(20)]
    assert changes(equal) == []


def test_direction_follows_the_metric():
    (change,) = changes(runs(40, step_at=25), "mfu")
    assert change.direction == "worse" and change.percent < 0.0


def test_the_step_in_canaries_joins_all_hardware(tmp_path, capsys):
    """A pool of two processors of unlike speed, and a slowdown of both."""
    pool = []
    for index, run in enumerate(runs(40, step_at=25)):
        speed, machine = ((1.0, None), (1.6, OTHER))[index % 2]
        made = runs(1, machine=machine)[0]
        metrics = {
            "canary_ms": Metric(20.0 * speed, "ms"),
            "step_in_canaries": Metric(run.median / 20.0, "", "lower"),
        }
        changed = {"median": run.median * speed, "metrics": metrics, "hardware": made.hardware}
        pool.append(replace(run, **changed))
    folder = store(tmp_path / "h", pool)
    options = ("--dir", folder, "--format", "json", "--metric")
    assert history("trend", *options, "step_in_canaries") == 0
    (trend,) = json.loads(capsys.readouterr().out)["series"]
    (change,) = trend["change_points"]
    assert change["first_commit_after"] == commit(25) and change["direction"] == "worse"
    assert history("trend", *options, "step_ms") == 0
    assert len(json.loads(capsys.readouterr().out)["series"]) == 2


@pytest.mark.parametrize("mark", UNRELIABLE_MARKS)
def test_runs_with_an_unreliable_mark_are_in_no_trend_of_times(tmp_path, capsys, mark):
    slow = [replace(run, marks=[mark]) for run in runs(10, first=30, step_at=0, factor=2.0)]
    folder = store(tmp_path / "h", runs(30), slow)
    assert history("trend", "--dir", folder, "--fail-on-regression") == 0
    assert f"{ROW}: left out 10 runs: {mark}" in capsys.readouterr().out
    trend = trend_of(series_of(slow)[0], "live_micro_batches", max_p=0.001, min_change=0.0)
    assert len(trend.runs) == 10
    assert history("trend", "--dir", store(tmp_path / "slow", slow)) == 3
    assert f"every run with the metric 'step_ms' was marked ({mark})" in capsys.readouterr().err


def test_a_slow_machine_is_in_the_trend_of_steps_in_canaries():
    metrics = {"step_in_canaries": Metric(5.0, "", "lower")}
    slow = [replace(run, marks=["slow_machine"], metrics=metrics) for run in runs(10)]
    trend = trend_of(series_of(slow)[0], "step_in_canaries", max_p=0.001, min_change=0.0)
    assert len(trend.runs) == 10


def test_a_trend_over_launches_of_another_length_has_a_note(tmp_path, capsys):
    longer = [replace(run, steps=20) for run in runs(3, first=3)]
    folder = store(tmp_path / "h", [replace(run, steps=6) for run in runs(3)], longer)
    assert history("trend", "--dir", folder) == 0
    assert f"{ROW}: launches of 6 and 20 steps" in capsys.readouterr().out
    assert history("trend", "--dir", store(tmp_path / "same", longer)) == 0
    assert "steps, whose" not in capsys.readouterr().out


def test_hardware_is_never_joined_and_that_is_said(tmp_path, capsys):
    folder = store(
        tmp_path / "h", runs(20), runs(20, first=20, machine=OTHER, step_at=0, factor=1.5)
    )
    assert history("trend", "--dir", folder) == 0
    out = capsys.readouterr().out
    assert out.count("no change point") == 2
    assert f"{ROW}: 2 kinds of hardware, never joined" in out
    assert history("trend", "--dir", folder, "--format", "json") == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["series"]) == 2
    assert "never joined" in captured.err


def test_every_format_names_size_direction_and_commits(tmp_path, capsys):
    folder = store(tmp_path / "h", runs(40, step_at=25), runs(40, SINGLE))
    assert history("trend", "split:12", "--dir", folder) == 0
    text = capsys.readouterr().out
    assert "2026-01-26  +5.0% slower, 99.77 ms to 104.8 ms" in text
    assert f"commits {commit(24)}..{commit(25)}" in text
    assert history("trend", "--dir", folder, "--format", "markdown") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(line.count("|") == 10 for line in lines)
    assert "slower" in lines[2] and "none" in lines[3]
    assert history("trend", "--dir", folder, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    (point,) = document["series"][0]["change_points"]
    assert point["last_commit_before"] == commit(24)
    assert point["first_commit_after"] == commit(25)
    assert (point["direction"], point["index"]) == ("slower", 25)
    assert len(document["series"][0]["runs"]) == 40


@pytest.mark.parametrize(
    ("count", "step_at", "factor", "window", "code"),
    [
        (40, 35, 1.05, 10, 1),
        (40, 30, 1.05, 10, 1),
        (40, 29, 1.05, 10, 0),
        (40, 29, 1.05, 11, 1),
        (40, 35, 0.95, 10, 0),
        (40, None, 1.0, 10, 0),
    ],
)
def test_fail_on_regression(count, step_at, factor, window, code, tmp_path):
    folder = store(tmp_path / "h", runs(count, step_at=step_at, factor=factor), runs(40, SINGLE))
    arguments = ["trend", "--dir", folder, "--window", window]
    assert history(*arguments, "--fail-on-regression") == code
    assert history(*arguments) == 0


def test_a_slowdown_made_good_does_not_fail(tmp_path):
    slow = runs(45, step_at=30)[30:]
    folder = store(tmp_path / "h", runs(30), slow, runs(6, first=45, seed=9))
    assert history("trend", "--dir", folder, "--fail-on-regression", "--window", 40) == 0


def test_charts_show_launches_median_and_change(tmp_path, capsys):
    folder = store(tmp_path / "h", runs(40, step_at=25))
    charts = tmp_path / "charts"
    assert history("trend", "--dir", folder, "--out-dir", charts) == 0
    (picture,), (drawing,) = charts.glob("*.png"), charts.glob("*.svg")
    assert str(picture) in capsys.readouterr().out
    assert images.distinct_colors(picture) > 50
    assert 0.03 < images.inked(picture) < 0.9
    assert images.share_of(picture, in_theme(part_color("communication_exposed"), "light")) > 0.0003
    assert images.share_of(picture, in_theme(strategy_color("pipeline"), "light")) > 0.001
    assert drawing.read_text(encoding="utf-8").count("<path") > 20


def test_charts_of_long_names_and_without_changes(tmp_path):
    folder = store(tmp_path / "h", runs(1, "row/" + "option:1/" * 60), runs(12, SINGLE))
    arguments = ["trend", "--dir", folder, "--out-dir", tmp_path / "c"]
    assert history(*arguments, "--metric", "live_micro_batches") == 0
    assert len(list((tmp_path / "c").iterdir())) == 4
    (tmp_path / "taken").write_text("a file")
    assert history("trend", "--dir", folder, "--out-dir", tmp_path / "taken") == 2


def test_an_unknown_metric_matches_nothing(tmp_path, capsys):
    folder = store(tmp_path / "h", runs(2))
    assert history("trend", "--dir", folder, "--metric", "speed") == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "step_ms, cpu_time, live_micro_batches, mfu" in err


def test_without_otava_one_line_says_how_to_get_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "otava", None)
    monkeypatch.setitem(sys.modules, "otava.analysis", None)
    folder = store(tmp_path / "h", runs(2))
    assert history("trend", "--dir", folder) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "apache-otava" in err


def test_costly_packages_are_imported_only_where_they_are_used(tmp_path):
    folder = store(tmp_path / "h", runs(2))
    script = (
        "import sys\nfrom stratagem_reports import __main__ as command\n"
        f"assert command.main(['history', 'show', '--dir', {str(folder)!r}]) == 0\n"
        "assert not {'vl_convert', 'otava', 'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
