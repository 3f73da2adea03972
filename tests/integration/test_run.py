"""`stratagem run` from the command line to the file, with rows that fail and runs that are stopped."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest

# Small enough for a second: two linear layers.
TOY = ["--model", "toy", "--global-batch-size", "20"]
GRID = [*TOY, "--strategy", "single,model_parallel,pipeline", "--split-size", "5,7"]
MEASURED_ALONE = ["--no-verify", "--no-predict"]
REPETITION_KEYS = {
    "strategy", "model", "mesh", "config", "step_ms", "per_rank_ms", "devices", "timeline",
    "predicted_ms", "communication", "flops_per_step", "mfu", "loss", "verification", "error",
}  # fmt: skip
BREAKDOWN_KEYS = {
    "compute", "communication_exposed", "communication_hidden", "wait", "bubble", "optimizer",
    "input_copy", "other",
}  # fmt: skip


def iterations(results: dict, **wanted) -> list[dict]:
    return [
        run
        for run in results["benchmarks"]
        if run["run_type"] == "iteration"
        and all(run["stratagem"][key] == value for key, value in wanted.items())
    ]


def test_a_grid_ends_as_results_table_and_trace(commands, out, tmp_path):
    trace = tmp_path / "trace.json"
    done = commands.stratagem("run", *GRID, "--repetitions", 2, "--out", out, "--trace", trace)
    assert done.returncode == 0, done.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) > 10
    # Which of the two it says is the machine's affair: these rows take a millisecond.
    assert "fastest" in done.stdout or "cannot tell" in done.stdout
    assert "split:7" in done.stdout
    assert "\x1b" not in done.stderr, "no progress line where there is no terminal"
    assert not commands.partial_of(out).exists()

    results = commands.results(out)
    context = results["context"]["stratagem"]
    assert context["schema"] == "stratagem/1"
    assert set(context["fingerprint"]) == {"hardware", "software"}
    assert context["calibration"]["gemm_gflops"] > 0
    names = {run["run_name"] for run in results["benchmarks"]}
    assert "pipeline/toy/devices:2/batch:20/split:7/schedule:1f1b" in names
    rows = 4 if len(os.sched_getaffinity(0)) < 2 else 5
    assert len(names) == rows
    for run in iterations(results):
        assert run["time_unit"] == "ms" and run["repetitions"] == 2
        record = run["stratagem"]
        assert REPETITION_KEYS <= set(record)
        assert record["error"] is None
        assert record["verification"]["passed"] is True
        assert record["verification"]["own_arithmetic"]["passed"] is True
        assert len(record["step_ms"]) == record["config"]["steps"] == len(record["loss"])
        assert run["real_time"] == pytest.approx(sum(record["step_ms"]) / len(record["step_ms"]))
        for device in record["devices"]:
            breakdown = device["breakdown_ms"]
            assert set(breakdown) == BREAKDOWN_KEYS
            parts = sum(breakdown.values()) - breakdown["communication_hidden"]
            assert parts == pytest.approx(run["real_time"], rel=1e-6)
    for run in iterations(results, strategy="pipeline"):
        assert run["stratagem"]["predicted_ms"] > 0
        assert run["stratagem"]["config"]["cut"]
    for run in iterations(results, strategy="single"):
        assert run["stratagem"]["predicted_ms"] is None


def test_kernels_stand_side_by_side_in_one_table(commands, out):
    done = commands.stratagem(
        "run", "--model", "gpt-tiny", "--global-batch-size", 4, "--steps", 1,
        "--strategy", "pipeline", "--split-size", 2, "--kernels", "own,reference",
        "--repetitions", 1, "--no-repeat-disturbed", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "kernels:reference" in done.stdout
    own, reference = iterations(commands.results(out))
    assert reference["name"] == own["name"] + "/kernels:reference"
    for run, kernels in ((own, "own"), (reference, "reference")):
        record = run["stratagem"]
        assert record["config"]["kernels"] == record["kernels"] == kernels
        assert record["verification"]["passed"] and record["predicted_ms"] > 0
    assert own["aten_operators"] != reference["aten_operators"]
    workloads = {run["stratagem"]["summary"]["workload"] for run in (own, reference)}
    assert len(workloads) == 1
    beside = own["stratagem"]["summary"]  # a ratio where nothing ran beside them
    assert set(beside["ratios"]) | set(beside["cannot_tell"]) == {reference["name"]}


def test_json_on_standard_output_is_alone_there_and_without_verification_has_none(commands):
    done = commands.stratagem("run", *TOY, *MEASURED_ALONE, "--repetitions", 1, "--out", "-")
    assert done.returncode == 0, done.stderr
    runs = iterations(json.loads(done.stdout))
    assert runs and all(run["stratagem"]["verification"] is None for run in runs)


def test_one_core_of_several_is_enough_for_a_row_of_one(commands):
    (core, *_) = sorted(os.sched_getaffinity(0))
    row = (*TOY, *MEASURED_ALONE, "--strategy", "single", "--repetitions", 1)
    program = commands.programs / "stratagem"
    process = commands.start_command(["taskset", "--cpu-list", core, program, "run", *row])
    run = commands.finish(process)
    assert run.returncode == 0, run.stderr
    assert "cores:2" not in run.stdout


def test_a_full_disk_loses_the_file_and_not_the_table(commands):
    row = [*TOY, *MEASURED_ALONE, "--repetitions", 1]
    done = commands.stratagem("run", *row, "--out", "/dev/full")
    assert done.returncode == 4, done.stderr
    assert "/dev/full" in done.stderr.splitlines()[-1]
    assert "step ms" in done.stdout


def test_the_tutorials_protocol_repeats_inside_one_launch(commands, out):
    done = commands.stratagem(
        "run", *TOY, "--strategy", "model_parallel", "--protocol", "tutorial",
        "--repetitions", 3, "--steps", 2, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    runs = iterations(commands.results(out))
    assert [run["repetition_index"] for run in runs] == [0, 1, 2]
    for run in runs:
        measured = run["stratagem"]
        assert len(measured["step_ms"]) == 2
        for device in measured["devices"]:
            parts = device["breakdown_ms"]
            total = sum(parts.values()) - parts["communication_hidden"]
            assert total == pytest.approx(run["real_time"], rel=1e-6)


@pytest.mark.parametrize(
    ("fault", "timeout", "words"),
    [
        ("throw@1B0@pipeline", "60", ["an injected fault"]),
        ("kill@1B0@pipeline", "60", ["killed (out of memory?)"]),
        ("exhaust@1F0@pipeline", "60", ["memory"]),
        ("hang@1F0@pipeline", "1", ["1F0"]),
        # Late, and back while whoever waited for it goes.
        ("work=1800@1F0@pipeline", "1", ["cpu:1 has been in 1F0 for more than 1 s (--timeout)"]),
    ],
)
def test_a_row_that_fails_leaves_the_others(commands, out, fault, timeout, words):
    done = commands.stratagem(
        "run", *TOY, "--strategy", "model_parallel,pipeline", "--split-size", 5,
        "--repetitions", 2, "--timeout", timeout, "--out", out, *MEASURED_ALONE,
        STRATAGEM_TEST_FAULT=fault,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    commands.marked.expect_none()
    results = commands.results(out)
    assert len(iterations(results, strategy="model_parallel")) == 2
    for launch in iterations(results, strategy="model_parallel"):
        assert "test_fault" in launch["stratagem"]["marks"]
    (failed,) = iterations(results, strategy="pipeline")
    assert failed["error_occurred"] is True
    error = failed["stratagem"]["error"]
    assert set(error) == {"rank", "host", "last_action", "message"}
    told = error["message"] + " " + error["last_action"]
    for word in words:
        assert word in told
        assert word in done.stderr + error["last_action"]
    assert "\n" not in error["message"]
    assert "Traceback" not in done.stderr and "frame #" not in done.stderr


def start_long_run(commands, out, *more, **variables):
    process = commands.start(
        "stratagem", "run", *GRID, *MEASURED_ALONE, "--repetitions", 100, "--out", out, *more,
        **variables,
    )  # fmt: skip
    commands.wait_until(lambda: commands.finished_launches(out) >= 3 or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_finished(commands, out, number):
    process = start_long_run(commands, out)
    process.send_signal(number)
    done = commands.finish(process)
    assert done.returncode == 130
    assert "--resume" in done.stderr and str(commands.partial_of(out)) in done.stderr
    assert not out.exists()
    kept = commands.finished_launches(out)
    assert kept >= 3
    commands.marked.expect_none()

    resumed = commands.stratagem(
        "run", *GRID, *MEASURED_ALONE, "--repetitions", 2, "--out", out, "--resume"
    )
    assert resumed.returncode == 0, resumed.stderr
    assert "taken over" in resumed.stderr
    assert not commands.partial_of(out).exists()
    results = commands.results(out)
    assert {run["repetitions"] for run in iterations(results)} == {2}


def test_resume_refuses_another_grid(commands, out):
    process = start_long_run(commands, out)
    process.send_signal(signal.SIGINT)
    commands.finish(process)
    before = commands.partial_of(out).read_bytes()
    done = commands.stratagem("run", *TOY, "--steps", 5, "--out", out, "--resume")
    assert done.returncode == 2
    assert "rows" in done.stderr
    assert commands.partial_of(out).read_bytes() == before


def test_a_worker_dies_with_its_controller(commands, out):
    process = commands.start(
        "stratagem", "run", *TOY, "--strategy", "pipeline", "--split-size", 5, *MEASURED_ALONE,
        "--out", out, STRATAGEM_TEST_FAULT="hang@1F0@pipeline",
    )  # fmt: skip
    partial = commands.partial_of(out)
    commands.wait_until(lambda: partial.exists() and commands.children_of(process.pid))
    process.kill()
    process.wait()
    commands.marked.expect_none(limit_s=20)


def test_the_second_run_waits_for_the_first(commands, out, tmp_path):
    first = start_long_run(commands, out)
    second_out = tmp_path / "second.json"
    second = commands.start(
        "stratagem", "run", *TOY, *MEASURED_ALONE, "--repetitions", 1, "--timeout", 100,
        "--out", second_out,
    )  # fmt: skip
    line = ""
    while "waiting for cores" not in line:
        line = second.stderr.readline()
        assert line, "the second run ended without waiting"
    assert f"process {first.pid}" in line
    first.send_signal(signal.SIGINT)
    commands.finish(first)
    done = commands.finish(second)
    assert done.returncode == 0, done.stderr
    marks = [run["stratagem"]["marks"] for run in iterations(commands.results(second_out))]
    assert marks and all("waited" in mark and "shared_cores" not in mark for mark in marks)


def test_after_the_timeout_the_second_run_gives_up(commands, out, tmp_path):
    first = start_long_run(commands, out)
    second_out = tmp_path / "second.json"
    done = commands.stratagem(
        "run", *TOY, "--repetitions", 1, "--timeout", 2, "--out", second_out
    )
    assert done.returncode == 4, done.stderr
    last = done.stderr.splitlines()[-1]
    assert f"in use by process {first.pid} after 2 s" in last and "--oversubscribe" in last
    assert not second_out.exists() and not commands.partial_of(second_out).exists()


@pytest.mark.parametrize("timed", [False, pytest.param(True, marks=pytest.mark.night)])
def test_two_runs_on_the_same_cores_are_both_marked(commands, out, tmp_path, timed):
    if timed:
        commands.environment.pop("STRATAGEM_UNTIMED")
    first = start_long_run(commands, out)
    second_out = tmp_path / "second.json"
    done = commands.stratagem(
        "run", *TOY, *MEASURED_ALONE, "--repetitions", 1, "--timeout", 1, "--oversubscribe",
        "--out", second_out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    marks = [run["stratagem"]["marks"] for run in iterations(commands.results(second_out))]
    expected = {"shared_cores", "disturbed"} if timed else {"shared_cores"}
    assert marks and all(expected <= set(mark) for mark in marks)
    first.send_signal(signal.SIGINT)
    last = commands.finish(first)
    assert "was disturbed: " in last.stderr or not timed


def test_two_runs_do_not_write_one_file(commands, out, tmp_path):
    first = start_long_run(commands, out)
    before = commands.finished_launches(out)
    done = commands.stratagem(
        "run", *TOY, "--out", out, STRATAGEM_LOCK_FOLDER=str(tmp_path)
    )
    assert done.returncode == 2, done.stderr
    assert str(commands.partial_of(out)) in done.stderr and "another run" in done.stderr
    commands.wait_until(lambda: commands.finished_launches(out) > before)
    first.send_signal(signal.SIGINT)
    assert commands.finish(first).returncode == 130


def test_what_disturbs_a_launch_is_found_and_the_launch_made_again(commands, out):
    """Beside loops of processes that each live for a fifth of a second."""
    commands.environment.pop("STRATAGEM_UNTIMED")
    loop = "while :; do timeout 0.2 sh -c 'while :; do :; done'; done"
    for _ in os.sched_getaffinity(0):
        commands.start_command(["sh", "-c", loop])
    done = commands.start_command(
        [commands.programs / "stratagem", "run", *TOY, *MEASURED_ALONE, "--strategy",
         "model_parallel", "--repetitions", 2, "--out", out]
    )  # fmt: skip
    done = commands.finish(done)
    assert done.returncode == 0, done.stderr
    assert "disturbed by other programs: used " in done.stderr
    assert "disturbed: " in done.stdout
    results = commands.results(out)
    assert any("other programs" in line for line in results["context"]["stratagem"]["disturbances"])
    by_row = {}
    for run in iterations(results):
        by_row.setdefault(run["run_name"], []).append(run["stratagem"])
    for launches in by_row.values():
        assert len(launches) == 4
        for launch in launches:
            conditions = launch["conditions"]
            assert "disturbed" in launch["marks"]
            assert conditions["other_processes_cores"] > 0.3
            assert len(conditions["canary_before_ms"]) == len(launch["devices"])
            assert len(conditions["canary_after_ms"]) == len(launch["devices"])


def test_a_launch_records_its_own_cores_unless_its_devices_share_one(commands, out):
    seen = {}
    for ids in ("0+1", "0+0"):
        done = commands.stratagem(
            "run", *TOY, *MEASURED_ALONE, "--strategy", "ddp", "--devices", 2, "--device-ids", ids,
            "--repetitions", 1, "--out", out,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (launch,) = (run["stratagem"] for run in iterations(commands.results(out)))
        seen[ids] = launch["conditions"]["own_cores"]
    assert len(seen["0+1"]["cores"]) == 2 and seen["0+1"]["seconds"] > 0
    assert seen["0+0"] is None


def test_a_calibration_that_was_kept_is_used_again(commands, out, tmp_path):
    commands.environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    launches, tables = [], []
    for options in ([], [], ["--recalibrate"], ["--no-predict"]):
        done = commands.stratagem(
            "run", *TOY, "--strategy", "pipeline", "--split-size", 5, "--no-verify",
            "--repetitions", 1, "--out", out, *options,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (entry,) = iterations(commands.results(out))
        launches.append(entry["stratagem"])
        tables.append(done.stdout)
    ages = [launch["predicted_from"]["age_s"] for launch in launches[:3]]
    assert ages[0] == ages[2] == 0 < ages[1] < 600
    assert "predicted: from stage costs measured in this run" in tables[0]
    assert re.search(r"predicted: from stage costs measured \d+ (s|min) ago", tables[1])
    assert "predicted: from stage costs measured in this run" in tables[2]
    assert launches[3]["predicted_ms"] is None and launches[3]["predicted_from"] is None
    assert "predicted" not in tables[3].split("ms", 1)[1]


def test_without_a_look_at_times_there_is_no_canary(commands, out):
    done = commands.stratagem("run", *TOY, *MEASURED_ALONE, "--repetitions", 1, "--out", out)
    assert done.returncode == 0, done.stderr
    results = commands.results(out)
    fingerprint = results["context"]["stratagem"]["fingerprint"]
    assert "STRATAGEM_UNTIMED=1" in fingerprint["software"]["environment"]
    for run in iterations(results):
        conditions = run["stratagem"]["conditions"]
        assert conditions["canary_before_ms"] == conditions["canary_after_ms"] == []


def test_oversubscribed_rows_are_marked(commands, out):
    devices = len(os.sched_getaffinity(0)) + 1
    if devices > 3:
        pytest.skip("toy has three layers: fewer than this machine has cores")
    done = commands.stratagem(
        "run", *TOY, *MEASURED_ALONE, "--strategy", "model_parallel", "--devices", devices,
        "--oversubscribe", "--repetitions", 1, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all("oversubscribed" in r["stratagem"]["marks"] for r in iterations(commands.results(out)))


def test_quiet_is_silent_but_for_errors(commands):
    done = commands.stratagem("run", *TOY, "--repetitions", 1, "--quiet")
    assert done.returncode == 0 and done.stderr == ""
    failed = commands.stratagem(
        "run", *TOY, *MEASURED_ALONE, "--strategy", "pipeline", "--split-size", 5,
        "--repetitions", 1, "--quiet", STRATAGEM_TEST_FAULT="throw@1B0@pipeline",
    )  # fmt: skip
    assert failed.returncode == 4
    assert failed.stderr.count("\n") == 1 and "an injected fault" in failed.stderr


def test_verify_compares_every_strategy(commands):
    done = commands.stratagem("verify", "--model", "toy", "--schedule", "gpipe,interleaved_1f1b")
    assert done.returncode == 0, done.stderr
    assert "interleaved" not in done.stdout  # four stages of three layers
    in_format = [done.stdout.count(f"  {name}  ") for name in ("float64", "float32")]
    assert in_format[0] == in_format[1] > 5, "two verdicts a row"
    for row in ("single/toy", "ddp/toy", "pipeline/toy", "tensor_parallel/toy", "schedule:gpipe"):
        assert row in done.stdout
    assert "DIFFERS" not in done.stdout and "LOST" not in done.stdout


@pytest.mark.parametrize(
    ("model", "image", "seeds"),
    [
        ("resnet18", 32, "1"),
        *(
            pytest.param(model, image, ",".join(map(str, range(1, 21))), marks=pytest.mark.night)
            for model in ("resnet18", "resnet50")
            for image in (32, 64)
        ),
    ],
)
def test_verify_refuses_no_schedule_whose_images_are_small(commands, model, image, seeds):
    commands.limit_s = 1800
    done = commands.stratagem(
        "verify", "--strategy", "pipeline", "--model", model, "--image-size", image,
        "--global-batch-size", 8, "--split-size", 2, "--seed", seeds,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("equal") >= 2 * 7 * len(seeds.split(","))


def test_calibrate(commands):
    done = commands.stratagem("calibrate", "--json")
    assert done.returncode == 0, done.stderr
    rates = json.loads(done.stdout)
    assert rates["gemm_gflops"] > 0 and rates["memory_gb_per_s"] > 0


def test_only_measures_the_rows_that_are_named(commands, out):
    grid = ["run", "--model", "toy", "--global-batch-size", 8, "--split-size", "2,4",
            "--strategy", "single,pipeline", "--steps", 1, "--repetitions", 1, *MEASURED_ALONE]  # fmt: skip
    done = commands.stratagem(*grid, "--only", "pipeline/", "--out", out)
    assert done.returncode == 0, done.stderr
    names = {entry["run_name"] for entry in commands.results(out)["benchmarks"]}
    assert len(names) == 2 and all(name.startswith("pipeline/") for name in names)
    # The name of one row is the beginning of another's: with all cores.
    done = commands.stratagem(*grid, "--only", "single/toy/devices:1/batch:8", "--out", out)
    assert {entry["run_name"] for entry in commands.results(out)["benchmarks"]} == {
        "single/toy/devices:1/batch:8"
    }
    done = commands.stratagem(*grid, "--only", "nosuch")
    assert done.returncode == 3 and done.stderr.count("\n") == 1
