"""Slurm on this machine alone: one node, private ports, everything in one folder, no systemd."""

from __future__ import annotations

import contextlib
import getpass
import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
NOT_EPHEMERAL = (20_000, 32_000)  # below the ports that Linux gives to connections


def find(program: str) -> str | None:
    """Return a program's path; Debian keeps daemons in folders that users do not search."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return shutil.which(program, path=places)


def missing_programs() -> list[str]:
    """Return what of Slurm is not installed."""
    return [program for program in PROGRAMS if find(program) is None]


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, and that the kernel gives to no connection meanwhile."""
    found: set[int] = set()
    while len(found) < count:
        port = random.SystemRandom().randrange(*NOT_EPHEMERAL)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.add(port)
    return [*found]


class SlurmCluster:
    """A private cluster; `environment` is what srun needs to find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[subprocess.Popen] = []
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> None:
        """Start munge, the controller and the node, and wait until the node is idle."""
        self._write_configuration()
        self._start(
            "munged", "-F", "-S", self.folder / "munge.sock", "--key-file", self.folder / "key",
            "--pid-file", self.folder / "munge.pid", "--log-file", self.folder / "munge.log",
            "--seed-file", self.folder / "seed", *(["--force"]),
        )  # fmt: skip
        self._wait_until(lambda: (self.folder / "munge.sock").exists(), "munged")
        self._start("slurmctld", "-D", "-i")
        self._start("slurmd", "-D")
        self._wait_until(self._is_idle, "the node")

    def stop(self) -> None:
        """End the daemons that were started, in reverse."""
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _write_configuration(self) -> None:
        host = socket.gethostname().split(".")[0]
        user = getpass.getuser()
        controller_port, node_port = free_ports(2)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.folder.chmod(0o700)
        (self.folder / "slurm.conf").write_text(
            f"""ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd.log
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.sock
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
        )
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def _start(self, program: str, *arguments) -> None:
        log = (self.folder / f"{program}.out").open("w")
        self.daemons.append(
            subprocess.Popen(
                [find(program), *map(str, arguments)],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        )

    def _is_idle(self) -> bool:
        states = subprocess.run(
            [find("sinfo"), "-h", "-o", "%T"],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return states.stdout.strip() == "idle"

    def _wait_until(self, condition, what: str, limit_s: float = 30) -> None:
        end = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > end:
                logs = sorted(self.folder.glob("*.out")) + sorted(self.folder.glob("*.log"))
                text = "\n".join(f"{log.name}: {log.read_text()[-600:]}" for log in logs)
                raise RuntimeError(f"{what} did not come up\n{text}")
            time.sleep(0.1)
