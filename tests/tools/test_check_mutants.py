"""tools/check_mutants on a tiny project whose compiler and linker are shell scripts, and the
project's own mutants: each still applies, and names tests that exist."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

import mutant_list  # noqa: E402
from mutant_list import MutantError  # noqa: E402

MUTANTS = mutant_list.read_mutants(ROOT / "tests" / "mutants")
# Copies its input, with what that includes, to its output.
COMPILER = """#!/bin/bash
while (($#)); do case $1 in
  -o) out=$2 ;;
  -c) in=$2 ;;
esac; shift; done
case $in in
  */Unity/*|*/unity*) files=$(sed -n 's/#include "\\(.*\\)"/\\1/p' "$in") ;;
  *) files=$in ;;
esac
if grep -q 'does not compile' $files; then echo "error: $files"; exit 1; fi
cat $files >"$out"
"""
# A program is its objects one after the other; of an archive only what is not there yet.
LINKER = """#!/bin/bash
files=()
while (($#)); do case $1 in
  -o) out=$2; shift ;;
  *.a) grep -q '^value()' "${files[@]}" || files+=("$1") ;;
  *) files+=("$1") ;;
esac; shift; done
{ echo '#!/bin/bash'; cat "${files[@]}"; } >"$out"
chmod +x "$out"
"""
# The tiny program's one test, chosen by the first argument.
MAIN = """main() {
  if [[ $1 != --gtest_filter=Sum.IsRight ]]; then
    echo 'Running 0 tests from 0 test suites.'
    return 0
  fi
  echo '[ RUN      ] Sum.IsRight'
  if [[ $(value) == 3 && $(other) == 4 ]]; then
    echo '[  PASSED  ] 1 test.'
  else
    echo '[  FAILED  ] Sum.IsRight (0 ms)'
    return 1
  fi
}
"""
SOURCES = {
    "main.cpp": MAIN,
    "value.cpp": "value() { echo 3; }\n",
    "other.cpp": "other() { echo 4; }\n",
    "last.cpp": 'main "$@"\n',
    "sum.py": "def total(values):\n    return sum(values)\n",
    "tests/test_sum.py": (
        "import sum\n\ndef test_total():\n    assert sum.total([1, 2]) == 3\n\n"
        "def test_nothing():\n    pass\n"
    ),
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    ".gitignore": "/build/\n",
}


def mutant(name="wrong_value", **changes):
    return {
        "name": name, "what": "The value is wrong.", "file": "value.cpp", "find": "echo 3",
        "replace": "echo 5", "tests": ["core Sum.IsRight"], **changes,
    }  # fmt: skip


def write_mutants(folder, *mutants):
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(
        "[[mutant]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in one.items())
        for one in mutants
    )
    (folder / "group.toml").write_text(text)


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class Project:
    """A repository with a build of one program, whose `value` is in an archive."""

    def __init__(self, folder):
        self.root = folder / "project"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.tools = folder / "tools"
        for name, text in SOURCES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        for name, text in (("c++", COMPILER), ("ld", LINKER), ("ar", '#!/bin/sh\ncp "$2" "$1"\n')):
            program(self.tools / name, text)
        self._build()
        commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]
        for words in (["init", "-q"], ["add", "."], commit):
            subprocess.run(["git", *words], cwd=self.root, check=True)

    def _build(self):
        """Compiles two sources as one unit, and puts the value into an archive."""
        build = self.root / "build"
        unit = build / "Unity" / "unity_0_cxx.cxx"
        unit.parent.mkdir(parents=True)
        lines = [f'#include "{self.root / name}"\n' for name in ("main.cpp", "other.cpp")]
        unit.write_text("".join(lines))
        (build / "bin").mkdir()
        compiler = self.tools / "c++"
        sources = {"unit.o": unit}
        sources |= {f"{name}.o": self.root / f"{name}.cpp" for name in ("value", "last")}
        compiles = {name: f"{compiler} -O3 -o {name} -c {file}" for name, file in sources.items()}
        archive = f": && {self.tools / 'ar'} libvalue.a value.o && touch libvalue.a && :"
        link = f"{self.tools / 'ld'} unit.o libvalue.a last.o -o bin/core"
        commands = [*compiles.values(), archive, f": && {link} && echo done"]
        for line in commands:
            subprocess.run(line, shell=True, cwd=build, check=True, stdout=subprocess.DEVNULL)
        (build / "compile_commands.json").write_text(json.dumps([
            {"directory": str(build), "command": compiles[name], "file": str(file)}
            for name, file in sources.items()
        ]))
        (build / "commands").write_text("\n".join(commands) + "\n")
        program(self.tools / "ninja", f"#!/bin/sh\ncat {build / 'commands'}\n")

    def start(self, *arguments):
        code = "import sys, pathlib, check_mutants as c; " \
               "sys.exit(c.main(sys.argv[2:], pathlib.Path(sys.argv[1])))"
        return subprocess.Popen(
            [sys.executable, "-c", code, self.root, "--jobs", "2", *map(str, arguments)],
            env={**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}",
                 "PYTHONPATH": str(ROOT / "tests" / "mutants"), "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def check(self, *mutants, options=()):
        """The exit code and the lines printed; nothing may be left behind or changed."""
        write_mutants(self.root / "tests" / "mutants", *mutants)
        before = self.contents()
        process = self.start(*options)
        printed, _ = process.communicate(timeout=60)
        assert not list(self.temporary.iterdir())
        assert self.contents() == before
        return process.returncode, printed.splitlines()

    def contents(self):
        return {
            path: (path.stat().st_mtime_ns, path.read_bytes())
            for path in self.root.rglob("*")
            if path.is_file() and ".git" not in path.parts
        }


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_a_mutant_is_killed_in_an_archive_in_a_unit_and_in_python(project):
    code, lines = project.check(
        mutant(),
        mutant("wrong_other", file="other.cpp", find="echo 4", replace="echo 3"),
        mutant("wrong_sum", file="sum.py", find="return sum(values)", replace="return 0",
               tests=["pytest tests/test_sum.py"]),
    )  # fmt: skip
    assert code == 0, lines
    killed = sorted(line.partition(" (")[0] for line in lines if line.startswith("killed"))
    assert killed == [
        "killed    wrong_other: by Sum.IsRight",
        "killed    wrong_sum: by tests/test_sum.py::test_total",
        "killed    wrong_value: by Sum.IsRight",
    ]
    assert lines[-2] == "mutants: 3 killed, 0 survived"
    assert lines[-1].startswith("total time: ")


def test_a_survivor_is_named_with_the_test_that_still_passes(project):
    code, lines = project.check(
        mutant(find="echo 3", replace="echo $((1 + 2))"),
        mutant("killed_by_one", file="sum.py", find="return sum(values)", replace="return 0",
               tests=["pytest tests/test_sum.py::test_total",
                      "pytest tests/test_sum.py::test_nothing"]),
    )  # fmt: skip
    assert code == 1
    assert lines[-2] == "mutants: 0 killed, 2 survived"
    text = "\n".join(lines)
    assert "  wrong_value                      value.cpp: The value is wrong." in text
    assert "still passes: core Sum.IsRight" in text
    assert "still passes: pytest tests/test_sum.py::test_nothing" in text
    assert "still passes: pytest tests/test_sum.py::test_total" not in text


def test_a_crash_and_a_time_limit_kill_and_are_named_so(project):
    code, lines = project.check(
        mutant("crashes", replace="kill -ABRT $$"),
        mutant("hangs", replace="sleep 100"),
        options=["--test-limit", 2],
    )
    assert code == 0, lines
    text = "\n".join(lines)
    assert "crashes: by crash (SIGABRT) in Sum.IsRight" in text
    assert "hangs: by time limit in Sum.IsRight" in text


@pytest.mark.parametrize(("changes", "words"), [
    ({"find": "echo 4"}, "mutant wrong_value: the text occurs 0 times in value.cpp, not once"),
    ({"find": "e"}, "mutant wrong_value: the text occurs 2 times in value.cpp, not once"),
    ({"tests": ["core Sum.IsLost"]}, "core Sum.IsLost selects no test"),
    ({"tests": ["pytest tests/test_sum.py::test_lost"], "file": "sum.py", "find": "return"},
     "pytest tests/test_sum.py::test_lost selects no test"),
    ({"tests": ["absent Sum.IsRight"]}, "there is no absent in the build"),
    ({"replace": "does not compile"}, "value.cpp does not compile"),
])  # fmt: skip
def test_what_cannot_be_tried_is_an_error(project, changes, words):
    code, lines = project.check(mutant(**changes))
    assert code == 1
    assert words in "\n".join(lines)
    assert lines[-2] == "mutants: 0 killed, 0 survived, 1 could not be tried"


def test_a_test_that_fails_without_the_mutant_is_an_error(project):
    (project.root / "tests" / "test_sum.py").write_text("def test_total():\n    assert False\n")
    code, lines = project.check(
        mutant(file="sum.py", find="return sum(values)", replace="return 0",
               tests=["pytest tests/test_sum.py"])
    )  # fmt: skip
    assert code == 1
    assert "pytest tests/test_sum.py fails without a mutant" in "\n".join(lines)


def test_a_program_older_than_the_source_is_an_error(project):
    os.utime(project.root / "value.cpp", (time.time() + 100,) * 2)
    code, lines = project.check(mutant())
    assert code == 1
    assert "core is older than value.cpp" in "\n".join(lines)


def test_an_interrupt_ends_everything_and_leaves_nothing(project):
    write_mutants(project.root / "tests" / "mutants", mutant(replace=f"sleep 1234.{os.getpid()}"))
    process = project.start()
    end = time.monotonic() + 30
    while not (sleeping := running(f"1234.{os.getpid()}")):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode != 0
    assert not list(project.temporary.iterdir())
    while any(Path(f"/proc/{number}").exists() for number in sleeping):
        assert time.monotonic() < end
        time.sleep(0.05)


def running(argument):
    """The processes with this argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if argument.encode() in words:
            found.append(path.parent.name)
    return found


def test_names_patterns_and_samples_choose(project):
    mutants = [mutant(f"{kind}_{number}") for kind in ("one", "two") for number in range(5)]

    def listed(*options):
        code, lines = project.check(*mutants, options=["--list", *options])
        assert code == 0
        return [line.split()[0] for line in lines]

    assert len(listed()) == 10
    assert listed("one_3", "two_*") == ["one_3", *(f"two_{number}" for number in range(5))]
    assert listed("--sample", 3, "--seed", "a") == listed("--sample", 3, "--seed", "a")
    assert len(listed("--sample", 3)) == 3
    samples = [set(listed("--sample", 3, "--seed", seed)) for seed in "abcdefgh"]
    assert len(set().union(*samples)) > 6
    code, lines = project.check(*mutants, options=["three_*"])
    assert (code, len(lines)) == (2, 1) and "no mutant is named three_*" in lines[0]


def test_a_sample_has_few_mutants_that_are_slow_to_compile():
    def listed(slow, quick):
        kinds = (("slow", "unit_tests_torch", slow), ("quick", "core", quick))
        return [
            mutant_list.Mutant(f"{kind}_{number}", "", "", "", "", (f"{program} A.B",))
            for kind, program, count in kinds
            for number in range(count)
        ]

    for slow, quick, expected in ((9, 9, 2), (9, 2, 3), (1, 9, 1), (0, 9, 0)):
        chosen = mutant_list.sample(listed(slow, quick), 5, "seed")
        assert len(chosen) == 5
        assert sum(one.slow for one in chosen) == expected
    assert len(mutant_list.sample(listed(2, 1), 5, "seed")) == 3


@pytest.mark.parametrize(("mutants", "words"), [
    ([mutant(), mutant()], "a second mutant is named wrong_value"),
    ([mutant("Wrong")], "not in snake_case"),
    ([mutant(replace="echo 3")], "changes nothing"),
    ([mutant(file="value.txt")], "no .cpp, .h or .py file"),
    ([mutant(tests=[])], "no test"),
    ([mutant(tests=["core"])], "expected \"PROGRAM GTEST_FILTER\""),
    ([mutant(tests="core Sum.IsRight")], "tests is a list"),
    ([{"name": "short"}], "expected name, what, file, find, replace, tests"),
])
def test_a_wrong_entry_is_one_line(tmp_path, mutants, words):
    write_mutants(tmp_path, *mutants)
    with pytest.raises(MutantError) as caught:
        mutant_list.read_mutants(tmp_path)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_help_is_the_comment_at_the_top():
    done = subprocess.run([ROOT / "tools/check_mutants", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--sample N" in done.stdout


@pytest.mark.parametrize("options", [["--sample", "0"], ["--jobs", "x"], ["--nonsense"]])
def test_a_wrong_option_is_one_line_and_exit_2(project, options):
    code, lines = project.check(mutant(), options=options)
    assert code == 2 and len(lines) == 1 and "see tools/check_mutants --help" in lines[0]


@pytest.mark.parametrize("own", MUTANTS, ids=lambda own: own.name)
def test_a_mutant_of_the_project_applies_and_names_tests_that_exist(own):
    own.broken((ROOT / own.file).read_text(encoding="utf-8"))
    assert re.fullmatch(r"[A-Z].*\.", own.what), "what: one sentence"
    for test in own.tests:
        first, *rest = test.split()
        for node in rest:
            if first == "pytest":
                path, *names = node.split("::")
                text = (ROOT / path).read_text(encoding="utf-8")
                assert all(f"def {name.partition('[')[0]}(" in text for name in names), node
            else:
                assert any(has_tests(text, node) for text in cpp_tests()), test


def cpp_tests():
    return [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*_test.cpp")]


def has_tests(text, pattern):
    """Whether the source defines the test of each part of the filter, as Suite.Name in it."""
    names = [re.search(r"([A-Za-z0-9]+)\.(\w+|\*)", part) for part in pattern.split(":")]
    return any(
        name and re.search(rf"\bT\w*EST\w*\(\s*{name[1]},\s*{name[2].strip('*')}", text)
        for name in names
    )
