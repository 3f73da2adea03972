"""The same binary under torchrun, mpirun and srun, and with ranks that are started by hand."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import slurm_cluster

ROOT = Path(__file__).resolve().parents[2]
STRATAGEM = Path(os.environ.get("STRATAGEM_BIN", ROOT / "build" / "bin")) / "stratagem"
TOY = ["--model", "toy", "--global-batch-size", "16"]
ROWS = ["--strategy", "single,pipeline,ddp", "--split-size", "4", "--repetitions", "2"]


def torchrun(*options) -> list:
    return [sys.executable, "-m", "torch.distributed.run", *options, "--no-python"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(commands, command: list, **variables) -> subprocess.Popen:
    process = subprocess.Popen(
        [str(part) for part in command],
        env={**commands.environment, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    commands.started.append(process)
    return process


def finish(commands, *processes) -> list[subprocess.CompletedProcess]:
    return [commands.finish(process) for process in processes]


def rows_of(results: dict) -> dict[str, list[dict]]:
    """Return the repetitions by strategy, of rows with one core a device."""
    rows: dict[str, list[dict]] = {}
    for entry in results["benchmarks"]:
        if entry["run_type"] == "iteration" and "cores:" not in entry["name"]:
            rows.setdefault(entry["stratagem"]["strategy"], []).append(entry)
    return rows


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
    (done,) = finish(
        commands,
        start(
            commands,
            [*torchrun("--standalone", "--nproc-per-node", 2), STRATAGEM, "run", *TOY, *ROWS,
             "--out", out],
        ),
    )  # fmt: skip
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
        agents.append(
            start(
                commands,
                [*torchrun("--nnodes", 2, "--nproc-per-node", 1, *where), STRATAGEM, "run", *TOY,
                 *ROWS, "--out", out],
            )
        )  # fmt: skip
    done = finish(commands, *agents)
    assert [process.returncode for process in done] == [0, 0], [d.stderr for d in done]
    expect_one_table("".join(process.stdout for process in done))
    expect_measured(commands.results(out))


@pytest.mark.parametrize("binding", ["none", "core"])
def test_mpirun(commands, out, binding):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is missing: apt install openmpi-bin")
    (done,) = finish(
        commands,
        start(
            commands,
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", binding, "-n", 2,
             STRATAGEM, "run", *TOY, *ROWS, "--out", out],
        ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out))


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    missing = slurm_cluster.missing_programs()
    if missing:
        pytest.skip(
            f"{', '.join(missing)} missing: apt install slurmctld slurmd slurm-client munge"
        )
    cluster = slurm_cluster.SlurmCluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_srun(commands, out, slurm):
    (done,) = finish(
        commands,
        start(
            commands,
            [slurm_cluster.find("srun"), "--immediate=20", "-n", 2, STRATAGEM, "run", *TOY, *ROWS,
             "--out", out],
            **slurm.environment,
        ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out))


def by_hand(commands, method: str, rank: int, world: int, *options, **variables):
    return start(
        commands,
        [STRATAGEM, "run", *TOY, "--init-method", method, "--rank", rank, "--world-size", world,
         *options],
        **variables,
    )  # fmt: skip


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
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs network namespaces: root and iproute2")
    probe = subprocess.run(["ip", "netns", "add", "probe0"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("needs network namespaces: not allowed here")
    subprocess.run(["ip", "netns", "delete", "probe0"], check=True)
    (done,) = finish(
        commands,
        start(
            commands,
            [ROOT / "tools" / "two_hosts", "--rate", "100mbit", STRATAGEM, "run", *TOY, *ROWS,
             "--out", out],
        ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expect_one_table(done.stdout)
    expect_measured(commands.results(out))


def expect_one_line(done, code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("stratagem: ")]
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0]


def test_a_rank_that_never_arrives(commands):
    started = time.monotonic()
    alone = by_hand(
        commands, f"tcp://127.0.0.1:{free_port()}", 0, 2, "--strategy", "ddp", "--timeout", 2
    )
    (done,) = finish(commands, alone)
    assert time.monotonic() - started < 2 + 5
    expect_one_line(done, 4, "rank 1", "2 s")


def test_an_unreachable_master(commands):
    started = time.monotonic()
    alone = by_hand(
        commands, f"tcp://127.0.0.1:{free_port()}", 1, 2, "--strategy", "ddp", "--timeout", 2
    )
    (done,) = finish(commands, alone)
    assert time.monotonic() - started < 2 + 5
    expect_one_line(done, 4, "nobody serves 127.0.0.1:")


def test_a_port_in_use(commands):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (done,) = finish(
            commands,
            by_hand(commands, f"tcp://127.0.0.1:{port}", 0, 2, "--strategy", "ddp", "--timeout", 2),
        )
    expect_one_line(done, 4, f"127.0.0.1:{port} cannot be served")


def test_world_sizes_that_differ(commands):
    method = f"tcp://127.0.0.1:{free_port()}"
    options = ["--strategy", "ddp", "--timeout", 10]
    ranks = [by_hand(commands, method, rank, world, *options) for rank, world in ((0, 2), (1, 3))]
    done = finish(commands, *ranks)
    expect_one_line(done[0], 2, "rank 1 says that there are 3")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ranks", "3"], ["--ranks", "2 ranks"]),
        (["--mesh", "data=3"], ["--ranks 2", "data=3"]),
        (["--devices", "3"], ["--ranks 2"]),
    ],
)
def test_ranks_that_do_not_fit_are_refused_at_once(commands, options, words):
    method = f"tcp://127.0.0.1:{free_port()}"
    ranks = [
        by_hand(commands, method, rank, 2, "--strategy", "ddp", "--timeout", 10, *options)
        for rank in range(2)
    ]
    for done in finish(commands, *ranks):
        if done.returncode == 2 and done.stderr:
            for word in words:
                assert word in done.stderr
    assert {process.returncode for process in ranks} == {2}


@pytest.mark.parametrize("lost", [0, 1])
def test_a_worker_that_is_killed_fails_its_row_alone(commands, out, lost):
    method = f"tcp://127.0.0.1:{free_port()}"
    ranks = [
        by_hand(
            commands, method, rank, 2, "--strategy", "pipeline,ddp", "--split-size", 4,
            "--no-verify", "--timeout", 10, "--repetitions", 2, "--out", out,
            STRATAGEM_TEST_FAULT=f"kill@0B0@ddp@{lost}",
        )
        for rank in range(2)
    ]  # fmt: skip
    done = finish(commands, *ranks)
    assert [process.returncode for process in done] == [4, 4], [d.stderr for d in done]
    rows = rows_of(commands.results(out))
    assert len(rows["pipeline"]) == 2
    (failed,) = rows["ddp"]
    assert failed["stratagem"]["error"]["rank"] == lost
    assert f"rank {lost} was killed" in failed["stratagem"]["error"]["message"]


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGSTOP"])
def test_a_rank_that_is_lost_whole_is_named(commands, out, signal_name):
    method = f"tcp://127.0.0.1:{free_port()}"
    options = ["--strategy", "ddp", "--no-verify", "--timeout", 6, "--repetitions", 500]
    ranks = [
        by_hand(commands, method, rank, 2, *options, "--out", out, "--quiet") for rank in range(2)
    ]
    partial = out.with_name(out.name + ".partial")
    commands.wait_until(lambda: commands.finished_launches(partial) >= 1)
    workers = commands.children_of(ranks[1].pid)
    ranks[1].send_signal(getattr(signal, signal_name))
    (done,) = finish(commands, ranks[0])
    assert done.returncode == 4
    assert "rank 1" in done.stderr
    ranks[1].kill()
    ranks[1].wait()
    commands.wait_until(lambda: not any(commands.is_running(worker) for worker in workers), 10)
