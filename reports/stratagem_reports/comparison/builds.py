"""A build to be launched: its executable, and one launch of all rows of a configuration."""

import errno
import json
import os
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from ..results.errors import InputError
from ..results.load import Results, load_results
from .launch import LaunchError, launch
from .result_set import ResultSet, join

LAUNCH_LIMIT_S = 1800.0
_START_LIMIT_S = 20.0
_WRONG_OPTION = 2
_ROW_FAILED = 4
_OURS = {"--out", "--only", "--repetitions", "--resume", "--config", "--trace", "--turns"}


@dataclass(frozen=True)
class Build:
    """`label` is "base" or "head", `version` what the executable says of itself."""

    label: str
    executable: Path
    version: str


def find_build(label: str, path: Path) -> Build:
    """The executable itself, or the one in a build folder; InputError when it does not start."""
    candidates = [path] if path.is_file() else [path / "bin" / "stratagem", path / "stratagem"]
    found = next((item for item in candidates if item.is_file()), None)
    if found is None:
        raise InputError(
            f"{label} build {path}: no executable there; expected a build folder with "
            "bin/stratagem, or the executable"
        )
    if not os.access(found, os.X_OK):
        raise InputError(
            f"{label} build {found}: not executable; expected a build folder with "
            "bin/stratagem, or the executable"
        )
    try:
        version = launch([str(found.absolute()), "--version"], {}, _START_LIMIT_S).stdout
    except LaunchError as error:
        raise InputError(f"{label} build {found}: does not start: {error}") from None
    if not re.match(r"stratagem\b", version):
        raise InputError(
            f"{label} build {found}: is not stratagem, because --version does not print that name"
        )
    return Build(label, found.absolute(), version.splitlines()[0].strip())


def check_run_options(options: list[str]) -> None:
    """Refuses the options of `stratagem run` that the comparison sets itself."""
    for option in options:
        if option.split("=")[0] in _OURS:
            raise InputError(f"{option} after --: compare sets it itself; leave it out")


def run_once(
    build: Build, options: list[str], limit_s: float, environment: dict[str, str] | None = None
) -> Results:
    """One launch of every row; a row that failed is in the results with its error.

    Raises InputError when the build refuses the options, and LaunchError when there are no results
    at all for another reason.
    """
    with tempfile.TemporaryDirectory(prefix="stratagem_") as folder:
        out = Path(folder, f"{build.label}.json")
        command = [str(build.executable), "run", *options, "--repetitions", "1", "--out", str(out)]
        try:
            launch([*command, "--quiet"], environment or {}, limit_s, accepted=(0, _ROW_FAILED))
        except LaunchError as error:
            if error.exit_code != _WRONG_OPTION:
                raise
            raise InputError(f"{build.executable}: {error}") from error
        return load_results(out)


def result_set_of(build: Build, results: list[Results]) -> ResultSet:
    """All launches of a build together; InputError when they are not of one kind of machine."""
    source = f"{build.executable} ({build.version})"
    return replace(join(build.label, results), sources=[source])


def write_round(path: Path, entry: dict) -> None:
    """Appends a round to a recording, one whole line of JSON; InputError when it does not fit."""
    line = (json.dumps(entry, allow_nan=False) + "\n").encode()
    try:
        size = path.stat().st_size if path.exists() else 0
        with path.open("ab", buffering=0) as file:
            if file.write(line) == len(line):
                return
        os.truncate(path, size)
        reason = os.strerror(errno.ENOSPC)
    except OSError as error:
        reason = error.strerror
    raise InputError(f"--record {path}: cannot be written: {reason}")
