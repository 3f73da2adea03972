"""State sharded over replicas, and half formats beside float32, through the command."""

from __future__ import annotations

import re

import pytest

GPT = ["--model", "gpt-tiny", "--global-batch-size", 8, "--optimizer", "adamw"]
GROUPS = 5  # the embedding, two blocks, the last normalisation, the head
FLOAT32, BFLOAT16 = 4, 2
TOGETHER = pytest.mark.xdist_group("sharding")


def rows(commands, out, *options, devices=2):
    done = commands.stratagem(
        "run", *GPT, "--devices", devices, "--repetitions", 1, *options, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return commands.results(out)


def only(commands, results, strategy):
    (run,) = commands.iterations(results, strategy)
    assert run["stratagem"]["verification"]["passed"] is True
    return run["stratagem"]


def wire(measured):
    return {name: calls["wire_bytes"] for name, calls in measured["communication"].items()}


@pytest.fixture(scope="module")
def stages(module_commands, module_folder):
    """Replicas that shard nothing, and each stage of what they shard, in one table."""
    out = module_folder / "stages.json"
    return rows(module_commands, out, "--strategy", "ddp,zero1,zero2,zero3")


@TOGETHER
def test_shards_cost_the_bytes_of_replicas_and_parameters_half_of_them_more(commands, stages):
    gradients = wire(only(commands, stages, "ddp"))["all_reduce"]  # of two ranks: all of them
    for strategy in ("zero1", "zero2"):
        measured = only(commands, stages, strategy)
        assert measured["communication"]["reduce_scatter"]["calls"] == GROUPS
        assert measured["communication"]["all_gather"]["calls"] == GROUPS
        # Padding is of at most 128 bytes a parameter.
        assert sum(wire(measured).values()) == pytest.approx(gradients, rel=0.03)
    zero3 = only(commands, stages, "zero3")
    assert gradients < sum(wire(zero3).values()) <= 1.5 * 1.03 * gradients
    kinds = {event["kind"] for event in zero3["timeline"]}
    assert {"gather_transfer", "scatter_transfer", "unshard_wait", "reshard"} <= kinds


@TOGETHER
def test_a_rank_holds_its_part_of_the_state(commands, stages):
    held = {}
    for strategy in ("ddp", "zero1", "zero2", "zero3"):
        memory = only(commands, stages, strategy)["devices"][0]["memory_bytes"]
        held[strategy] = {
            name: memory[name]["peak"] for name in ("parameters", "gradients", "optimizer")
        }
        for name, bytes_of in held[strategy].items():
            assert memory[name]["formula"] == bytes_of
    whole = held["ddp"]["parameters"]
    for strategy, sharded in (
        ("zero1", ["optimizer"]),
        ("zero2", ["gradients", "optimizer"]),
        ("zero3", ["parameters", "gradients", "optimizer"]),
    ):
        for name, bytes_of in held[strategy].items():
            expected = whole * (2 if name == "optimizer" else 1)
            if name in sharded:
                expected /= 2
            assert bytes_of == pytest.approx(expected, rel=0.03), (strategy, name)


def test_groups_of_replicas_hold_the_same_shards_and_sum_their_gradients(commands, out):
    results = rows(
        commands, out, "--strategy", "zero2", "--replicas-of-shards", "1,2", "--oversubscribe",
        "--clip-gradients", 0.01, "--no-predict", devices=4,
    )  # fmt: skip
    by_groups = {
        run["stratagem"]["config"]["replicas_of_shards"]: run["stratagem"]
        for run in commands.iterations(results, "zero2")
    }
    parameters = by_groups[1]["devices"][0]["memory_bytes"]["parameters"]["formula"]
    for groups, shards in ((1, 4), (2, 2)):
        measured = by_groups[groups]
        assert measured["verification"]["passed"] is True
        optimizer = measured["devices"][0]["memory_bytes"]["optimizer"]
        assert optimizer["peak"] == optimizer["formula"]
        assert optimizer["formula"] == pytest.approx(2 * parameters / shards, rel=0.05)
        for collective in ("reduce_scatter", "all_gather"):
            expected = (shards - 1) / shards * parameters
            assert wire(measured)[collective] == pytest.approx(expected, rel=0.05)
    assert by_groups[1]["communication"]["all_reduce"]["calls"] == 1, "of the norm"
    sums = by_groups[2]["communication"]["all_reduce"]
    assert sums["calls"] == GROUPS + 1
    assert sums["payload_bytes"] == pytest.approx(parameters / 2, rel=0.05)
    kinds = {event["kind"] for event in by_groups[2]["timeline"]}
    assert {"all_reduce_start", "all_reduce", "all_reduce_wait"} <= kinds


def test_half_formats_halve_what_travels_and_keep_float32(commands, out):
    results = rows(
        commands, out, "--strategy", "zero2", "--mixed-precision", "none,bfloat16,float16",
        "--loss-scale", 1024, "--no-predict",
    )  # fmt: skip
    by_format = {
        run["stratagem"]["config"]["mixed_precision"]: run["stratagem"]
        for run in commands.iterations(results, "zero2")
    }
    whole = sum(wire(by_format["none"]).values())
    for name in ("bfloat16", "float16"):
        assert by_format[name]["verification"]["passed"] is True
        half = sum(wire(by_format[name]).values())
        assert half == pytest.approx(whole * BFLOAT16 / FLOAT32, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--strategy", "zero1", "--mesh", "data=1/pipeline=2", "--split-size", 4],
            "data=1: zero1 has no replicas",
        ),
        (["--strategy", "tensor_parallel", "--shard", "optimizer"], "has no replicas"),
        (["--strategy", "ddp", "--shard", "optimizer", "--bucket-mb", 5], "--bucket-mb"),
        (["--strategy", "zero1", "--loss-scale", 8], "--loss-scale"),
        (["--strategy", "zero1", "--mixed-precision", "float16", "--loss-scale", "much"], "much"),
        (["--strategy", "zero1", "--loss-scale-hysteresis", 2], "--loss-scale-hysteresis"),
        (
            ["--strategy", "zero1", "--mixed-precision", "bfloat16", "--loss-scale-hysteresis", 2],
            "--loss-scale-hysteresis",
        ),
        (
            ["--strategy", "zero1", "--mixed-precision", "float16", "--loss-scale", 8,
             "--loss-scale-hysteresis", 2],
            "--mixed-precision float16 --loss-scale dynamic",
        ),
        (
            ["--strategy", "single", "--mixed-precision", "bfloat16", "--dtype", "float64"],
            "--dtype",
        ),
        (["--strategy", "data_parallel", "--mixed-precision", "bfloat16"], "--mixed-precision"),
        (["--strategy", "zero1", "--no-reshard-after-forward"], "--no-reshard-after-forward"),
        (["--strategy", "ddp", "--prefetch-groups", 2], "--prefetch-groups"),
        (["--strategy", "ddp", "--replicas-of-shards", 2], "--replicas-of-shards"),
        (["--strategy", "zero1", "--replicas-of-shards", 2], "nothing is sharded; give fewer"),
        (["--strategy", "zero3", "--replicas-of-shards", 3], "2 replicas cannot be split"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(commands, out, options, message):
    done = commands.stratagem("run", *GPT, "--devices", 2, *options, "--out", out)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@TOGETHER
def test_a_devices_peak_is_predicted(commands, stages):
    for strategy in ("zero1", "zero2", "zero3"):
        measured = only(commands, stages, strategy)
        peak = max(device["peak_memory_bytes"] for device in measured["devices"])
        # Gloo's threads may let go of a transfer's memory a little later than it is waited for.
        assert measured["predicted_peak_memory_bytes"] == pytest.approx(peak, rel=0.1)
        assert measured["predicted_ms"] > 0


def simulate(commands, *options):
    return commands.stratagem("simulate", "--calibrated", *GPT, "--devices", 2, *options)


def test_a_budget_chooses_window_and_resharding(commands):
    zero3 = simulate(commands, "--strategy", "zero3", "--memory-budget", "1G")
    assert zero3.returncode == 0, zero3.stderr
    choices = [line for line in zero3.stderr.splitlines() if "--prefetch-groups" in line]
    assert len(choices) == 10 and all("fits" in line for line in choices)
    assert "MiB at most on a device" in zero3.stdout

    tight = simulate(commands, "--strategy", "zero3", "--memory-budget", "0.1M")
    assert tight.returncode == 2
    assert "--memory-budget: zero3 needs" in tight.stderr.splitlines()[-1]
    assert "--prefetch-groups 0" in tight.stderr.splitlines()[-1]

    for strategy, budget, words in (
        ("data_parallel", "1G", "no predicted memory"),
        ("zero3", "many", "as 800M"),
    ):
        refused = simulate(commands, "--strategy", strategy, "--memory-budget", budget)
        assert refused.returncode == 2
        assert words in refused.stderr


def test_a_budget_chooses_the_least_recomputation(commands):
    pipeline = ("--strategy", "pipeline", "--split-size", 1, "--cut", "blocks.1")
    roomy = simulate(commands, *pipeline, "--memory-budget", "1G")
    assert roomy.returncode == 0, roomy.stderr
    assert re.findall("(fits|too large) +--recompute ([a-z]+)", roomy.stderr) == [("fits", "none")]

    tight = simulate(commands, *pipeline, "--memory-budget", "0.1M")
    assert tight.returncode == 2
    kinds = re.findall("([0-9.]+) MiB  too large  --recompute ([a-z]+)", tight.stderr)
    assert [kind for _, kind in kinds] == ["none", "selective", "full"]
    peaks = [float(peak) for peak, _ in kinds]
    assert peaks[0] > peaks[1] and peaks[0] > peaks[2]
    assert "--memory-budget: pipeline needs" in tight.stderr.splitlines()[-1]

    between = simulate(commands, *pipeline, "--memory-budget", f"{(peaks[0] + peaks[1]) / 2:.4f}M")
    assert "recompute:selective" in between.stdout

    both = simulate(commands, *pipeline, "--memory-budget", "1G", "--recompute", "full")
    assert both.returncode == 2
    assert "--memory-budget chooses --recompute" in both.stderr
