"""Decodes JSON into typed values; what is wrong with it is one line that names the place."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from .errors import InputError

Kind = TypeVar("Kind")
Milliseconds = Annotated[float, msgspec.Meta(gt=0)]
# Which way of a metric is better; empty where neither is.
Better = Annotated[str, msgspec.Meta(pattern="^(lower|higher|)$")]


def read_text(path: Path) -> str:
    """The text of a file; InputError when there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a results file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; expected JSON") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def decode(text: str | msgspec.Raw, kind: type[Kind], where: str) -> Kind:
    """The value of that type in a JSON text; members that the type does not have are ignored.

    InputError where there is none; `where` names the text for it, as "results.json".
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise _wrong(error, where) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None


def convert(value: Any, kind: type[Kind], where: str) -> Kind:
    """The same of a value that was decoded without a type."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _wrong(error, where) from None


def _wrong(error: msgspec.ValidationError, where: str) -> InputError:
    """msgspec's "Expected `float`, got `str` - at `$.a[0].b`" with the place in front."""
    words, _, place = str(error).partition(" - at `$")
    place = place.rstrip("`").removeprefix(".")
    words = words[:1].lower() + words[1:]
    return InputError(f"{where}: {place}: {words}" if place else f"{where}: {words}")
