"""A line on a terminal that shows the running launch and the estimated time left."""

import statistics
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from peer_comparison.contender import Contender

ERASE_LINE = "\r\x1b[2K"


def describe_seconds(seconds: float) -> str:
    """Return a duration as text: "40 s", "12 min", "1 h 40 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


class ProgressLine:
    """Shows the running launch and the estimated time left; prints nothing without a terminal."""

    def __init__(self, contenders: int, rounds: int, stream: TextIO = sys.stderr) -> None:
        self.contenders_ = contenders
        self.rounds_ = rounds
        self.stream_ = stream
        self.running_: tuple[str, float] | None = None
        self.seconds_: dict[str, float] = {}

    def __call__(self, contender: Contender, round_index: int, left: Sequence[str]) -> None:
        """Show that `contender` starts; `left` are the launches left in the round, with it."""
        now = time.monotonic()
        if self.running_:
            name, start = self.running_
            self.seconds_[name] = now - start
        self.running_ = (contender.name, now)
        if not self.stream_.isatty():
            return
        where = f"round {round_index}/{self.rounds_}" if round_index else "verifying"
        text = f"{where}  {contender.name}  {len(left)} to go{self._estimate(round_index, left)}"
        self.stream_.write(f"{ERASE_LINE}{text}")
        self.stream_.flush()

    def _estimate(self, round_index: int, left: Sequence[str]) -> str:
        """Return the time left, estimated from the latest launch of each contender."""
        if not self.seconds_:
            return ""
        typical = statistics.mean(self.seconds_.values())
        rest = sum(self.seconds_.get(name, typical) for name in left)
        rest += (self.rounds_ - round_index) * self.contenders_ * typical
        return f"  about {describe_seconds(rest)} left"

    def clear(self) -> None:
        """Remove the line."""
        if self.stream_.isatty():
            self.stream_.write(ERASE_LINE)
            self.stream_.flush()
