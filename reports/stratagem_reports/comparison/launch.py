"""Runs a command as a fresh process group with a time limit, and leaves nothing behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

OUT = "{out}"
GRACE_S = 2.0


class LaunchError(Exception):
    """A launch that gave no measurement; the message is one line."""

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # None if it did not end by itself


@dataclass(frozen=True)
class Output:
    """What a launch left: its standard output, and the file it wrote for `{out}` ("" if none).

    The memory is what the largest of its processes had resident at most.
    """

    stdout: str
    out_file: str
    seconds: float
    exit_code: int = 0
    peak_resident_bytes: int = 0


def end_with_parent() -> None:
    """Make this process, before it becomes a command, end when its parent does."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; False when it has no process left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def end_group(leader: subprocess.Popen, grace_s: float = GRACE_S) -> None:
    """End all processes of the leader's group: asks first, then forces."""
    if _signal_group(leader.pid, signal.SIGTERM):
        with contextlib.suppress(subprocess.TimeoutExpired):
            leader.wait(grace_s)
    _signal_group(leader.pid, signal.SIGKILL)
    leader.wait()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return this process's environment with `changes`; None removes a variable."""
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _wait(process: subprocess.Popen, limit_s: float) -> int:
    """Wait for a process and return the resident bytes, at most, of it or of a child of its.

    It is no less than this process's own, with which Linux begins a child's account. Raises
    subprocess.TimeoutExpired after `limit_s` seconds.
    """
    deadline = time.monotonic() + limit_s
    ended_and_kept = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, process.pid, ended_and_kept) is None:
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(process.args, limit_s)
        time.sleep(0.01)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024


def launch(
    command: Sequence[str],
    environment: Mapping[str, str | None],
    limit_s: float,
    accepted: Sequence[int] = (0,),
) -> Output:
    """Run `command` and return its output.

    `{out}` inside an argument becomes the path of a file that does not exist yet. Raises
    LaunchError when the command cannot start, ends with an exit code that is not accepted, or
    overruns `limit_s` seconds. Its process group is gone when this returns or raises.
    """
    with tempfile.TemporaryDirectory(prefix="stratagem_") as folder:
        out = Path(folder, "out.json")
        arguments = [argument.replace(OUT, str(out)) for argument in command]
        paths = Path(folder, "stdout"), Path(folder, "stderr")
        start = time.monotonic()
        with paths[0].open("w") as stdout, paths[1].open("w") as stderr:
            try:
                process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    env=_environment(environment),
                    start_new_session=True,
                    preexec_fn=end_with_parent,
                )
            except OSError as error:
                raise LaunchError(f"cannot start {arguments[0]}: {error.strerror}") from error
            try:
                peak = _wait(process, limit_s)
            except subprocess.TimeoutExpired as error:
                raise LaunchError(f"no result within {limit_s:g} s") from error
            finally:
                end_group(process)
        seconds = time.monotonic() - start
        exit_code = process.returncode
        if exit_code not in accepted:
            message = _last_line(paths[1].read_text(errors="replace"))
            raise LaunchError(f"exit code {exit_code}: {message}", exit_code)
        text = out.read_text() if out.exists() else ""
        return Output(paths[0].read_text(errors="replace"), text, seconds, exit_code, peak)
