"""Runs commands with a time limit, several at a time, and ends all of them at once."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path


class Stopped(Exception):
    """No more commands are run."""


@dataclass(frozen=True)
class Done:
    """How a command ended; `code` is negative after a signal and None after the time limit."""

    code: int | None
    output: str
    seconds: float


class Processes:
    """The commands that run; each is the leader of a process group of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen] = set()
        self._stopped = False

    def run(
        self,
        command: list[str],
        folder: Path,
        environment: dict[str, str] | None = None,
        limit_s: float | None = None,
    ) -> Done:
        """What the command printed, and how it ended."""
        started = time.monotonic()
        process = self._start(command, folder, environment)
        try:
            output, _ = process.communicate(timeout=limit_s)
            code = process.returncode
        except subprocess.TimeoutExpired:
            _kill(process)
            output, _ = process.communicate()
            code = None
        finally:
            _kill(process)  # what it left behind
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise Stopped
        return Done(code, output, time.monotonic() - started)

    def stop(self) -> None:
        """Ends every command that runs; no other one starts."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)

    def _start(
        self, command: list[str], folder: Path, environment: dict[str, str] | None
    ) -> subprocess.Popen:
        with self._lock:
            if self._stopped:
                raise Stopped
            process = subprocess.Popen(
                command, cwd=folder, env=environment, start_new_session=True, text=True,
                errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
            self._running.add(process)
            return process


def _kill(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
