"""The machine that runs the sections, and the facts about it on the page."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gpu_sections.links import Link, between_gpus, first_two_gpus, nvidia_smi

ROOT = Path(__file__).resolve().parents[2]
OF_TORCH = """
import json, torch
version = lambda: ".".join(map(str, torch.cuda.nccl.version()))
gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
print(json.dumps({"PyTorch": torch.__version__, "CUDA": torch.version.cuda or "none",
                  "NCCL": version() if torch.version.cuda else "none", "gpus": gpus}))
"""
# Begins a command that runs on two simulated hosts, joined by a cable of this rate.
CABLE = ("tools/two_hosts", "--rate", "1gbit")
CABLE_GB_PER_S = 0.125


@dataclass(frozen=True)
class Machine:
    """The devices of the check, and the folders of its programs and of its output."""

    device: str  # cuda, or in a rehearsal cpu
    gpus: int  # visible GPUs; 0 in a rehearsal
    programs: Path
    out: Path
    link: Link
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def rehearsal(self) -> bool:
        """Return whether the check runs on CPU devices."""
        return self.device == "cpu"

    @property
    def devices(self) -> int:
        """Return the devices of a row: a power of two, so that every layer can be sharded."""
        return 2 if self.gpus < 2 else 1 << (min(self.gpus, 8).bit_length() - 1)

    @property
    def shared(self) -> bool:
        """Return whether two devices share one GPU."""
        return self.device == "cuda" and self.gpus < 2

    def program(self, name: str) -> str:
        """Return the path of a built program."""
        return str(self.programs / name)


def answer_of(*command: str) -> str:
    """Return the standard output of a command, or an empty string if it fails."""
    try:
        found = subprocess.run(
            command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout if found.returncode == 0 else ""


def of_doctor(programs: Path) -> dict[str, str]:
    """Return the findings of `stratagem doctor`, by the name of the check."""
    lines = answer_of(str(programs / "stratagem"), "doctor").splitlines()
    matches = (re.match(r"(?:ok|warn) +(\S.{14}) (.*)", line) for line in lines)
    return {match[1].strip(): match[2] for match in matches if match}


def cable() -> Link | None:
    """Return the link between two simulated hosts, or None if this machine refuses them."""
    rate = Link("a cable of 1 Gbit/s between two hosts that are one machine", CABLE_GB_PER_S)
    allowed = subprocess.run([*CABLE, "true"], cwd=ROOT, capture_output=True, check=False)
    return rate if allowed.returncode == 0 else None


def link_of(device: str, gpus: int) -> Link:
    """Return the link between the first two devices."""
    if device == "cpu":
        return cable() or Link("the loopback, whose rate is not known")
    pair = first_two_gpus()
    if gpus < 2:
        return Link("none: two ranks share one GPU, and talk through the host")
    return between_gpus(pair) if pair else Link("not told: CUDA_VISIBLE_DEVICES has no numbers")


def look(device: str, programs: Path, out: Path) -> Machine:
    """Return a description of this machine."""
    torch = json.loads(answer_of(sys.executable, "-c", OF_TORCH) or "{}")
    doctor = of_doctor(programs)
    names = torch.pop("gpus", [])
    driver = nvidia_smi("--query-gpu=driver_version", "--format=csv,noheader").splitlines()
    counted = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    facts = {
        "GPUs": ", ".join(counted) or "none",
        "driver": driver[0] if driver else "none",
        **{name: torch.get(name, "not found") for name in ("CUDA", "NCCL", "PyTorch")},
        **{name: doctor.get(name, "not told") for name in ("processor", "cores", "stratagem")},
    }
    gpus = len(names) if device == "cuda" else 0
    link = link_of(device, gpus)
    facts["link between the first two devices"] = link.text
    return Machine(device, gpus, programs, out, link, tuple(facts.items()))


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0))
