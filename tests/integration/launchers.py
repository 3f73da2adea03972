"""How tests start several ranks: under torchrun, mpirun and srun, and by hand."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest
import slurm_cluster

TOY = ["--model", "toy", "--global-batch-size", "16"]


def torchrun(*options) -> list:
    return [sys.executable, "-m", "torch.distributed.run", *options, "--no-python"]


def mpirun(*options, binding: str = "none") -> list:
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is missing: apt install openmpi-bin")
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", binding, *options]


def srun(*options) -> list:
    return [slurm_cluster.find("srun"), "--immediate=20", *options]


def need_ipv6() -> None:
    """Skip the test that calls this where the loopback has no IPv6 address."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("needs IPv6: ::1 cannot be bound")


def need_network_namespaces() -> None:
    """Skip the test that calls this where tools/two_hosts would refuse."""
    if os.geteuid() != 0 or not all(shutil.which(program) for program in ("ip", "tc")):
        pytest.skip("needs network namespaces: root and iproute2")
    name = f"probe{os.getpid()}"
    probe = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("needs network namespaces: not allowed here")
    subprocess.run(["ip", "netns", "delete", name], check=True)


def run_under(commands, launcher: list, *options, **variables) -> subprocess.Popen:
    """Start `stratagem run` of the toy model behind a launcher's command line."""
    stratagem = [commands.programs / "stratagem", "run", "--no-repeat-disturbed", *TOY]
    return commands.start_command([*launcher, *stratagem, *options], **variables)


def by_hand(commands, method: str, rank: int, world: int, *options, **variables):
    """Start one rank that meets the others by that `--init-method`."""
    where = ["--init-method", method, "--rank", rank, "--world-size", world]
    return run_under(commands, [], *where, *options, **variables)


def free_port() -> int:
    (port,) = slurm_cluster.free_ports(1)
    return port


def finish(commands, *processes) -> list[subprocess.CompletedProcess]:
    return [commands.finish(process) for process in processes]


def rows_of(results: dict) -> dict[str, list[dict]]:
    """Return the repetitions by strategy, of rows with one core a device."""
    rows: dict[str, list[dict]] = {}
    for entry in results["benchmarks"]:
        if entry["run_type"] == "iteration" and "cores:" not in entry["name"]:
            rows.setdefault(entry["stratagem"]["strategy"], []).append(entry)
    return rows
