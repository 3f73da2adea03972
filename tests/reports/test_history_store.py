"""The store of results over time: files, crashes, two writers, and lines that are refused."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from comparison_documents import document, launches
from stratagem_reports.history import store as store_module
from stratagem_reports.history.points import time_text, to_line
from stratagem_reports.history.store import append, file_name, load
from stratagem_reports.results.errors import InputError

import fixture_history
from fixture_history import ROW, START, contents, history, refused, runs, store

SINGLE = "single/resnet50/devices:1/batch:48/image:128"
PACKAGE = Path(store_module.__file__).parents[2]


def test_the_same_run_with_other_values_is_refused(tmp_path, capsys):
    folder = store(tmp_path / "history", runs(2))
    before = contents(folder)
    with pytest.raises(InputError, match="with other values"):
        append(folder, [*runs(1, "new/row"), *runs(2, seed=8)])
    assert contents(folder) == before


def test_file_names_are_safe_and_never_collide():
    names = ["a/b", "a%2Fb", "a b", "..", ".", "x" * 300, "x" * 301, "größe/ü", "a\x00b", "A"]
    files = [file_name(name) for name in names]
    assert len(set(files)) == len(names)
    assert all("/" not in file and len(file) < 200 and file.isprintable() for file in files)


def test_long_names_come_back_whole(tmp_path):
    name = "row/" + "option:1/" * 60
    assert {run.name for run in load(store(tmp_path / "h", runs(2, name)))} == {name}


def test_a_failed_write_cuts_back_what_was_written(tmp_path, monkeypatch):
    folder = store(tmp_path / "history", runs(3))
    before = contents(folder)
    write = os.write

    def full(descriptor, data):
        if b"second/row" in bytes(data):
            write(descriptor, data[:20])
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(store_module.os, "write", full)
    with pytest.raises(InputError, match="No space left on device; nothing was added"):
        append(folder, [*runs(1, first=3), *runs(1, "second/row")])
    assert contents(folder) == before


READING = (
    ["show"],
    ["trend"],
    ["export", "--format", "bencher"],
    ["trend", "--format", "json"],
    ["trend", "--format", "html", "--out-dir"],
)


@pytest.fixture
def torn(tmp_path):
    """A history in which a crash cut a file's fourth line short, and that file."""
    folder = store(tmp_path / "a history", runs(3), runs(2, SINGLE))
    path = folder / file_name(ROW)
    path.write_bytes(path.read_bytes() + to_line(runs(1, first=3)[0]).encode()[:100])
    return folder, path


def command_in(message: str, after: str) -> str:
    """The command that an error's line gives behind some words."""
    return message.split(after)[1].split(";")[0].strip()


@pytest.mark.parametrize("words", READING, ids="_".join)
def test_a_broken_last_line_stops_every_reader(torn, tmp_path, capsys, words):
    folder, path = torn
    before = contents(folder)
    out = [tmp_path / "out"] if words[-1] == "--out-dir" else []
    assert history(*words, *out, "--dir", folder) == 2
    message = refused(capsys, f"{path}: line 4: cut short, after 100 bytes")
    assert f"sed -i 4d '{path}'" in message
    assert contents(folder) == before
    assert not (tmp_path / "out").exists()


def test_a_broken_last_line_stops_export_before_it_overwrites(torn, tmp_path, capsys):
    out = tmp_path / "data.js"
    out.write_text("of an earlier run")
    words = ("export", "--format", "github-action-benchmark", "--out", out)
    assert history(*words, "--dir", torn[0]) == 2
    refused(capsys, "line 4")
    assert out.read_text() == "of an earlier run"


def test_a_broken_last_line_stops_writers(torn, tmp_path, capsys):
    folder, path = torn
    before = contents(folder)
    with pytest.raises(InputError, match=r"line 4: cut short.*sed -i 4d"):
        append(folder, [*runs(1, "new/row"), *runs(1, first=4)])
    source = tmp_path / "more.json"
    source.write_text(json.dumps(document({ROW: launches([100.0])}, commit="abc")))
    assert history("add", source, "--dir", folder, "--date", "2026-03-01") == 2
    refused(capsys, f"{path}: line 4: cut short")
    assert contents(folder) == before


def test_the_commands_of_the_error_mend_the_file(torn, capsys):
    folder, path = torn
    whole = b"".join(path.read_bytes().splitlines(keepends=True)[:3])
    history("show", "--dir", folder)
    remedy = command_in(refused(capsys, "line 4"), "remove it:")
    subprocess.run(remedy, shell=True, check=True)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-1])
    assert history("show", "--dir", folder) == 2
    remedy = command_in(refused(capsys, "line 3: whole, but without its end"), "add that:")
    subprocess.run(remedy, shell=True, check=True)
    assert path.read_bytes() == whole
    assert history("show", "--dir", folder) == 0


def test_repair_keeps_a_broken_last_line_aside(torn, capsys):
    folder, path = torn
    *whole, cut = path.read_bytes().splitlines(keepends=True)
    history("show", "--dir", folder)
    remedy = command_in(refused(capsys, "line 4"), "keep it aside: stratagem history")
    assert history(*shlex.split(remedy)) == 0
    assert "moved a broken last line of 100 bytes" in capsys.readouterr().out
    assert path.read_bytes() == b"".join(whole)
    assert path.with_name(path.name + ".broken").read_bytes() == cut + b"\n"
    append(folder, runs(1, first=4))
    assert history("repair", "--dir", folder) == 0
    assert "nothing to repair" in capsys.readouterr().out
    assert len(load(folder)) == 6


def test_repair_ends_a_last_line_that_is_whole(tmp_path, capsys):
    folder = store(tmp_path / "history", runs(3))
    path = folder / file_name(ROW)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert history("repair", "--dir", folder) == 0
    assert path.read_bytes() == whole


LINE = to_line(runs(1)[0])
BAD_LINES = {
    "broken": (LINE[:50], "not valid JSON"),
    "empty": ("", "not valid JSON"),
    "list": ("[1]", "expected `object`, got `array`"),
    "foreign": ('{"schema": "other"}', 'expected schema "stratagem-history/1"'),
    "future": (LINE.replace("stratagem-history/1", "stratagem-history/2"), "another version"),
    "not_a_number": (LINE.replace('"launches":[', '"launches":[NaN,'), "not valid JSON"),
    "infinite": (LINE.replace('"launches":[', '"launches":[1e999,'), "launches[0]: number out of range"),
    "huge": (LINE.replace('"launches":[', f'"launches":[{10**400},'), "launches[0]: number out of range"),
    "negative": (LINE.replace('"launches":[', '"launches":[-1,'), "launches[0]: expected `float` > 0.0"),
    "no_launch": (LINE.replace('"launches":[', '"launches":[],"was":['), "launches: expected `array` of length >= 1"),
    "other_row": (LINE.replace(ROW, SINGLE), "belongs into another file"),
    "repeated": (to_line(runs(1)[0]), "repeats the run of line 1"),
    "no_time": (LINE.replace('"time"', '"day"'), "missing required field `time`"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_named_and_nothing_is_written(case, tmp_path, capsys):
    text, words = BAD_LINES[case]
    folder = store(tmp_path / "history", runs(1))
    path = folder / file_name(ROW)
    with path.open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    before = contents(folder)
    assert history("show", "--dir", folder) == 2
    message = refused(capsys, words)
    assert f"{path}: line 2" in message
    subprocess.run(command_in(message, "remove it:"), shell=True, check=True)
    assert load(folder) == runs(1)
    path.write_bytes(before[path.name])
    with pytest.raises(InputError, match="line 2"):
        append(folder, runs(1, first=5))
    assert contents(folder) == before


def test_ten_thousand_lines_load(tmp_path):
    many = runs(1)[0]
    folder = tmp_path / "history"
    folder.mkdir()
    head, tail = to_line(many).split(time_text(START))
    lines = [
        f"{head}2026-01-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}Z{tail}"
        for i in range(10_000)
    ]
    (folder / file_name(ROW)).write_text("\n".join(lines) + "\n")
    assert len(load(folder)) == 10_000


def test_two_processes_add_the_same_runs_at_once_and_each_is_there_once(tmp_path):
    folder = tmp_path / "history"
    script = (
        "import sys, pathlib, fixture_history\n"
        "from stratagem_reports.history.store import append\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for run in fixture_history.runs(40): append(folder, [run])\n"
    )
    paths = os.pathsep.join([str(PACKAGE), str(Path(fixture_history.__file__).parent)])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(folder)],
            env=os.environ | {"PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert load(folder) == fixture_history.runs(40)
