"""What the formats share: the source of an import, units, JSON, and the choice of one run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..points import Run, counted, finite, parse_commit, parse_time

_PER_MILLISECOND = {"ns": 1e6, "us": 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, "ms": 1.0, "s": 1e-3}
Warn = Callable[[str], None]


@dataclass(frozen=True)
class Source:
    """A file to import and what the command line says about it."""

    path: Path
    commit: str | None
    date: str | None
    name: str | None
    metric: str | None
    unit: str | None
    warn: Warn

    def run_commit(self, found: Any, where: str) -> str:
        """The commit given, or else that of the file."""
        if self.commit:
            return parse_commit(self.commit, "--commit")
        return parse_commit(found, where)

    def run_time(self, found: Any, where: str) -> datetime:
        """The date given, or else that of the file."""
        if self.date:
            return parse_time(self.date, "--date")
        if found is None:
            raise InputError(f"{where}: no date in the file; give one with --date")
        return parse_time(found, where)


@dataclass(frozen=True)
class Target:
    """Where an export goes, as far as the format needs to know, and where to say what is lost."""

    suffix: str
    commit: str | None
    warn: Warn


def milliseconds(value: Any, unit: Any, where: str) -> float:
    """A time in milliseconds; a unit that is not of time is an InputError."""
    name = unit.strip().removesuffix("/iter") if isinstance(unit, str) else unit
    if not isinstance(name, str) or name not in _PER_MILLISECOND:
        raise InputError(f"{where}: expected the unit ns, us, ms or s, found {unit!r}")
    time = finite(finite(value, where) / _PER_MILLISECOND[name], where)
    if time <= 0.0:
        raise InputError(f"{where}: expected a positive time, found {value}")
    return time


def unit_in(name: str) -> str | None:
    """The unit of time that a column's or measure's name ends with: "step_ms", "time (ms)"."""
    for unit in _PER_MILLISECOND:
        if name.endswith((f"_{unit}", f"-{unit}", f"({unit})")):
            return unit
    return None


def one_unit(units: dict[str, str], name: str, unit: Any, where: str) -> None:
    """InputError when a benchmark comes in two units in one file."""
    if units.setdefault(name, unit) != unit:
        raise InputError(
            f"{where}: {name} is in {units[name]!r} and in {unit!r}; expected one unit"
        )


def parse_json(text: str, where: str) -> dict[str, Any]:
    """The JSON object in a text; NaN and a key given twice are InputErrors."""
    try:
        document = json.loads(text, parse_constant=_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        detail = str(error).splitlines()[0]
        raise InputError(f"{where}: not valid JSON, perhaps cut short: {detail}") from None
    if not isinstance(document, dict):
        raise InputError(f"{where}: expected a JSON object")
    return document


def read_text(path: Path) -> str:
    """A file's text."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if not text.strip():
        raise InputError(f"{path}: empty; expected results to import")
    return text


def one_run(runs: list[Run], target: Target) -> list[Run]:
    """The rows of one commit and time, for formats that hold no more: the newest of them."""
    if target.commit:
        runs = [run for run in runs if run.commit.startswith(target.commit)]
        if not runs:
            raise InputError(f"--commit {target.commit}: no run of this commit in the history")
    newest = max(runs, key=lambda run: run.time)
    chosen = [run for run in runs if (run.commit, run.time) == (newest.commit, newest.time)]
    left_out = {run.name for run in runs} - {run.name for run in chosen}
    if left_out:
        target.warn(
            f"left out {counted(len(left_out), 'row')} without a run of {newest.commit} at "
            f"{newest.time:%Y-%m-%dT%H:%M:%SZ}, which the format cannot hold beside it"
        )
    return chosen


def to_json(document: Any) -> str:
    """A document as indented JSON."""
    return json.dumps(document, indent=2, allow_nan=False)


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    holder = dict(pairs)
    if len(holder) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is given twice")
    return holder
