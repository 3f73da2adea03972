"""The progress and the colours of a command on a terminal, and its progress in a log."""

import os
import sys
import time
from typing import TextIO

_SILENCE_S = 30.0  # the least time between two lines of a log


def can_replace_lines(stream: TextIO) -> bool:
    """Returns whether the stream is a terminal, and TERM is neither unset nor "dumb"."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def has_color(stream: TextIO) -> bool:
    """Returns whether text may have colours: also NO_COLOR (no-color.org) is unset or empty."""
    return can_replace_lines(stream) and not os.environ.get("NO_COLOR")


class Progress:
    """Prints what a comparison does on standard error.

    A terminal has one line, which each call replaces. A file or a pipe gets a line for a call that
    comes at least half a minute after the last line.
    """

    def __init__(self) -> None:
        self._replaces = can_replace_lines(sys.stderr)
        self._last_s = time.monotonic()

    def __call__(self, what: str, left_s: float | None) -> None:
        """Shows `what` and the seconds that are left; None where they are unknown."""
        rest = "" if left_s is None else f", at most {max(1, round(left_s / 60))} min left"
        if self._replaces:
            print(f"\r\x1b[2K{what}{rest}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._last_s >= _SILENCE_S:
            print(f"{what}{rest}", file=sys.stderr, flush=True)
            self._last_s = time.monotonic()

    def finish(self) -> None:
        """Removes the line of a terminal."""
        if self._replaces:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
