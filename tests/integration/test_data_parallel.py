"""From nn.DataParallel to DDP through the command: rows, what they move, and what is refused."""

from __future__ import annotations

import pytest

GPT = ["--model", "gpt-tiny", "--global-batch-size", 6, "--devices", 2]
LADDER = [
    "--loss-on", "gathered,replicas", "--replicate", "step,kept", "--reduce", "after,overlapped",
    "--update", "first,everywhere", "--bucket-mb", 0.1,
]  # fmt: skip
LAST_RUNG = "loss_on:replicas/replicate:kept/reduce:overlapped/update:everywhere"


def test_every_combination_equals_one_device(commands):
    done = commands.stratagem("verify", *GPT, "--strategy", "data_parallel", *LADDER)
    assert done.returncode == 0, done.stderr
    # The update everywhere is there with copies that are kept alone.
    assert done.stdout.count(" equal ") == 24 and LAST_RUNG in done.stdout


def test_rungs_stand_beside_ddp(commands, out):
    rungs = ["--loss-on", "replicas", "--replicate", "kept", "--reduce", "overlapped"]
    rungs += ["--update", "first,everywhere", "--bucket-mb", 0.1]
    done = commands.stratagem(
        "run", *GPT, "--strategy", "data_parallel,ddp", *rungs, "--repetitions", 1, "--no-predict",
        "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, everywhere = commands.iterations(commands.results(out), "data_parallel")
    for row in (first, everywhere):
        own = row["stratagem"]
        assert own["verification"]["passed"] is True
        traffic = own["communication"]
        assert set(traffic) == {"replicate", "scatter", "sum_gradients"}
        # With two devices all parameters travel once, whoever updates them.
        assert traffic["replicate"]["payload_bytes"] == traffic["sum_gradients"]["payload_bytes"]
        assert traffic["replicate"]["calls"] > 2
        for device in own["devices"]:
            assert device["breakdown_ms"]["communication_exposed"] > 0
    assert first["stratagem"]["communication"] == everywhere["stratagem"]["communication"]
    updates = [
        {event["device"] for event in row["stratagem"]["timeline"] if event["kind"] == "optimizer"}
        for row in (first, everywhere)
    ]
    assert updates == [{0}, {0, 1}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--update", "everywhere"],
            "--update: has no effect on the chosen rows; it applies to --replicate kept",
        ),
        (["--bucket-mb", 4], "--bucket-mb: has no effect on the chosen rows"),
        (
            ["--loss-on", "replicas", "--output-device", 1],
            "--output-device 1: --loss-on replicas gathers no outputs; leave one of them out",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(commands, arguments, words):
    done = commands.stratagem("run", *GPT, "--strategy", "data_parallel", *arguments)
    assert done.returncode == 2
    assert words in done.stderr and len(done.stderr.strip().splitlines()) == 1
