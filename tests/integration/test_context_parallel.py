"""Positions shared by ranks, through the command: results, timeline, and what is refused."""

from __future__ import annotations

import pytest

GPT = ["--model", "gpt-tiny", "--global-batch-size", 8, "--optimizer", "adamw"]
BLOCKS, FEATURES, SEQUENCE = 2, 64, 32
OUTPUTS = 8 * SEQUENCE // 2 * FEATURES * 4  # bytes of a block's attention on one of two ranks


def test_each_exchange_stands_beside_one_device(commands, out):
    done = commands.stratagem(
        "run", *GPT, "--strategy", "single,context_parallel", "--no-predict", "--repetitions", 1,
        "--context-exchange", "heads,ring,gather", "--context-order", "zigzag,contiguous",
        "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = commands.iterations(commands.results(out), "context_parallel")
    assert len(rows) == 5  # heads have one order
    for row in rows:
        measured = row["stratagem"]
        assert measured["verification"]["passed"] and measured["proof"]["passed"]
        traffic = {name: each["payload_bytes"] for name, each in measured["communication"].items()}
        del traffic["all_reduce"]  # of gradients
        assert traffic == {
            "heads": {"all_to_all": BLOCKS * 8 * OUTPUTS},
            "ring": {"rotate": BLOCKS * 6 * OUTPUTS},
            "gather": {
                "all_gather": BLOCKS * 4 * OUTPUTS,
                "reduce_scatter": BLOCKS * 4 * OUTPUTS,
            },
        }[measured["config"]["context_exchange"]]
        by_aten = measured["config"]["context_exchange"] != "heads"
        assert measured["kernels"] == "own" + by_aten * "; ATen's for attention: keys of other ranks"
        kinds = {event["kind"] for event in measured["timeline"]}
        assert {"context_transfer", "context_wait"} <= kinds
        contiguous = measured["config"]["context_order"] == "contiguous"
        # 16 positions of the later rank see 16 more each.
        pairs = (16 * 16 + 16 * 17 / 2) * 2 / (32 * 33 / 2) if contiguous else 1
        assert row["attention_imbalance"] == pytest.approx(pairs)


def test_query_heads_of_a_group_send_their_keys_once(commands, out):
    done = commands.stratagem(
        "run", *GPT[2:], "--model", "llama-tiny", "--strategy", "context_parallel",
        "--no-predict", "--repetitions", 1, "--context-exchange", "heads,ring,gather", "--keep-gathered",
        "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {}
    for row in commands.iterations(commands.results(out), "context_parallel"):
        measured = row["stratagem"]
        assert measured["verification"]["passed"] and measured["proof"]["passed"]
        found[measured["config"]["context_exchange"]] = {
            name: each["payload_bytes"] / BLOCKS / OUTPUTS
            for name, each in measured["communication"].items()
            if name != "all_reduce"
        }
    assert found == {
        "heads": {"all_to_all": 6},
        "ring": {"rotate": 3},
        "gather": {"all_gather": 1, "reduce_scatter": 2},  # gathered once, because it is kept
    }


@pytest.mark.parametrize(
    "row",
    [
        ["--model", "gpt-tiny", "--mesh", "context=2/tensor=3", "--devices", 6],  # 2, 1 and 1 heads
        ["--model", "llama-tiny", "--mesh", "context=2/tensor=4", "--devices", 8],  # copies of heads
    ],
)
def test_ranks_with_other_shares_of_the_heads_count_what_they_send(commands, out, row):
    done = commands.stratagem(
        "run", "--strategy", "context_parallel", *row, "--context-exchange", "ring,gather",
        "--oversubscribe", "--global-batch-size", 4, "--repetitions", 1, "--no-predict",
        "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for row in commands.iterations(commands.results(out), "context_parallel"):
        assert row["stratagem"]["verification"]["passed"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--model", "resnet50"],
            "--mesh context=2: resnet50 has no positions that ranks can share; these models have: "
            "gpt-long, gpt-small,",
        ),
        (
            ["--model", "gpt-tiny", "--devices", 3, "--oversubscribe", "--sequence-length", 30],
            "--context-exchange heads: the 4 heads of gpt-tiny cannot be split evenly over 3 "
            "ranks; use ring or gather, or a number of ranks that divides them",
        ),
        (
            ["--model", "gpt-tiny", "--sequence-length", 30, "--context-exchange", "ring"],
            "--sequence-length 30: 30 tokens of a sample of gpt-tiny cannot be split into 4 equal "
            "parts for the ranks; possible: 28, 32",
        ),
        (
            ["--model", "gpt-tiny", "--ranks", 1],
            "--ranks 1: context parallelism needs one rank per device; leave it out, or give 2",
        ),
        (
            ["--model", "gpt-tiny", "--context-order", "striped"],
            "--context-order: has no effect on the chosen rows",
        ),
    ],
)
def test_what_ranks_cannot_share_is_refused_in_one_line(commands, options, told):
    done = commands.stratagem("run", "--strategy", "context_parallel", *options)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and told in done.stderr


def test_verify_refuses_what_the_user_names(commands):
    done = commands.stratagem("verify", "--strategy", "context_parallel", "--model", "resnet50")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "resnet50 has no positions" in done.stderr


def test_verify_leaves_out_schedules_that_the_user_does_not_name(commands):
    row = ["--strategy", "pipeline", "--model", "gpt-tiny", "--devices", 3, "--oversubscribe"]
    done = commands.stratagem("verify", *row)  # three devices with two stages each need six layers
    assert done.returncode == 0, done.stderr
    assert "1f1b" in done.stdout and "interleaved" not in done.stdout
    done = commands.stratagem("verify", *row, "--schedule", "1f1b,interleaved_1f1b")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "interleaved_1f1b" in done.stderr


def test_python_reads_the_exported_tokens_of_one_sample(commands, tmp_path):
    torch = pytest.importorskip("torch", reason="reads the file with torch")
    work = tmp_path / "work.pt"
    done = commands.stratagem("export", work, "--model", "gpt-tiny", "--global-batch-size", 1)
    assert done.returncode == 0, done.stderr
    for batch in torch.load(work, weights_only=True)["batches"]:
        assert batch["inputs"].shape == batch["targets"].shape == (1, SEQUENCE)
        assert torch.equal(batch["inputs"][:, 1:], batch["targets"][:, :-1])
