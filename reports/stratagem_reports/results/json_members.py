"""Reads a JSON file and its members, each of the kind that is expected, else an error.

`where` names the place in the file for the error, as "results.json: benchmarks[3]".
"""

import json
import math
from pathlib import Path
from typing import Any

from .errors import InputError


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; InputError when there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a results file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; expected JSON") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_object(text, str(path))


def parse_object(text: str, where: str) -> dict[str, Any]:
    """The JSON object that a text holds; InputError when it holds none."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        detail = str(error).splitlines()[0]
        raise InputError(f"{where}: not valid JSON, perhaps cut short: {detail}") from None
    if not isinstance(document, dict):
        raise InputError(f"{where}: expected a JSON object, found {kind_of(document)}")
    return document


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def member(holder: dict, key: str, kind: type, where: str, optional: bool = False) -> Any:
    """The object, list or string under a key; None only where it is optional and absent or null."""
    value = holder.get(key)
    if value is None and optional:
        return None
    if not isinstance(value, kind):
        wanted = {dict: "an object", list: "a list", str: "a string"}[kind]
        raise InputError(f"{where}: `{key}`: expected {wanted}, found {kind_of(value)}")
    return value


def numbers(holder: dict, where: str) -> dict[str, float]:
    """All members of an object of numbers; null counts as 0."""
    return {key: number(holder, key, where) or 0.0 for key in holder}


def number(holder: dict, key: str, where: str) -> float | None:
    """A finite number, None where it is absent or null."""
    value = holder.get(key)
    if value is None:
        return None
    if not is_number(value):
        raise InputError(f"{where}.{key}: expected a number, found {kind_of(value)}")
    return float(value)


def whole_number(holder: dict, key: str, where: str) -> int | None:
    """A number from 0 on without its fraction; None where it is absent, null or negative."""
    value = number(holder, key, where)
    return None if value is None or value < 0 else int(value)


def is_number(value: Any) -> bool:
    """True for a finite number that a float can hold."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def kind_of(value: Any) -> str:
    """What a value is, for an error's "expected ..., found ..."."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    if value is None or type(value) in names:
        return names.get(type(value), "nothing")
    return "a number" if is_number(value) else "a number out of range"
