"""The same binary under torchrun, mpirun and srun, and with ranks that are started by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launchers import (
    by_hand,
    finish,
    free_port,
    mpirun,
    need_ipv6,
    need_network_namespaces,
    rows_of,
    run_under,
    srun,
    torchrun,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TWO_RANKS = ["--strategy", "ddp", "--repetitions", 1, "--no-verify", "--no-predict"]


def expect_measured(results: dict, **launches: int) -> None:
    """So many launches of each strategy, whose devices are those of two ranks, or one of single."""
    rows = rows_of(results)
    assert {strategy: len(runs) for strategy, runs in rows.items()} == launches
    for strategy, runs in rows.items():
        for run in runs:
            measured = run["stratagem"]
            assert measured["error"] is None
            ranks = 1 if strategy == "single" else 2
            assert len(measured["per_rank_ms"]) == ranks, strategy
            assert {device["rank"] for device in measured["devices"]} == set(range(ranks))


def expect_one_table(text: str) -> None:
    """Only rank 0 writes."""
    assert text.count("samples/s") == 1


def test_torchrun_with_every_kind_of_row(commands, out):
    """What a launcher changes is how ranks meet and who prints: the other tests ask for that."""
    launcher = torchrun("--standalone", "--nproc-per-node", 2)
    rows = ["--strategy", "single,pipeline,ddp", "--split-size", 4, "--repetitions", 2]
    (done,) = finish(commands, run_under(commands, launcher, *rows, "--out", out))
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    results = commands.results(out)
    expect_measured(results, single=2, pipeline=2, ddp=2)
    for runs in rows_of(results).values():
        assert all(run["stratagem"]["verification"]["passed"] is True for run in runs)


@pytest.mark.parametrize("static", [False, pytest.param(True, marks=pytest.mark.night)])
def test_torchrun_with_two_nodes(commands, out, static):
    port = free_port()
    agents = []
    for node in range(2):
        where = (
            ["--node-rank", node, "--master-addr", "127.0.0.1", "--master-port", port]
            if static
            else ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", 7]
        )
        launcher = torchrun("--nnodes", 2, "--nproc-per-node", 1, *where)
        agents.append(run_under(commands, launcher, *TWO_RANKS, "--out", out))
    done = finish(commands, *agents)
    assert [process.returncode for process in done] == [0, 0], [d.stderr for d in done]
    expect_one_table("".join(process.stdout for process in done))
    expect_measured(commands.results(out), ddp=1)


@pytest.mark.parametrize("binding", ["none", "core"])
def test_mpirun(commands, out, binding):
    launcher = mpirun("-n", 2, binding=binding)
    (done,) = finish(commands, run_under(commands, launcher, *TWO_RANKS, "--out", out))
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out), ddp=1)


@pytest.mark.xdist_group("slurm")
def test_srun(commands, out, slurm):
    launcher = srun("-n", 2)
    (done,) = finish(
        commands, run_under(commands, launcher, *TWO_RANKS, "--out", out, **slurm.environment)
    )
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out), ddp=1)


@pytest.mark.parametrize("kind", ["tcp", "tcp6", "file", "env", "env6"])
def test_by_hand(commands, out, tmp_path, kind):
    port = free_port()
    if kind.endswith("6"):
        need_ipv6()
    method = {
        "tcp": f"tcp://127.0.0.1:{port}",
        "tcp6": f"tcp://[::1]:{port}",
        "file": f"file://{tmp_path}/meeting",
    }.get(kind, "env://")
    address = {"env": "127.0.0.1", "env6": "::1"}.get(kind)
    variables = {"MASTER_ADDR": address, "MASTER_PORT": str(port)} if address else {}
    ranks = [
        by_hand(commands, method, rank, 2, *TWO_RANKS, "--out", out, **variables)
        for rank in range(2)
    ]
    done = finish(commands, *ranks)
    assert [process.returncode for process in done] == [0, 0], [d.stderr for d in done]
    assert done[1].stdout == ""
    expect_measured(commands.results(out), ddp=1)


def test_ranks_of_mpich_and_intel_mpi_are_not_alone(commands, out):
    method = f"tcp://127.0.0.1:{free_port()}"
    ranks = [
        run_under(
            commands, [], "--init-method", method, *TWO_RANKS, "--out", out,
            PMI_RANK=str(rank), PMI_SIZE="2", MPI_LOCALRANKID=str(rank), MPI_LOCALNRANKS="2",
        )
        for rank in range(2)
    ]  # fmt: skip
    done = finish(commands, *ranks)
    assert [process.returncode for process in done] == [0, 0], [d.stderr for d in done]
    expect_one_table("".join(process.stdout for process in done))
    expect_measured(commands.results(out), ddp=1)


def test_torchrun_trains(commands, tmp_path):
    """--log follows "--": torchrun reads an option that could be one of its own otherwise."""
    launcher = [*torchrun("--standalone", "--nproc-per-node", 2), "--"]
    log = tmp_path / "log.jsonl"
    options = ["--preset", "toy_ddp", "--log", log, "--checkpoint-dir", tmp_path / "kept"]
    command = [*launcher, commands.programs / "stratagem", "train", *options]
    (done,) = finish(commands, commands.start_command(command))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("parameters") == 1, "only rank 0 prints"
    assert sum(json.loads(line)["event"] == "end" for line in log.open()) == 1
    assert list((tmp_path / "kept").glob("step-*.pt"))


def test_two_hosts_with_a_slow_cable(commands, out):
    need_network_namespaces()
    launcher = [ROOT / "tools" / "two_hosts", "--rate", "100mbit"]
    rows = ["--strategy", "pipeline,ddp", "--split-size", 4, *TWO_RANKS[2:]]
    (done,) = finish(commands, run_under(commands, launcher, *rows, "--out", out))
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out), pipeline=1, ddp=1)
