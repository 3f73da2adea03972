"""Holds results files and lines of the history against the schemas of `stratagem schema`."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import jsonschema

FOLDER = Path(__file__).resolve().parents[2] / "reports" / "stratagem_reports" / "schemas"
MOST_SHOWN = 5


@functools.cache
def schema(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))


@functools.cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name))


def violations(name: str, document: object) -> list[str]:
    """Each place that the schema "results" or "history" refuses, and why."""
    found = _validator(name).iter_errors(document)
    return [f"{one.json_path}: {one.message:.300}" for one in found]


def expect_valid(name: str, document: object, where: object = "") -> None:
    """Fails the test where the document is not what the schema describes."""
    found = violations(name, document)
    assert not found, "\n".join([f"{where}: refused by the schema of {name}", *found[:MOST_SHOWN]])


def expect_valid_results(text: str, where: object) -> None:
    """The same of a text, if it is a results file."""
    if '"context"' not in text or '"benchmarks"' not in text:
        return
    document = json.loads(text)
    if "stratagem" in document.get("context", {}):  # what Google Benchmark writes alone has none
        expect_valid("results", document, where)
