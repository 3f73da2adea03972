"""The store of results over time: files, crashes, two writers, and lines that are refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stratagem_reports.errors import InputError
from stratagem_reports.history import store as store_module
from stratagem_reports.history.points import time_text, to_line
from stratagem_reports.history.store import append, file_name, load

import fixture_history
from fixture_history import ROW, START, contents, history, quiet, refused, runs, store

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
    assert {run.name for run in load(store(tmp_path / "h", runs(2, name)), quiet)} == {name}


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


def test_a_broken_last_line_is_skipped_by_readers_and_stops_writers(tmp_path, capsys):
    folder = store(tmp_path / "history", runs(3), runs(2, SINGLE))
    path = folder / file_name(ROW)
    whole = path.read_bytes()
    torn = to_line(runs(1, first=3)[0]).encode()[:100]
    path.write_bytes(whole + torn)
    assert history("show", "--dir", folder) == 0
    captured = capsys.readouterr()
    assert f"{path}: line 4" in captured.err and "history repair" in captured.err
    assert captured.err.count("\n") == 1 and ROW in captured.out
    with pytest.raises(InputError, match=r"line 4.*history repair"):
        append(folder, runs(1, first=4))
    assert path.read_bytes() == whole + torn
    assert history("repair", "--dir", folder) == 0
    assert "moved a broken last line of 100 bytes" in capsys.readouterr().out
    assert path.read_bytes() == whole
    assert path.with_name(path.name + ".broken").read_bytes() == torn + b"\n"
    append(folder, runs(1, first=4))
    assert history("repair", "--dir", folder) == 0
    assert "nothing to repair" in capsys.readouterr().out
    assert len(load(folder, quiet)) == 6


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
    "list": ("[1]", "expected a JSON object"),
    "foreign": ('{"schema": "other"}', 'expected schema "stratagem-history/1"'),
    "future": (LINE.replace("stratagem-history/1", "stratagem-history/2"), "another version"),
    "not_a_number": (LINE.replace('"launches":[', '"launches":[NaN,'), "NaN is not JSON"),
    "infinite": (LINE.replace('"launches":[', '"launches":[1e999,'), "finite number"),
    "huge": (LINE.replace('"launches":[', f'"launches":[{10**400},'), "finite number"),
    "negative": (LINE.replace('"launches":[', '"launches":[-1,'), "positive time"),
    "no_launch": (LINE.replace('"launches":[', '"launches":[],"was":['), "found none"),
    "other_row": (LINE.replace(ROW, SINGLE), "belongs into another file"),
    "repeated": (to_line(runs(1)[0]), "repeats the run of line 1"),
    "no_time": (LINE.replace('"time"', '"day"'), "expected a date"),
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
    assert f"{path}: line 2" in refused(capsys, words)
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
    assert len(load(folder, quiet)) == 10_000


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
    assert load(folder, quiet) == fixture_history.runs(40)
