"""Real builds against each other, by the script that CI uses, on a tiny configuration."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from stratagem_reports.comparison.result_set import deterministic_values
from stratagem_reports.results.load import load_results

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def compare_builds(commands, tmp_path):
    """Compares the build with itself; one side may meet faults, each in the rows of a strategy."""

    def run(faults: dict[str, str], *options: str):
        build = head = commands.programs.parent
        if faults:
            head = tmp_path / "head"
            (head / "bin").mkdir(parents=True)
            script = head / "bin" / "stratagem"
            chosen = [
                f'  {rows}) export STRATAGEM_TEST_FAULT={fault} ;;\n'
                for rows, fault in faults.items()
            ]
            script.write_text(
                '#!/bin/sh\ncase "$*" in\n' + "".join(chosen) + "esac\n"
                f'exec {build}/bin/stratagem "$@"\n'
            )
            os.chmod(script, 0o755)
        folder = tmp_path / "comparison"
        done = subprocess.run(
            [ROOT / "tools" / "compare_builds", build, head, folder, "--tiny", *options],
            env=commands.environment, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        document = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
        return done, document, (folder / "comparison.md").read_text(encoding="utf-8")

    return run


@pytest.mark.night
def test_an_unchanged_build_passes(compare_builds):
    done, document, text = compare_builds({})
    assert done.returncode == 0, done.stderr + done.stdout
    assert [row["exact"] for row in document["rows"]] == [[], [], []]
    assert text.startswith(("### No regression found: 3 rows", "### Undecided: 3 rows"))
    assert "step by step in turns" in " ".join(document["notes"])


def test_an_operator_more_and_an_all_reduce_more_fail(compare_builds):
    """Each row is measured in a launch of its own, so each meets its own fault."""
    done, document, text = compare_builds({
        '*"--only pipeline/"*': "operator@0F0@pipeline",
        '*"--only ddp/"*': "all_reduce@0F0@ddp",
    })
    assert done.returncode == 1, done.stderr + done.stdout
    rows = {row["name"].split("/")[0]: row for row in document["rows"] if row["regression"]}
    assert rows.keys() == {"pipeline", "ddp"}
    assert [change["metric"] for change in rows["pipeline"]["exact"]] == ["aten_operators"]
    changed = {change["metric"]: change for change in rows["ddp"]["exact"]}
    calls = changed["communication.all_reduce.calls"]
    assert calls["head"] == calls["base"] + 1
    assert "communication.all_reduce.calls" in text


@pytest.mark.parametrize(
    ("fault", "code"),
    [("", 0), pytest.param("operator@0F0@pipeline", 1, marks=pytest.mark.night)],
)
def test_deterministic_metrics_alone_need_one_launch_of_each_build(compare_builds, fault, code):
    done, document, text = compare_builds({"run*": fault} if fault else {}, "--exact-only")
    assert done.returncode == code, done.stderr + done.stdout
    assert (document["times_compared"], document["interleaved"]["rounds"]) == (False, 1)
    worse = [row["name"].split("/")[0] for row in document["rows"] if row["regression"]]
    assert worse == (["pipeline"] if fault else [])
    assert "times were not compared" in text


@pytest.mark.parametrize(
    ("model", "strategies", "options"),
    [
        ("toy", "single,model_parallel,pipeline,ddp", ["--split-size", 4]),
        ("toy", "ddp_model_parallel", ["--devices", 4, "--oversubscribe", "--split-size", 2]),
        (
            "gpt-tiny",
            "pipeline",
            ["--ranks", 2, "--schedule", "naive,gpipe,zb_h1,interleaved_1f1b", "--split-size", 4],
        ),
        ("gpt-tiny", "tensor_parallel,sequence_parallel", []),
        ("resnet18", "ddp", ["--image-size", 33]),
    ],
)
@pytest.mark.parametrize("launches", [2, pytest.param(20, marks=pytest.mark.night)])
def test_launches_count_the_same(commands, out, launches, model, strategies, options):
    """What the results call deterministic is so, for every strategy and every schedule."""
    done = commands.stratagem(
        "run", "--model", model, "--strategy", strategies, "--global-batch-size", 8,
        *options, "--steps", 1, "--repetitions", launches, "--no-verify", "--no-predict",
        "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    metrics = commands.results(out)["context"]["stratagem"]["metrics"]
    deterministic = {name for name, metric in metrics.items() if metric["deterministic"]}
    for row in load_results(out).rows:
        seen = defaultdict(set)
        for repetition in row.repetitions:
            for name, value in deterministic_values(repetition).items():
                if name.split(".")[0] in deterministic:
                    seen[name].add(value)
        assert len(row.repetitions) == launches
        assert {"aten_operators", "live_micro_batches", "flops_per_step"} <= seen.keys()
        assert {name: values for name, values in seen.items() if len(values) > 1} == {}, row.name
