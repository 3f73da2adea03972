"""The same binary under torchrun, mpirun and srun, and with ranks that are started by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from launchers import (
    by_hand,
    finish,
    free_port,
    mpirun,
    need_network_namespaces,
    rows_of,
    run_under,
    srun,
    torchrun,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ROWS = ["--strategy", "single,pipeline,ddp", "--split-size", "4", "--repetitions", "2"]


def expect_measured(results: dict) -> None:
    """Every row was verified and measured, those of two ranks on two ranks."""
    rows = rows_of(results)
    assert set(rows) == {"single", "pipeline", "ddp"}
    for strategy, runs in rows.items():
        assert len(runs) == 2, strategy
        for run in runs:
            measured = run["stratagem"]
            assert measured["error"] is None
            assert measured["verification"]["passed"] is True
            ranks = 1 if strategy == "single" else 2
            assert len(measured["per_rank_ms"]) == ranks, strategy
            assert {device["rank"] for device in measured["devices"]} == set(range(ranks))


def expect_one_table(text: str) -> None:
    """Only rank 0 writes."""
    assert text.count("samples/s") == 1


def test_torchrun(commands, out):
    launcher = torchrun("--standalone", "--nproc-per-node", 2)
    (done,) = finish(commands, run_under(commands, launcher, *ROWS, "--out", out))
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out))


@pytest.mark.parametrize("static", [True, False])
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
        agents.append(run_under(commands, launcher, *ROWS, "--out", out))
    done = finish(commands, *agents)
    assert [process.returncode for process in done] == [0, 0], [d.stderr for d in done]
    expect_one_table("".join(process.stdout for process in done))
    expect_measured(commands.results(out))


@pytest.mark.parametrize("binding", ["none", "core"])
def test_mpirun(commands, out, binding):
    launcher = mpirun("-n", 2, binding=binding)
    (done,) = finish(commands, run_under(commands, launcher, *ROWS, "--out", out))
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out))


def test_srun(commands, out, slurm):
    launcher = srun("-n", 2)
    (done,) = finish(
        commands, run_under(commands, launcher, *ROWS, "--out", out, **slurm.environment)
    )
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out))


@pytest.mark.parametrize("kind", ["tcp", "file", "env"])
def test_by_hand(commands, out, tmp_path, kind):
    port = free_port()
    method = {
        "tcp": f"tcp://127.0.0.1:{port}",
        "file": f"file://{tmp_path}/meeting",
        "env": "env://",
    }[kind]
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} if kind == "env" else {}
    ranks = [
        by_hand(commands, method, rank, 2, *ROWS, "--out", out, **variables) for rank in range(2)
    ]
    done = finish(commands, *ranks)
    assert [process.returncode for process in done] == [0, 0], [d.stderr for d in done]
    assert done[1].stdout == ""
    expect_measured(commands.results(out))


def test_two_hosts_with_a_slow_cable(commands, out):
    need_network_namespaces()
    launcher = [ROOT / "tools" / "two_hosts", "--rate", "100mbit"]
    (done,) = finish(commands, run_under(commands, launcher, *ROWS, "--out", out))
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out))
