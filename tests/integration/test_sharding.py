"""State sharded over replicas, and half formats beside float32, through the command."""

from __future__ import annotations

import pytest

GPT = ["--model", "gpt-tiny", "--global-batch-size", 8, "--optimizer", "adamw"]
GROUPS = 5  # the embedding, two blocks, the last normalisation, the head
FLOAT32, BFLOAT16 = 4, 2


def rows(commands, out, *options):
    done = commands.stratagem(
        "run", *GPT, "--devices", 2, "--repetitions", 1, *options, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return commands.results(out)


def only(commands, results, strategy):
    (run,) = commands.iterations(results, strategy)
    assert run["stratagem"]["verification"]["passed"] is True
    return run["stratagem"]


def wire(measured):
    return {name: calls["wire_bytes"] for name, calls in measured["communication"].items()}


def test_shards_cost_the_bytes_of_replicas_and_parameters_half_of_them_more(commands, out):
    results = rows(commands, out, "--strategy", "ddp,zero1,zero2,zero3")
    gradients = wire(only(commands, results, "ddp"))["all_reduce"]  # of two ranks: all of them
    for strategy in ("zero1", "zero2"):
        measured = only(commands, results, strategy)
        assert measured["communication"]["reduce_scatter"]["calls"] == GROUPS
        assert measured["communication"]["all_gather"]["calls"] == GROUPS
        # Padding is of at most 128 bytes a parameter.
        assert sum(wire(measured).values()) == pytest.approx(gradients, rel=0.03)
    zero3 = only(commands, results, "zero3")
    assert gradients < sum(wire(zero3).values()) <= 1.5 * 1.03 * gradients
    kinds = {event["kind"] for event in zero3["timeline"]}
    assert {"gather_transfer", "scatter_transfer", "unshard_wait", "reshard"} <= kinds


def test_a_rank_holds_its_part_of_the_state(commands, out):
    results = rows(commands, out, "--strategy", "ddp,zero1,zero2,zero3")
    held = {}
    for strategy in ("ddp", "zero1", "zero2", "zero3"):
        memory = only(commands, results, strategy)["devices"][0]["memory_bytes"]
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


def test_half_formats_halve_what_travels_and_keep_float32(commands, out):
    results = rows(
        commands, out, "--strategy", "zero2", "--mixed-precision", "none,bfloat16,float16",
        "--loss-scale", 1024,
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
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(commands, out, options, message):
    done = commands.stratagem("run", *GPT, "--devices", 2, *options, "--out", out)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
