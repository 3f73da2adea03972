"""Runs the commands of a section, each with a time limit, and keeps their output."""

import contextlib
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stratagem_reports.comparison.launch import end_group, end_with_parent

GRACE_S = 10.0  # between SIGTERM and SIGKILL, so that a command can print its results


@dataclass(frozen=True)
class Ended:
    """The output of a command, and the reason of its failure or None."""

    stdout: str
    complaint: str | None


def reason(stdout: str, stderr: str) -> str:
    """Return the reason of a command's failure in one line."""
    failed = re.findall(r"^(?:failed|\[  FAILED  \]).*", stdout, re.MULTILINE)
    last = [line.strip() for line in stderr.splitlines() if line.strip()]
    return (failed or last or ["no message"])[-1]


def run(words: Sequence[str], limit_s: float, log: Path, cwd: Path) -> Ended:
    """Run a command for at most `limit_s` seconds, and end its process group.

    The output goes to LOG.out and LOG.err.
    """
    name = Path(words[0]).name
    paths = [log.with_name(f"{log.name}.{stream}") for stream in ("out", "err")]
    with paths[0].open("w") as stdout, paths[1].open("w") as stderr:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        except OSError as error:
            return Ended("", f"{name}: cannot start: {error.strerror}")
        code = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(limit_s)
        finally:
            end_group(process, GRACE_S)
    out, err = (path.read_text(errors="replace") for path in paths)
    if code is None:
        return Ended(out, f"{name}: did not end within {limit_s:.0f} s")
    return Ended(out, f"{name}: exit code {code}: {reason(out, err)}" if code else None)
