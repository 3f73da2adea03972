"""Types of command-line arguments: each reads a text and says what would be right."""

import argparse


def whole_number(text: str, least: int = 0) -> int:
    """A whole number from `least` on."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of {least} or more")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1 on."""
    return whole_number(text, 1)


def positive(text: str) -> float:
    """A number above 0, such as minutes."""
    value = _number(text, 1e6)
    if value == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number above 0")
    return value


def percentage(text: str) -> float:
    """A fraction, given as 1% or as 0.01."""
    try:
        value = _number(text[:-1], 100) / 100 if text.endswith("%") else _number(text, 1)
    except argparse.ArgumentTypeError:
        value = 1.0
    if value >= 1:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a percentage below 100%, or the same as a fraction: 1% or 0.01"
        )
    return value


def percent(text: str) -> float:
    """A number of per cent, without the sign."""
    return _number(text, 1e6)


def probability(text: str) -> float:
    """A number from 0 to 1."""
    return _number(text, 1.0)


def acceptance(text: str) -> str:
    """An intended increase, METRIC=ROW."""
    if not all(text.partition("=")):
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected METRIC=ROW, such as aten_operators=ddp/*"
        )
    return text


def _number(text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= most:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 0 to {most:g}")
    return value
