"""Holds results files, lines of the history and trainings against `stratagem schema`'s schemas."""

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
    """Each place that the schema "results", "history" or "train" refuses, and why."""
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


def expect_valid_trainings(text: str, where: object) -> None:
    """The same of the log of a training, or of the document of --out."""
    if text.startswith('{"event"'):
        lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
        # Of all kinds of lines the one that it says it is, for a message that says what is wrong.
        for line in lines:
            kind = schema("train")["$defs"][line["event"]]
            found = jsonschema.Draft202012Validator(
                kind | {"$defs": schema("train")["$defs"]}
            ).iter_errors(line)
            assert not (wrong := [one.message for one in found]), f"{where}: {line}: {wrong}"
    elif '"stratagem-train/1"' in text[:100]:
        expect_valid("train", json.loads(text), where)
