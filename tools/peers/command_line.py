"""Command lines of the peers' commands: errors of one line, and kinds of values."""

import argparse
import contextlib
import math
import re
from typing import NoReturn

BAD_USAGE = 2


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """End the command with the message."""
        self.exit(BAD_USAGE, f"{self.prog}: {message}\n")


def at_least_one(text: str) -> int:
    """Return the positive integer that `text` holds, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(text)


def seconds(text: str) -> float:
    """Return the positive duration that `text` holds, for argparse."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")


def regular_expression(text: str) -> re.Pattern:
    """Return the compiled expression, for argparse."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text} is not a regular expression: {error}") from error
