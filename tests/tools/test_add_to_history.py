"""tools/add_to_history against a remote repository in a folder."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from comparison_documents import document, launches
from schema_validation import expect_valid

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
STRATAGEM = """#!/bin/sh
PYTHONPATH={reports} exec {python} -m stratagem_reports "$@"
"""


def git(folder, *words):
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *words], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def tree(tmp_path):
    """A clone with the script and a build, and its origin."""
    origin, clone = tmp_path / "origin.git", tmp_path / "clone"
    subprocess.run(["git", "init", "--quiet", "--bare", str(origin)], check=True)
    subprocess.run(
        ["git", "clone", "--quiet", str(origin), str(clone)], check=True, capture_output=True
    )
    shutil.copytree(ROOT / "tools" / "setup", clone / "tools" / "setup")
    shutil.copy(ROOT / "tools" / "add_to_history", clone / "tools")
    program = clone / "build" / "bin" / "stratagem"
    program.parent.mkdir(parents=True)
    program.write_text(STRATAGEM.format(reports=ROOT / "reports", python=sys.executable))
    os.chmod(program, 0o755)
    git(clone, "add", "tools")
    git(clone, "commit", "--quiet", "--message", "tools")
    return clone


def add(tree, day, time_ms, commit, **own):
    results = document({"single/mlp": launches([time_ms] * 3, **own)}, commit=commit)
    results["context"]["date"] = f"2026-01-{day:02}T03:00:00+00:00"
    path = tree.parent / f"results{day}.json"
    path.write_text(json.dumps(results), encoding="utf-8")
    return subprocess.run(
        [tree / "tools" / "add_to_history", path, "history", tree.parent / "report"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def lines(tree):
    names = git(tree.parent / "origin.git", "ls-tree", "--name-only", "history").split()
    assert len(names) == 1, names
    written = git(tree.parent / "origin.git", "show", f"history:{names[0]}").splitlines()
    for line in written:
        expect_valid("history", json.loads(line))
    return written


def test_the_branch_is_made_and_grows_and_nothing_stays_behind(tree):
    for day in (1, 2):
        done = add(tree, day, 100.0, f"{day:040}")
        assert done.returncode == 0, done.stderr
        assert len(lines(tree)) == day
    assert (tree.parent / "report" / "trend.md").read_text(encoding="utf-8").startswith("| row")
    assert git(tree, "worktree", "list").count("\n") == 1
    assert git(tree, "branch", "--list", "new-*") == ""
    assert git(tree, "status", "--short").split() == ["??", "build/"]


def test_an_unknown_metric_is_refused_before_the_push(tree):
    results = add(tree, 1, 100.0, "a" * 40).args[1]
    before = lines(tree)
    script = tree / "tools" / "add_to_history"
    done = subprocess.run(
        [script, results, "history", tree.parent / "report", "step_msec"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "no run has the metric 'step_msec'" in done.stderr
    assert lines(tree) == before
    done = subprocess.run(
        [script, results, "other", tree.parent / "report", "step_msec"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "other" not in git(tree.parent / "origin.git", "branch", "--list")


def test_a_run_whose_launches_were_all_disturbed_is_kept(tree):
    done = add(tree, 1, 100.0, "a" * 40, marks=["disturbed"])
    assert done.returncode != 0 and "was marked (disturbed)" in done.stderr  # no trend yet
    assert len(lines(tree)) == 1


def test_wrong_usage_and_a_remote_that_is_away_are_one_line(tree):
    script = tree / "tools" / "add_to_history"
    done = subprocess.run([script, "one"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    shutil.rmtree(tree.parent / "origin.git")
    done = add(tree, 1, 100.0, "a" * 40)
    assert done.returncode == 2
    assert "branch history: could not be pushed to origin" in done.stderr
