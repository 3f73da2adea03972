import json

import pytest
from peer_comparison.contender import (
    parse_benchmark,
    parse_peer,
    parse_stratagem,
    parse_training,
)
from stratagem_reports.comparison.launch import LaunchError, Output


def row(strategy="single", cores=1, **changes):
    own = {
        "strategy": strategy,
        "config": {"cores_per_device": cores},
        "step_ms": [20.0, 22.0],
        "loss": [0.5, 0.4],
        "verification": {"passed": True},
        "proof": {"passed": True},
    }
    own.update(changes.pop("own", {}))
    return {
        "name": f"{strategy}/cores:{cores}",
        "run_type": "iteration",
        "stratagem": own,
    } | changes


def results(*rows):
    return Output("", json.dumps({"context": {}, "benchmarks": list(rows)}), 1.0)


def test_peer_line_is_found_among_other_output():
    line = {"peer": "p", "step_ms": [1.5, 2], "loss": 0.25, "torch": "2", "allocator": "system"}
    found = parse_peer("system")(Output(f"a warning\n{json.dumps(line)}\n", "", 1.0))
    assert found.step_ms == (1.5, 2.0)
    assert found.loss == 0.25
    assert found.details == {"peer": "p", "torch": "2", "allocator": "system"}


@pytest.mark.parametrize(
    ("stdout", "message"),
    [
        ("", "no JSON line"),
        ("{broken", "broken"),
        ('{"step_ms": []}', "step_ms"),
        ('{"step_ms": [1, -1]}', "step_ms"),
        ('{"step_ms": [NaN]}', "step_ms"),
        ('{"step_ms": ["1"]}', "step_ms"),
        ('{"loss": 1}', "step_ms"),
        ('{"step_ms": [1], "allocator": "system"}', "allocator system, not jemalloc"),
    ],
)
def test_a_peer_that_answers_badly_is_refused(stdout, message):
    with pytest.raises(LaunchError, match=message):
        parse_peer("jemalloc")(Output(stdout, "", 1.0))


def test_stratagem_row_with_one_core_is_taken():
    output = results(
        row(cores=2, own={"step_ms": [9.0]}), row(), row(run_type="aggregate"), row("pipeline")
    )
    found = parse_stratagem("single")(output)
    assert found.step_ms == (20.0, 22.0)
    assert found.loss == 0.4


def test_a_row_of_a_gpu_has_no_cores():
    assert parse_stratagem("single")(results(row(cores=None))).loss == 0.4


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (Output("", "", 1.0), "no readable results file"),
        (Output("", "[]", 1.0), "no readable results file"),
        (results(), "0 rows of single"),
        (results(row(), row()), "2 rows of single"),
        (results(row(error_occurred=True, error_message="out of memory")), "out of memory"),
        (results(row(own={"verification": None})), "verification is missing"),
        (results(row(own={"verification": {"passed": False}})), "did not pass"),
        (results(row(own={"proof": None})), "proof is missing"),
        (results(row(own={"proof": {"passed": False}})), "did not pass"),
    ],
)
def test_a_bad_results_file_is_refused(output, message):
    with pytest.raises(LaunchError, match=message):
        parse_stratagem("single")(output)


def training(*steps, **changes):
    events = [{"event": "epoch"}, *({"event": "step", "loss": 0.25, **step} for step in steps)]
    content = {"trainings": [{"name": "toy", "events": events}]} | changes
    return Output("", json.dumps(content), 1.0)


def test_an_epoch_takes_what_lies_between_the_ends_of_two():
    found = parse_training(
        training(
            {"epoch": 0, "step": 3, "seconds": 0.5},
            {"epoch": 0, "step": 4, "seconds": 0.6},
            {"epoch": 1, "step": 8, "seconds": 0.8},
            {"epoch": 2, "step": 10, "seconds": 1.0},
        )
    )
    assert found.step_ms == pytest.approx((150, 50, 100))
    assert found.loss == 0.25
    assert found.details == {"row": "toy"}


@pytest.mark.parametrize(
    "output",
    [
        Output("", "", 1.0),
        Output("", "[]", 1.0),
        training(),
        training({"epoch": 0, "step": 4}),
        training({"epoch": 0, "step": 4, "seconds": 1}, trainings=[]),
    ],
)
def test_a_training_that_is_not_whole_is_refused(output):
    with pytest.raises(LaunchError, match="no readable training"):
        parse_training(output)


def benchmark_row(**changes):
    row = {"name": "loader", "cpu_time": 300.0, "time_unit": "ms", "batches": 150.0}
    return Output(json.dumps({"benchmarks": [row | changes]}), "", 1.0)


def test_a_benchmarks_row_is_processor_time_of_a_batch():
    assert parse_benchmark(benchmark_row()).step_ms == (2.0,)
    assert parse_benchmark(benchmark_row(time_unit="us")).step_ms == (0.002,)


@pytest.mark.parametrize(
    "output",
    [
        Output("", "", 1.0),
        Output(json.dumps({"benchmarks": []}), "", 1.0),
        benchmark_row(time_unit="h"),
        benchmark_row(batches="many"),
        benchmark_row(batches=0.0),
    ],
)
def test_a_benchmark_without_its_row_is_refused(output):
    with pytest.raises(LaunchError, match="no readable row"):
        parse_benchmark(output)
