"""`stratagem schema`, and that the files which are written are what it says."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import fixture_collectives
import fixture_many_rows
import fixture_ranks
import fixture_results
import fixture_trainings
import jsonschema
import pytest
from reference_summaries import summarised
from schema_page import PAGE, page_with
from schema_validation import (
    expect_valid_results,
    expect_valid_trainings,
    schema,
    violations,
)
from stratagem_reports import __main__ as command
from stratagem_reports.history.store import load

import fixture_history

APPROVED = Path(__file__).parents[1] / "approved"
WRITTEN = {
    path.name: document
    for path in sorted(APPROVED.glob("*.json"))
    if "benchmarks" in (document := json.loads(path.read_text(encoding="utf-8")))
}
# Parts of a step, of which one lies inside another, and how far their sum may be from the step.
HIDDEN, CLOSE = "communication_hidden", 0.01


@pytest.mark.parametrize(("words", "name"), [
    ([], "results"), (["results"], "results"), (["history"], "history"), (["train"], "train"),
])
def test_the_command_prints_a_schema(words, name, capsys):
    assert command.main(["schema", *words]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert printed == schema(name)
    jsonschema.Draft202012Validator.check_schema(printed)


@pytest.mark.parametrize("words", [["result"], ["results", "history"], ["--all"]])
def test_wrong_words_are_one_line(words, capsys):
    with pytest.raises(SystemExit) as caught:
        command.main(["schema", *words])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def parts(described: object) -> list[dict]:
    """Every object of a schema that lists fields."""
    found = [described] if isinstance(described, dict) and "type" in described else []
    inner = described.values() if isinstance(described, dict) else described
    for one in inner if isinstance(described, (dict, list)) else ():
        found += parts(one)
    return [part for part in found if "properties" in part]


@pytest.mark.parametrize("name", ["results", "history", "train"])
def test_every_field_is_described_and_what_must_be_there_is_a_field(name):
    for part in parts(schema(name)):
        for field, described in part["properties"].items():
            assert described.get("description"), field
        assert set(part.get("required", [])) <= set(part["properties"])


def test_the_page_has_the_tables_of_the_schema():
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with(page, schema("results")), "run python tests/reports/schema_page.py"
    outdated = page.replace("| `loss` |", "| `lost` |")
    assert outdated != page and page_with(outdated, schema("results")) == page


@pytest.mark.parametrize("name", WRITTEN)
def test_approved_results_are_what_the_schema_says(name):
    assert violations("results", WRITTEN[name]) == []


FIXTURES = {
    "steady": lambda: fixture_results.results(),
    "tutorial": lambda: fixture_results.results("tutorial", (1, 12), False, 3),
    "collectives": lambda: fixture_collectives.collectives(failed=True),
    "ranks": lambda: fixture_ranks.over_ranks(),
    "many_rows": lambda: fixture_many_rows.many_rows(40),
}


@pytest.mark.parametrize("name", FIXTURES)
def test_the_results_that_tests_make_are_what_the_schema_says(name):
    assert violations("results", summarised(FIXTURES[name]())) == []


def first(document: dict) -> dict:
    return document["benchmarks"][0]


@pytest.mark.parametrize("change", [
    lambda document: document["context"].pop("date"),
    lambda document: document["context"]["stratagem"].update(schema="stratagem/2"),
    lambda document: document["context"]["stratagem"].update(schemes=1),
    lambda document: first(document).update(time_unit="us"),
    lambda document: first(document).update(repetition_index=None),
    lambda document: first(document).update(colour="blue"),
    lambda document: first(document)["stratagem"].pop("conditions"),
    lambda document: first(document)["stratagem"].update(step_ms=[]),
    lambda document: first(document)["stratagem"].update(step_ms=["1.0"]),
    lambda document: first(document)["stratagem"]["devices"][0].update(breakdown={}),
    lambda document: first(document)["stratagem"]["devices"][0]["breakdown_ms"].pop("wait"),
    lambda document: first(document)["stratagem"]["timeline"][0].update(end=1.0),
    lambda document: first(document)["stratagem"]["config"].update(cut=["layer2"]),
    lambda document: first(document)["stratagem"]["summary"].pop("ratios"),
    lambda document: first(document)["stratagem"]["summary"].update(error="lost"),
    lambda document: document["benchmarks"][-1].pop("error_message"),
    lambda document: document["benchmarks"][-1]["stratagem"].update(error=None),
    lambda document: document["benchmarks"][6].update(stratagem={}),
])
def test_what_is_otherwise_is_refused(change):
    document = copy.deepcopy(WRITTEN["results.json"])
    change(document)
    assert len(violations("results", document)) >= 1
    with pytest.raises(AssertionError, match="refused by the schema of results"):
        expect_valid_results(json.dumps(document), "a file")


def test_what_may_be_added_is_let_pass():
    document = copy.deepcopy(WRITTEN["results.json"])
    document["context"]["purpose"] = "given by --benchmark_context"
    document["context"]["stratagem"]["fingerprint"]["hardware"]["clock_source"] = "tsc"
    first(document)["counter"] = 2.5
    first(document)["stratagem"]["config"]["option"] = True
    assert violations("results", document) == []


@pytest.mark.parametrize("change", [
    lambda line: line.pop("commit"),
    lambda line: line.update(schema="stratagem-history/2"),
    lambda line: line.update(time="2026-01-15T10:20:30+01:00"),
    lambda line: line.update(launches=[]),
    lambda line: line.update(median=0),
    lambda line: line.update(row="single"),
    lambda line: line["metrics"].pop("step_ms"),
    lambda line: line["metrics"]["step_ms"].update(better="faster"),
    lambda line: line["hardware"].pop("digest"),
])
def test_lines_of_the_history_that_are_otherwise_are_refused(change, tmp_path, write_json):
    source = write_json(WRITTEN["results.json"])
    assert fixture_history.history("add", source, "--dir", tmp_path / "history") == 0
    assert len(load(tmp_path / "history")) == 2
    (text, *_) = next((tmp_path / "history").glob("*.jsonl")).read_text().splitlines()
    line = json.loads(text)
    assert violations("history", line) == []
    change(line)
    assert len(violations("history", line)) >= 1


def trainings(**changes) -> dict:
    start, *events, end = fixture_trainings.training()
    whole = {"name": start["name"], "start": start, "events": events, "end": end}
    return {"schema": "stratagem-train/1", "command": "train", "trainings": [whole]} | changes


def first_step(document: dict) -> dict:
    return document["trainings"][0]["events"][1]


def test_the_trainings_that_tests_make_are_what_the_schema_says():
    assert violations("train", trainings()) == []
    lines = [json.dumps(line, separators=(",", ":")) for line in fixture_trainings.training()]
    expect_valid_trainings("\n".join(lines), "a log")
    diverged = trainings()
    first_step(diverged)["loss"] = "nan"
    assert violations("train", diverged) == []


@pytest.mark.parametrize("change", [
    lambda document: document.update(schema="stratagem-train/2"),
    lambda document: document["trainings"][0].pop("end"),
    lambda document: document["trainings"][0]["start"].pop("parameters"),
    lambda document: first_step(document).pop("loss"),
    lambda document: first_step(document).update(loss=None),
    lambda document: first_step(document).update(event="stop"),
    lambda document: first_step(document).update(speed=3),
    lambda document: document["trainings"][0]["events"].append({"event": "checkpoint", "step": 3}),
    lambda document: document["trainings"][0]["end"].update(stalled_steps=0.5),
])
def test_trainings_that_are_otherwise_are_refused(change):
    document = copy.deepcopy(trainings())
    change(document)
    assert len(violations("train", document)) >= 1


def launches(document: dict) -> list[dict]:
    """The launches that did not fail."""
    entries = [entry for entry in document["benchmarks"] if entry["run_type"] == "iteration"]
    return [entry["stratagem"] for entry in entries if "error_occurred" not in entry]


def sum_of(breakdown: dict) -> float:
    return sum(part for name, part in breakdown.items() if name != HIDDEN)


@pytest.mark.parametrize("name", WRITTEN)
def test_the_parts_of_each_approved_step_add_up_to_it(name):
    for launch in launches(WRITTEN[name]):
        step_ms = sum(launch["step_ms"]) / len(launch["step_ms"])
        assert launch["devices"]
        for device in launch["devices"]:
            parts_ms = device["breakdown_ms"]
            assert sum_of(parts_ms) == pytest.approx(step_ms, rel=CLOSE)
            assert abs(parts_ms["other"]) < CLOSE * step_ms
            assert device["bubble"]["measured"] == pytest.approx(parts_ms["bubble"] / step_ms)
            assert parts_ms[HIDDEN] <= parts_ms["compute"]


@pytest.mark.parametrize("name", WRITTEN)
def test_each_approved_row_has_a_summary_of_its_launches(name):
    results = WRITTEN[name]
    rows = {entry["run_name"] for entry in results["benchmarks"]}
    summaries = [own["summary"] for own in launches(results) if "summary" in own]
    assert len(summaries) == len(rows)
    for summary in summaries:
        if summary["error"] is None:
            mean_ms = summary["mean_ms"]
            assert sum_of(summary["breakdown_ms"]) == pytest.approx(mean_ms, rel=CLOSE)
