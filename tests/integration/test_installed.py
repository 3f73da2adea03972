"""The subcommands in Python, from an installed tree that was moved."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "approved" / "measured_results.json"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    before, prefix = folder / "before", folder / "moved"
    words = ["cmake", "--install", ROOT / "build", "--component", "reports", "--prefix", before]
    subprocess.run(words, check=True, capture_output=True)
    (before / "bin").mkdir()
    shutil.copy(ROOT / "build" / "bin" / "stratagem", before / "bin")
    before.rename(prefix)
    return prefix


def stratagem(prefix: Path, *arguments, **variables) -> subprocess.CompletedProcess:
    environment = {name: text for name, text in os.environ.items() if name != "STRATAGEM_PYTHON"}
    return subprocess.run(
        [prefix / "bin" / "stratagem", *map(str, arguments)],
        env=environment | variables, cwd=prefix, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["schema"], '"$schema"'),
        (["compare", RESULTS, RESULTS], "Verdict"),
        (["history", "add", RESULTS, "--commit", "c0ffee", "--dir", "past"], "past: added"),
        (["report", RESULTS, "--format", "csv", "--out-dir", "pages"], "report.csv"),
        pytest.param(
            ["report", RESULTS, "--out-dir", "pages"], "report.html", marks=pytest.mark.night
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_each_subcommand_in_python_works(installed, arguments, words):
    done = stratagem(installed, *arguments)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout


def test_without_the_packages_the_error_has_the_commands_that_install_them(installed, tmp_path):
    place = installed / "share" / "stratagem"
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nPYTHONPATH={place}/reports exec /usr/bin/env python3 -S "$@"\n')
    bare.chmod(0o755)
    done = stratagem(installed, "compare", RESULTS, RESULTS, STRATAGEM_PYTHON=str(bare))
    assert done.returncode == 2
    assert f"{place}/.venv/bin/python -m pip install -r {place}/requirements.txt" in done.stderr
    assert done.stderr.count("\n") == 1


# Prints what the shell offers for the last of the arguments; $SHELLS is the folder of the scripts.
COMPLETE = {
    "bash": r"""
        source "$SHELLS/stratagem.bash"; COMP_WORDS=(stratagem "$@"); COMP_CWORD=$#
        _stratagem; printf '%s\n' "${COMPREPLY[@]}"
    """,
    "zsh": r"""
        zmodload zsh/zpty; zpty shell zsh -f -i; ln -s "$SHELLS/stratagem.zsh" _stratagem
        zpty -w shell 'fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D
            show() print -r "line=${(q)BUFFER}="; zle -N show; bindkey "^X" show'
        zpty -w -n shell "stratagem $*"$'\t\x18'; zpty -r shell shown '*line=stratagem*=*'
        line=${${shown##*line=}%%=*}; print -r -- ${${=${(Q)line}}[-1]}
    """,
    "fish": 'source "$SHELLS/stratagem.fish"; complete -C "stratagem $argv"',
}


def completed(shell: str, words: list[str], folder: Path) -> list[str]:
    """Return what the shell's completion offers for the last word."""
    path = f"{ROOT / 'build' / 'bin'}:{os.environ['PATH']}"
    name = [] if shell == "fish" else ["name"]
    done = subprocess.run(
        [shell, "-c", COMPLETE[shell], *name, *words], cwd=folder, timeout=60, check=True,
        env={**os.environ, "PATH": path, "HOME": str(folder), "SHELLS": str(ROOT / "tools" / "shell")},
        capture_output=True, text=True,
    )  # fmt: skip
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["co"], ["compare"]),
        (["run", "--split"], ["--split-size"]),
        (["compare", "--exact"], ["--exact-only"]),
        (["run", "--model", "resnet1"], ["resnet18"]),
        (["run", "--strategy", "single,pipe"], ["single,pipeline"]),
        (["run", "--schedule", "1"], ["1f1b"]),
    ],
    ids=lambda value: value[-1],
)
@pytest.mark.parametrize("shell", COMPLETE)
def test_the_shell_completes_subcommands_options_and_names(shell, words, offered, tmp_path):
    assert completed(shell, words, tmp_path) == offered


def test_shell_files_are_installed_and_removed(tmp_path):
    build = tmp_path / "build"
    build.mkdir()
    prefix = tmp_path / "prefix"
    words = ["cmake", "--install", ROOT / "build", "--component", "shell", "--prefix", prefix]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    files = sorted(path for path in prefix.rglob("*") if path.is_file())
    assert [path.name for path in files] == ["stratagem", "stratagem.fish", "stratagem.1", "_stratagem"]
    assert done.stdout.count("Installing:") == len(files)
    (build / "install_manifest_shell.txt").write_text("\n".join(map(str, files)))
    uninstall = ["cmake", f"-DFOLDER={build}", "-P", ROOT / "cmake" / "Uninstall.cmake"]
    subprocess.run(uninstall, check=True, capture_output=True)
    assert not [path for path in prefix.rglob("*") if path.is_file()]
    assert subprocess.run(uninstall, check=False, capture_output=True).returncode != 0
