"""Breaks the program by a mutant and runs the tests that must notice it.

All that is written goes into a temporary folder: a copy of the tree as it stands, and a folder for
each mutant.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mutant_build import Build
from mutant_list import Mutant, MutantError
from processes import Done, Processes

TEST_LIMIT_S = 120.0
_NOTHING_COLLECTED = (4, 5)  # pytest's exit codes of a wrong node, and of none
_COUNTED_PASSES = re.compile(r"\[  PASSED  \] ([1-9]\d*) test|\b([1-9]\d*) passed\b")
_FAILED_TEST = re.compile(r"^(?:\[  FAILED  \]|FAILED|ERROR) (\S+?)[,.]?(?: .*)?$", re.MULTILINE)
_STARTED_TEST = re.compile(r"^\[ RUN      \] (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Places:
    """Where the code lies: the project's root, and a copy of its files with links to the build."""

    root: Path
    tree: Path


def git(root: Path) -> list[str]:
    """How to ask Git about the tree, whoever owns it."""
    return ["git", "-c", f"safe.directory={root}", "-C", str(root)]


def copy_tree(root: Path, to: Path) -> Places:
    """Copies every file of the tree that git does not ignore."""
    listed = subprocess.run(
        [*git(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    for name in ("build", ".venv"):
        (to / name).symlink_to(root / name)
    return Places(root, to)


class Trials:
    """Runs tests, on the right program and on broken ones."""

    def __init__(
        self,
        places: Places,
        build: Build,
        processes: Processes,
        folder: Path,
        limit_s: float = TEST_LIMIT_S,
    ) -> None:
        self._places = places
        self._build = build
        self._processes = processes
        self._folder = folder
        self._limit_s = limit_s

    def expect_pass(self, test: str) -> None:
        """MutantError unless the test runs and passes on the program as it is."""
        folder = self._new_folder()
        program, *_ = test.split()
        if program != "pytest" and not (self._build.programs / program).is_file():
            raise MutantError(f"{test}: there is no {program} in the build")
        done = self._run(test, folder, self._places.tree, self._build.programs)
        if done.code != 0:
            raise MutantError(f"{test} fails without a mutant:\n{done.output[-2000:]}")
        if not _COUNTED_PASSES.search(done.output):
            raise MutantError(f"{test}: every test is skipped")

    def try_mutant(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """What failed in each test that noticed the mutant, and the tests that did not."""
        text = mutant.broken((self._places.tree / mutant.file).read_text(encoding="utf-8"))
        folder = self._new_folder()
        try:
            if mutant.file.endswith(".py"):
                tree, programs = self._python(mutant, text, folder), self._build.programs
            else:
                tree, programs = self._places.tree, self._cpp(mutant, text, folder)
            killed, survived = [], []
            for test in mutant.tests:
                failure = failure_in(test, self._run(test, folder, tree, programs))
                (survived if failure is None else killed).append(failure or test)
            return killed, survived
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        """Of a short name: sockets below it have a limit for their paths."""
        return Path(tempfile.mkdtemp(prefix="", dir=self._folder))

    def _python(self, mutant: Mutant, text: str, folder: Path) -> Path:
        """A tree of links to the copy's files, with the broken one."""
        if any(not test.startswith("pytest ") for test in mutant.tests):
            raise MutantError(f"mutant {mutant.name}: only pytest can test {mutant.file}")
        tree = folder / "tree"
        shutil.copytree(self._places.tree, tree, symlinks=True, copy_function=os.link,
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
        (tree / mutant.file).unlink()
        (tree / mutant.file).write_text(text, encoding="utf-8")
        return tree

    def _cpp(self, mutant: Mutant, text: str, folder: Path) -> Path:
        """A folder of programs of which those that the tests start have the fault."""
        source = self._places.root / mutant.file
        includes = folder / "i"
        broken = includes / mutant.file
        broken.parent.mkdir(parents=True)
        broken.write_text(text, encoding="utf-8")
        names = {test.split()[0] for test in mutant.tests}
        if "pytest" in names:
            names.remove("pytest")
            names |= {
                path.name
                for path in self._build.programs.glob("stratagem*")
                if self._build.contains(path.name, source)
            }
        self._expect_up_to_date(mutant, source, names)
        programs = folder / "build" / "bin"
        programs.mkdir(parents=True)
        for path in self._build.programs.iterdir():
            if path.name == "stratagem" and path.name not in names:
                shutil.copy2(path, programs)  # it starts the programs in its own folder
            elif path.name not in names:
                (programs / path.name).symlink_to(path)
        linked = {name: programs / name for name in sorted(names)}
        self._build.link_broken(linked, source, broken, includes)
        # A program finds Python and the reports from its own place.
        for name in (".venv", "reports"):
            (folder / name).symlink_to(self._places.tree / name)
        return programs

    def _expect_up_to_date(self, mutant: Mutant, source: Path, programs: set[str]) -> None:
        if not programs:
            raise MutantError(f"mutant {mutant.name}: no program is linked with {mutant.file}")
        for name in programs:
            path = self._build.programs / name
            if not path.is_file():
                raise MutantError(f"mutant {mutant.name}: there is no {name} in the build")
            if path.stat().st_mtime < source.stat().st_mtime:
                raise MutantError(f"mutant {mutant.name}: {name} is older than {mutant.file}")

    def _run(self, test: str, folder: Path, tree: Path, programs: Path) -> Done:
        program, *words = test.split()
        own = {"TMPDIR": folder / "t", "XDG_CACHE_HOME": folder / "c"}
        for path in own.values():
            path.mkdir(exist_ok=True)
        environment = {
            **{key: value for key, value in os.environ.items() if not _changes_tests(key)},
            **{key: str(path) for key, path in own.items()},
            "STRATAGEM_BIN": str(programs),
        }
        if program == "pytest":
            options = ["-q", "--exitfirst", "-p", "no:cacheprovider"]
            command = [sys.executable, "-m", "pytest", *options, *words]
        else:
            options = [f"--gtest_filter={words[0]}", "--gtest_fail_fast"]
            command = [str(programs / program), *options]
        done = self._processes.run(command, tree, environment, self._limit_s)
        if _ran_nothing(program, done):
            raise MutantError(f"{test} selects no test:\n{done.output[-1000:]}")
        return done


def _ran_nothing(program: str, done: Done) -> bool:
    if program == "pytest":
        return done.code in _NOTHING_COLLECTED
    return "Running 0 tests" in done.output


def _changes_tests(variable: str) -> bool:
    return variable.startswith(("GTEST_", "PYTEST_", "STRATAGEM_"))


def failure_in(test: str, done: Done) -> str | None:
    """How the test failed, in a few words; None where it passed."""
    if done.code == 0:
        return None
    started = _STARTED_TEST.findall(done.output)
    last = started[-1] if started else test
    if done.code is None:
        return f"time limit in {last}"
    if done.code < 0:
        return f"crash ({signal.Signals(-done.code).name}) in {last}"
    failed = _FAILED_TEST.findall(done.output)
    return failed[0] if failed else f"exit code {done.code} of {test}"
