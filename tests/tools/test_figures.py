"""The published figures: the pages show what the recorded files hold, and recording keeps it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "peers")]

from published import pages, recording  # noqa: E402
from published.scenarios import RECORDED, SCENARIOS, Scenario  # noqa: E402

PERFORMANCE = ROOT / "docs" / "explanation" / "performance.md"
MEASURED = ROOT / "tests" / "approved" / "measured_results.json"
RECORDS = sorted(path.stem for path in RECORDED.glob("*.json") if path != pages.DRAWN_FROM)
FIGURE = re.compile(r"\d\s?(?:ms|s|%|x|MiB|GiB|GB/s)\b|\b\d+\.\d+\b")


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_the_recorded_files_hold(page):
    assert page.read_text() == pages.rendered(page), "tools/figures makes the pages anew"


def test_every_picture_is_drawn_from_the_recorded_file():
    drawn = json.loads(pages.DRAWN_FROM.read_text())
    wanted = pages.pictures_of()
    assert drawn == {name: pages.Recorded(of).digest for name, (of, _) in wanted.items()}
    assert {path.name for path in pages.IMAGES.iterdir()} == set(wanted)


def test_no_figure_of_the_performance_page_stands_outside_a_recorded_one():
    prose = re.sub(r"```.*?```", "", pages.BLOCK.sub("", PERFORMANCE.read_text()), flags=re.DOTALL)
    assert FIGURE.findall(prose) == []
    shown = {block.scenario for page in pages.PAGES for block in pages.blocks_of(page.read_text())}
    assert shown == set(RECORDS)


@pytest.mark.parametrize("name", RECORDS)
def test_a_recorded_file_can_be_traced(name):
    recorded = pages.Recorded(name)
    assert len(recorded.text) <= recording.MOST_BYTES
    source = recorded.source(PERFORMANCE)
    commit = re.search(r"commit ([0-9a-f]{7,}), (\d{4}-\d\d-\d\d), ", source)
    assert commit, source
    assert f"`{SCENARIOS[name].command}`" in source


def test_a_record_has_every_launch_and_one_timeline_a_row():
    results = json.loads(MEASURED.read_text())
    launches = [row for row in results["benchmarks"] if row["run_type"] == "iteration"]
    kept = recording.compact(json.loads(MEASURED.read_text()))["benchmarks"]
    assert [row["name"] for row in kept] == [row["name"] for row in launches]
    timelines = [row["name"] for row in kept if row["stratagem"]["timeline"]]
    assert sorted(timelines) == sorted({row["name"] for row in launches})
    for before, after in zip(launches, kept, strict=True):
        steps = before["stratagem"]["step_ms"]
        assert after["stratagem"]["step_ms"] == pytest.approx(steps, rel=1e-5)


FAKE = """#!{python}
import json, sys
out = sys.argv[sys.argv.index("--out") + 1]
if "--resume" not in sys.argv:
    sys.exit("no resume")
with open(out, "w") as file:
    json.dump({{"benchmarks": [], "said": 1.23456789, "words": sys.argv[1:]}}, file)
sys.exit({code})
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree with a program that writes results; its commit is not asked for."""
    monkeypatch.setattr(recording, "ROOT", tmp_path)
    monkeypatch.setattr(recording, "WORK", tmp_path / "results" / "figures")
    monkeypatch.setattr(recording, "why_not_traceable", lambda _: None)
    return tmp_path


def scenario_of(tree, code=0):
    program = tree / "program"
    program.write_text(FAKE.format(python=sys.executable, code=code))
    program.chmod(0o755)

    class Elsewhere(Scenario):
        file = tree / "recorded.json"

    return Elsewhere("name", f"{program} --only 'a|b'", 1)


def test_a_scenario_leaves_its_record(tree):
    recording.record(scenario_of(tree))
    record = json.loads((tree / "recorded.json").read_text())
    assert record["said"] == 1.23457
    assert record["words"][:2] == ["--only", "a|b"]
    assert list((tree / "results" / "figures").iterdir()) == []


def test_a_scenario_that_fails_leaves_no_record(tree):
    with pytest.raises(recording.NotRecorded, match="name: .* ended with exit code 4"):
        recording.record(scenario_of(tree, code=4))
    assert not (tree / "recorded.json").exists()


def test_a_command_that_was_interrupted_ends_the_recording(tree):
    with pytest.raises(KeyboardInterrupt):
        recording.record(scenario_of(tree, code=130))


def test_a_record_that_is_too_large_is_refused(tree, monkeypatch):
    monkeypatch.setattr(recording, "MOST_BYTES", 10)
    with pytest.raises(recording.NotRecorded, match="bytes, and 10 is the most"):
        recording.record(scenario_of(tree))


def test_figures_of_an_uncommitted_tree_are_refused(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    program = tmp_path / "program"
    subprocess.run([*git[:3], "init", "-q"], check=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page").write_text("one")
    (tmp_path / "source").write_text("one")
    subprocess.run([*git, "add", "docs", "source"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    monkeypatch.setattr(recording, "ROOT", tmp_path)
    commit = recording._git("rev-parse", "--short=12", "HEAD")
    program.write_text(f'#!/bin/sh\necho "stratagem 0 ({commit}, Release), LibTorch 2"\n')
    program.chmod(0o755)
    assert recording.why_not_traceable(program) is None
    (tmp_path / "docs" / "page").write_text("two")
    assert recording.why_not_traceable(program) is None
    (tmp_path / "source").write_text("two")
    assert "the tree has changes" in recording.why_not_traceable(program)
    subprocess.run([*git, "commit", "-qam", "second"], check=True)
    assert f"program is of commit {commit}: build it again" in recording.why_not_traceable(program)


def test_a_program_that_is_not_built_or_names_no_commit_is_refused(tmp_path, monkeypatch):
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)
    monkeypatch.setattr(recording, "ROOT", tmp_path)
    assert recording.why_not_traceable(tmp_path / "program") == "program is not built"
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o755)
    assert recording.why_not_traceable(tmp_path / "program") == "program is not built"
    monkeypatch.setattr(recording, "ROOT", tmp_path / "nowhere")
    assert recording.why_not_traceable(tmp_path / "program").startswith("git cannot tell")


def test_the_command_names_a_scenario_that_there_is_not():
    run = subprocess.run(
        [sys.executable, ROOT / "tools" / "figures", "nothing"], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert run.stderr.startswith("tools/figures: unknown scenario nothing; choices: main_job, ")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["tools/figures", "tools/peers/compare"])
def test_the_packages_are_those_of_another_python(command):
    """Without its own packages (-S), this Python starts the one that STRATAGEM_PYTHON names."""

    def listed(python):
        words = [sys.executable, "-S", ROOT / command, "--list"]
        return subprocess.run(
            words, env={**os.environ, "STRATAGEM_PYTHON": str(python)}, timeout=60,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert listed(sys.executable).returncode == 0
    for wrong in ("/bin/ls", "/nowhere/python"):
        run = listed(wrong)
        assert run.returncode == 2
        assert run.stderr.count("\n") == 1
        assert f"{wrong} is not a Python that has the package " in run.stderr
        assert "STRATAGEM_PYTHON" in run.stderr


def test_a_long_description_of_a_picture_keeps_whole_values():
    words = "Bars. " + "; ".join(f"row {number}: 1 s" for number in range(40))
    short = pages.shortened(words)
    assert short.endswith("; and further rows in the recorded file.")
    assert words.startswith(short.removesuffix(" and further rows in the recorded file."))
    assert pages.shortened("Bars. row 1: 1 s") == "Bars. row 1: 1 s"
