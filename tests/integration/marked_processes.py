"""Finds all that a test has started, however indirectly, by a mark in the environment."""

from __future__ import annotations

import os
import signal
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "STRATAGEM_TEST_MARK"


@dataclass(frozen=True)
class MarkedProcess:
    """A process as /proc tells of it; `state` is its letter there: R, S, T (stopped), ..."""

    number: int
    parent: int
    state: str
    arguments: list[str]
    environment: dict[str, str]

    @property
    def is_worker(self) -> bool:
        return self.arguments[1:2] == ["worker"]

    @property
    def rank(self) -> int | None:
        """The launcher's word, or else the command line's; None for what is no rank."""
        if "--rank" in self.arguments:
            return int(self.arguments[self.arguments.index("--rank") + 1])
        for name in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
            if name in self.environment:
                return int(self.environment[name])
        return None


class MarkedProcesses:
    """The processes whose environment carries a mark of this object's own."""

    def __init__(self) -> None:
        self.variables = {VARIABLE: uuid.uuid4().hex}

    def running(self) -> list[MarkedProcess]:
        """Return all that run or are stopped; not those that only wait to be collected."""
        folders = (folder for folder in Path("/proc").iterdir() if folder.name.isdigit())
        return [found for folder in folders if (found := self._read(folder)) is not None]

    def controller(self, rank: int) -> MarkedProcess:
        """Return the process that is that rank to its launcher; its worker is a child of it.

        Until it begins its own program, that child carries its parent's command line.
        """
        alike = [
            process
            for process in self.running()
            if process.rank == rank and process.arguments[1:2] == ["run"]
        ]
        numbers = {process.number for process in alike}
        (found,) = [process for process in alike if process.parent not in numbers]
        return found

    def any_stopped(self) -> bool:
        return any(process.state == "T" for process in self.running())

    def expect_none(self, limit_s: float = 5) -> None:
        """Fail where one is still there after a moment: an end takes effect with a delay."""
        end = time.monotonic() + limit_s
        looks = 0  # in vain; a process that begins another program has no environment for a moment
        while looks < 2:
            left = self.running()
            looks = 0 if left else looks + 1
            in_time = not left or time.monotonic() < end
            assert in_time, f"left behind: {[(p.number, *p.arguments) for p in left]}"
            time.sleep(0.02)

    def kill(self) -> None:
        for process in self.running():
            try:
                os.kill(process.number, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _read(self, folder: Path) -> MarkedProcess | None:
        mark = f"{VARIABLE}={self.variables[VARIABLE]}"
        try:
            environment = _strings(folder / "environ")
            if mark not in environment:
                return None
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            arguments = _strings(folder / "cmdline")
        except OSError:  # it has ended, or belongs to somebody else
            return None
        if state in "ZX":
            return None
        pairs = (entry.partition("=") for entry in environment)
        named = {name: value for name, _, value in pairs}
        return MarkedProcess(int(folder.name), int(parent), state, arguments, named)


def _strings(file: Path) -> list[str]:
    """Return the strings of a file of /proc that are separated by zero bytes."""
    return file.read_bytes().decode(errors="replace").split("\0")[:-1]
