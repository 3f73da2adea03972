"""tools/check_google_benchmark on a tree of one source and a clone of two releases."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = """\
rule compile
  command = c++ -std=c++20 -MD -MF $out.d -o $out -c $in
  deps = gcc
  depfile = $out.d
build known.o: compile ../known.cpp
build other.o: compile ../other.cpp
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the script, and a build of two sources, of which one includes the library."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "tools" / "setup", tree / "tools" / "setup")
    shutil.copy(ROOT / "tools" / "check_google_benchmark", tree / "tools")
    (tree / "build").mkdir()
    (tree / "build" / "build.ninja").write_text(BUILD)
    (tree / "known.cpp").write_text("#include <benchmark/benchmark.h>\n")
    (tree / "other.cpp").write_text("int other;\n")
    subprocess.run(["ninja", "-C", tree / "build"], check=True, capture_output=True, timeout=120)
    return tree


def clone(folder: Path, headers: dict[str, str]) -> Path:
    """A repository with such a header by tag."""

    def git(*arguments: str) -> None:
        own = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "include" / "benchmark").mkdir(parents=True)
    git("init")
    for tag, header in headers.items():
        (folder / "include" / "benchmark" / "benchmark.h").write_text(header)
        git("add", "--all")
        git("commit", "--message", tag)
        git("tag", tag)
    return folder


def check(tree: Path, clone: Path) -> subprocess.CompletedProcess:
    script = tree / "tools" / "check_google_benchmark"
    return subprocess.run([script, clone], capture_output=True, text=True, timeout=120)


def test_names_the_release_whose_headers_do_not_do(tree: Path, tmp_path: Path) -> None:
    headers = {"v1.5.0": "#error old", "v1.6.0": "", "v1.8.0": "#error renamed"}
    result = check(tree, clone(tmp_path / "clone", headers))
    assert result.returncode == 1
    assert "v1.6.0: 1 sources compile" in result.stderr
    assert "#error renamed" in result.stderr
    assert result.stderr.splitlines()[-1] == (
        "tools/check_google_benchmark: the headers of v1.8.0 do not do: see above"
    )


def test_all_releases_do(tree: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (tree / "build").iterdir()}
    result = check(tree, clone(tmp_path / "clone", {"v1.9.0": "", "v1.10.0": "#error later"}))
    assert result.returncode == 0, result.stderr
    assert result.stderr == "v1.9.0: 1 sources compile\n"
    assert {path: path.stat().st_mtime_ns for path in (tree / "build").iterdir()} == before


def test_a_clone_without_releases_is_one_line_and_exit_2(tree: Path, tmp_path: Path) -> None:
    folder = clone(tmp_path / "clone", {"v1.5.0": ""})
    result = check(tree, folder)
    assert result.returncode == 2
    assert result.stderr == (
        f"tools/check_google_benchmark: {folder}: no tags of releases 1.6 to 1.9; fetch them\n"
    )


def test_a_clone_that_does_not_exist_is_one_line_and_exit_2(tree: Path, tmp_path: Path) -> None:
    result = check(tree, tmp_path / "nowhere")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1 and "nowhere: no such folder" in result.stderr
