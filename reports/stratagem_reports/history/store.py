"""The folder of the history: one file of JSON Lines for each row, only ever appended to.

A file's name is the row's, with every byte but letters, digits and a few signs as %XX; a long one
is cut and ends with a digest. Each line holds the whole name, and a file with another's lines is
refused. Writers hold an exclusive lock on the folder and readers a shared one.

An append is one write of whole lines to each file, followed by fsync; when one file cannot be
written, those written before it are cut back. A crash can therefore leave a last line without its
end in one file, and nothing worse. Readers and writers refuse a file with a line that is no run,
the last one like any other: a result without it would look whole. The error has the command that
removes the line; `repair` keeps a last line without its end aside.
"""

import fcntl
import hashlib
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ..results.errors import InputError
from ..results.row_summary import may_be_one_workload
from .points import Run, from_line, to_line

_LOCK = ".lock"
_ENDING = ".jsonl"
_LONGEST = 150


@dataclass(frozen=True)
class Appended:
    """What an append did: runs written, and runs that were there before."""

    added: list[Run]
    present: list[Run]


@dataclass(frozen=True)
class _File:
    """A file's runs, where its whole lines end, and the bytes behind them."""

    runs: list[Run]
    whole: int
    tail: bytes


def file_name(name: str) -> str:
    """The name of the file that holds a row."""
    try:
        encoded = quote(name, safe=",=+@")
    except UnicodeEncodeError:
        raise InputError(f"{name!r}: a row's name that is not text") from None
    if len(encoded) > _LONGEST:
        encoded = f"{encoded[:_LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return encoded + _ENDING


def load(folder: Path) -> list[Run]:
    """Every run of the folder, in the files' order; InputError for none, and for a bad line."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; `stratagem history add` creates it")
    with _locked(folder, fcntl.LOCK_SH):
        paths = sorted(folder.glob(f"*{_ENDING}"))
        runs = [run for path in paths for run in _runs(path)]
    if not runs:
        raise InputError(f"{folder}: holds no runs; `stratagem history add` adds them")
    return runs


def append(folder: Path, runs: list[Run]) -> Appended:
    """Adds the runs that are not there yet: all of them or, on an InputError, none."""
    by_name: dict[str, dict[tuple, Run]] = {}
    for run in runs:
        if run.key in by_name.setdefault(run.name, {}):
            raise InputError(f"{run.identity}: given twice; give each run once")
        by_name[run.name][run.key] = run
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder, fcntl.LOCK_EX):
            lines: dict[Path, str] = {}
            added, present = [], []
            for name, own in by_name.items():
                path = folder / file_name(name)
                new, old = _split(path, own)
                added += new
                present += old
                if new:
                    lines[path] = "".join(_checked_line(run) for run in new)
            _write(lines)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"{folder}: cannot be written: {reason}; nothing was added; name another folder"
        ) from None
    return Appended(added, present)


def repair(folder: Path) -> list[str]:
    """Moves every last line without an end into FILE.broken; says what it did, a line each."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    done = []
    try:
        with _locked(folder, fcntl.LOCK_EX):
            for path in sorted(folder.glob(f"*{_ENDING}")):
                file = _read(path)
                if file.tail:
                    done.append(_repair(path, file))
    except OSError as error:
        raise InputError(f"{folder}: cannot be repaired: {error.strerror or error}") from None
    return done


def _repair(path: Path, file: _File) -> str:
    if _broken(file.tail):
        _append_bytes(path.with_name(path.name + ".broken"), file.tail + b"\n")
        os.truncate(path, file.whole)
        return f"{path}: moved a broken last line of {len(file.tail)} bytes to {path.name}.broken"
    _append_bytes(path, b"\n")
    return f"{path}: ended its last line, which was whole"


def _check_workload(path: Path, runs: list[Run]) -> None:
    """InputError where runs of one row are of several workloads, as far as they say it."""
    first = next((run for run in runs if run.workload is not None), None)
    for run in runs:
        if run.workload is not None and not may_be_one_workload(run.workload, first.workload):
            raise InputError(
                f"{path}: {run.identity} is of workload {run.workload}, an earlier run of "
                f"{first.workload}; a row's history holds one workload: use another folder"
            )


def _split(path: Path, own: dict[tuple, Run]) -> tuple[list[Run], list[Run]]:
    """The runs to append and those that the file has; InputError where it has other values."""
    known = {run.key: run for run in _runs(path)} if path.exists() else {}
    _check_workload(path, [*known.values(), *own.values()])
    for key, run in own.items():
        if key in known and known[key] != run:
            raise InputError(
                f"{path}: {run.identity} is there with other values; give this run its own "
                "--date or --commit"
            )
    new = [run for key, run in own.items() if key not in known]
    return new, [run for key, run in own.items() if key in known]


def _checked_line(run: Run) -> str:
    """The run's line; InputError when it could not be read back as the same run."""
    try:
        line = to_line(run)
    except ValueError:
        raise InputError(f"{run.identity}: holds a number that is not finite") from None
    if from_line(line, run.identity) != run:
        raise InputError(f"{run.identity}: cannot be kept as it is in a line of JSON")
    return line + "\n"


def _write(lines: dict[Path, str]) -> None:
    """Appends to every file, or cuts all of them back and raises OSError."""
    sizes: dict[Path, int | None] = {}
    try:
        for path, text in lines.items():
            sizes[path] = path.stat().st_size if path.exists() else None
            _append_bytes(path, text.encode())
    except OSError:
        for path, size in sizes.items():
            with suppress(OSError):  # the others are cut back all the same
                if size is None:
                    path.unlink(missing_ok=True)
                else:
                    os.truncate(path, size)
        raise
    for folder in {path.parent for path, size in sizes.items() if size is None}:
        with _opened(folder, os.O_RDONLY) as descriptor:
            os.fsync(descriptor)


def _append_bytes(path: Path, data: bytes) -> None:
    with _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as descriptor:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags, 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _locked(folder: Path, kind: int) -> Iterator[None]:
    """Holds the folder's lock; a reader of a folder without one, an archive, needs none."""
    path = folder / _LOCK
    flags = os.O_RDWR | os.O_CREAT if kind == fcntl.LOCK_EX else os.O_RDONLY
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError:
        if kind == fcntl.LOCK_EX:
            raise
        yield
        return
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


def _runs(path: Path) -> list[Run]:
    """A file's runs; InputError when a line is no run, or the last one has no end."""
    file = _read(path)
    if not file.tail:
        return file.runs
    number = len(file.runs) + 1
    where = f"{path}: line {number}"
    if _broken(file.tail):
        aside = f"stratagem history repair --dir {_quoted(path.parent)}"
        raise InputError(
            f"{where}: cut short, after {len(file.tail)} bytes; {_removal(path, number)}; or keep "
            f"it aside: {aside}"
        )
    raise InputError(f"{where}: whole, but without its end; add that: echo >> {_quoted(path)}")


def _broken(tail: bytes) -> bool:
    """Whether a last line without its end is no whole run."""
    try:
        from_line(tail.decode("utf-8"), "")
    except (InputError, UnicodeDecodeError):
        return True
    return False


def _removal(path: Path, number: int) -> str:
    """How to be rid of a line, for the end of an error's message."""
    return f"restore the line, or remove it: sed -i {number}d {_quoted(path)}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _read(path: Path) -> _File:
    """Reads a file; a bad line other than a last one without its end is an InputError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    whole = data.rfind(b"\n") + 1
    runs: list[Run] = []
    lines: dict[tuple, int] = {}
    for number, line in enumerate(data[:whole].split(b"\n")[:-1], start=1):
        where = f"{path}: line {number}"
        try:
            run = from_line(line.decode("utf-8"), where)
        except UnicodeDecodeError:
            raise InputError(f"{where}: not UTF-8 text; {_removal(path, number)}") from None
        except InputError as error:
            raise InputError(f"{error}; {_removal(path, number)}") from None
        if file_name(run.name) != path.name:
            raise InputError(
                f"{where}: holds the row {run.name}, which belongs into another file; "
                f"{_removal(path, number)}"
            )
        if run.key in lines:
            known = lines[run.key]
            raise InputError(f"{where}: repeats the run of line {known}; {_removal(path, number)}")
        lines[run.key] = number
        runs.append(run)
    return _File(runs, whole, data[whole:])
