"""Lets two builds run the same row at the same time, a step each: the word of `run --turns`.

Both are started one after the other and come to a socket when they are warm. From then on one of
them runs a step while the other waits, in pairs of random order, so that the two steps of a pair
lie seconds apart and whatever slows the machine down for longer falls on both.
"""

import contextlib
import random
import socket
import tempfile
import threading
import time
from pathlib import Path

from ..results.load import Results
from .builds import Build, run_once
from .launch import LaunchError

_READY, _GO, _DONE = b"r", b"g", b"d"
_LOOK_S = 0.1  # how often a wait looks whether the launch has ended
_LEAVE_S = 10.0  # for a launch that is told nothing more


def run_in_turns(
    builds: dict[str, Build],
    order: list[str],
    options: list[str],
    pairs: int,
    shuffler: random.Random,
    limit_s: float,
) -> dict[str, Results]:
    """Launches both builds with `options`, which make one row of `pairs` steps; results by label.

    `order` says which label is started first. A launch whose row fails gives its results with the
    error, and the other one goes on alone. Raises LaunchError when a launch gives no results.
    """
    deadline = time.monotonic() + limit_s
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="stratagem_"))
        launches = []
        for label in order:
            # The second one leaves the lock on the cores to the first.
            second = bool(launches)
            launch = _Launch(label, Path(folder), builds[label], options, deadline, second)
            stack.callback(launch.close)
            launch.start()
            launch.wait_for(_READY)
            launches.append(launch)
        for pair in _balanced(launches, pairs, shuffler):
            for launch in pair:
                launch.go()
                launch.wait_for(_DONE)
        return {launch.label: launch.results() for launch in launches}


class _Launch:
    """One launch and its socket. Once it has ended, its turns pass at once."""

    def __init__(self, label, folder, build, options, deadline, second) -> None:
        path = folder / f"{label}.socket"
        self.label = label
        self._deadline = deadline
        self._results: Results | None = None
        self._error: Exception | None = None
        self._connection: socket.socket | None = None
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(1)
        environment = {"STRATAGEM_LOCK_FOLDER": str(folder)} if second else {}
        arguments = (build, [*options, "--turns", str(path)], environment)
        self._thread = threading.Thread(target=self._launch, args=arguments, daemon=True)

    def close(self) -> None:
        # A launch that is told nothing more ends itself, or at its limit.
        for opened in (self._connection, self._listening):
            if opened is not None:
                opened.close()
        if self._thread.ident is not None:
            self._thread.join(max(_LEAVE_S, self._deadline - time.monotonic()))

    def start(self) -> None:
        self._thread.start()

    def go(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.sendall(_GO)

    def wait_for(self, word: bytes) -> None:
        """Returns when the launch says the word, or has ended."""
        while time.monotonic() < self._deadline:
            if self._connection is None:
                self._accept()
            elif self._hears(word):
                return
            if not self._thread.is_alive():
                return
        raise LaunchError(f"{self.label}: no step within its limit")

    def results(self) -> Results:
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        if self._error is not None:
            raise self._error
        if self._results is None:
            raise LaunchError(f"{self.label}: no results within its limit")
        return self._results

    def _launch(self, build, options, environment) -> None:
        left = max(1.0, self._deadline - time.monotonic())
        try:
            self._results = run_once(build, options, left, environment)
        except Exception as error:  # handed on by results()
            self._error = error

    def _accept(self) -> None:
        self._listening.settimeout(_LOOK_S)
        with contextlib.suppress(TimeoutError):
            self._connection, _ = self._listening.accept()

    def _hears(self, word: bytes) -> bool:
        self._connection.settimeout(_LOOK_S)
        try:
            said = self._connection.recv(1)
        except TimeoutError:
            return False
        except OSError:
            said = b""
        if not said:  # gone: wait for the launch to end
            time.sleep(_LOOK_S)
        return said == word


def _balanced(launches: list[_Launch], pairs: int, shuffler: random.Random) -> list[list[_Launch]]:
    """Each launch first in half of the pairs, in random order: a steady drift cancels."""
    found = [launches if index % 2 else launches[::-1] for index in range(pairs)]
    shuffler.shuffle(found)
    return found
