"""The scripts refuse a wrong argument in one line, with exit code 2, before they do any work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Programs with which the scripts' work begins.
WORKERS = ("apt-get", "clang-tidy", "cmake", "dpkg-query", "mmdebstrap", "pip", "sudo", "unshare")
REHEARSE = ("tools/gpu_check", "--rehearse")
MUTANTS = ("tools/check_mutants", "--build")


@pytest.fixture
def refused(tmp_path):
    """Runs a script that has to refuse its arguments; returns what it prints about them."""
    calls = tmp_path / "calls"
    for name in WORKERS:
        stub = tmp_path / "bin" / name
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(f'#!/bin/sh\necho "{name} $*" >>"{calls}"\nexit 9\n')
        stub.chmod(0o755)

    def run(script, *arguments, code=2):
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [ROOT / script, *arguments],
            env={**os.environ, "PATH": path, "STRATAGEM_PYTHON": sys.executable},
            cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert not calls.exists(), calls.read_text()
        return done.stderr.removesuffix("\n")

    return run


@pytest.mark.parametrize(("arguments", "words"), [
    (("tools/run", "rnu"), "tools/run: unknown subcommand rnu; choices: list, run, train, verify, "),
    (("tools/run", "help", "rnu"), "tools/run: unknown subcommand rnu; choices: "),
    (("tools/run", "bench_nothing"), "tools/run: unknown benchmark bench_nothing"),
    (("tools/run", "--torch", "new", "list"), "tools/run: --torch new: expected a version such as 2."),
    (("tools/run", "--index-url", "x", "list"), "tools/run: --index-url x: expected a URL, or a folder"),
    (("tools/test", "test_nothing"), "tools/test: unknown argument test_nothing"),
    (("tools/test", "--quick", "--night"), "tools/test: --quick and --night exclude each other"),
    (("tools/test", "--torch", "new"), "tools/test: --torch new: expected a version"),
    (("tools/test", "--durations", "--most", "0"), "durations.py: argument --most: 0 is not a whole"),
    (("tools/test", "--durations", "--all"), "durations.py: unrecognized arguments: --all"),
    ((*REHEARSE, "--minutes", "x"), "tools/gpu_check: argument --minutes: x: expected a number"),
    ((*REHEARSE, "--only", "("), "tools/gpu_check: argument --only: ( is not a regular"),
    ((*REHEARSE, "--out-dir", "/dev/null/x"), "tools/gpu_check: --out-dir /dev/null/x: cannot be made"),
    ((*REHEARSE, "--programs", "nowhere"), "tools/gpu_check: --programs nowhere: no such folder"),
    (("tools/fresh_machine", "--nonsense"), "tools/fresh_machine: unknown argument --nonsense"),
    (("tools/fresh_machine", "--suite", "12"), "tools/fresh_machine: --suite 12: expected a release"),
    (("tools/fresh_machine", "--folder", "nowhere"), "tools/fresh_machine: nowhere: no such folder"),
    ((*MUTANTS, "--sample", "0"), "tools/check_mutants: argument --sample: "),
    ((*MUTANTS, "no_such_mutant"), "tools/check_mutants: no mutant is named no_such_mutant"),
    (("tools/check_format", "--fix", "more"), "tools/check_format: unknown argument more"),
    (("tools/check_tidy", "--list", "more"), "tools/check_tidy: unknown argument more"),
    (("tools/check_google_benchmark", ".", "more"), "tools/check_google_benchmark: unknown argument more"),
    (("tools/add_to_history", "nowhere/file", "b", "f"), "tools/add_to_history: nowhere/file: no such"),
    (("tools/add_to_history", __file__, "a..b", "f"), "tools/add_to_history: a..b: no name for a branch"),
    (("tools/figures", "--nonsense"), "tools/figures: unrecognized arguments: --nonsense"),
])  # fmt: skip
def test_a_wrong_argument_is_one_line_and_exit_2(refused, arguments, words):
    assert refused(*arguments).startswith(words)


def test_sections_that_match_nothing_are_reported_before_the_set_up(refused):
    assert "--only nothing: matches no section" in refused(*REHEARSE, "--only", "nothing", code=3)


def test_a_release_that_cannot_be_made_is_named(tmp_path):
    """As root with namespaces, where mmdebstrap fails as it does for an unknown release."""
    only_namespaces = 'for word; do [ "$word" != true ] || exit 0; done; exit 25'
    stubs = {"id": "echo 0", "unshare": only_namespaces, "mmdebstrap": "exit 25", "pkill": "exit 1"}
    for name, body in stubs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [ROOT / "tools/fresh_machine", "--suite", "nosuch", "--folder", tmp_path],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "tools/fresh_machine: --suite nosuch: mmdebstrap could not make this Debian: see above"
    )
    assert not list(tmp_path.glob("fresh_machine.*"))
