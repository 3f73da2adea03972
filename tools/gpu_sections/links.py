"""The link between two GPUs and its bandwidth, from nvidia-smi."""

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

# The bandwidth of one lane in one direction, after line coding, by PCIe generation.
PCIE_LANE_GB_PER_S = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}

Ask = Callable[..., str]  # arguments of nvidia-smi -> its output


@dataclass(frozen=True)
class Link:
    """A link's description, and its bandwidth in one direction in GB/s; None if unknown."""

    text: str
    gb_per_s: float | None = None


def nvidia_smi(*arguments: str) -> str:
    """Return the standard output of nvidia-smi, or an empty string if it fails."""
    try:
        found = subprocess.run(
            ["nvidia-smi", *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout if found.returncode == 0 else ""


def first_two_gpus() -> tuple[int, int] | None:
    """Return nvidia-smi's indices of the first two visible GPUs.

    Return None if CUDA_VISIBLE_DEVICES is set and does not begin with two indices.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return 0, 1
    numbers = visible.split(",")
    if len(numbers) < 2 or not all(number.strip().isdecimal() for number in numbers[:2]):
        return None
    return int(numbers[0]), int(numbers[1])


def connection(topology: str, first: int, second: int) -> str:
    """Return the entry of `nvidia-smi topo -m` for two GPUs, such as NV12 or PIX; "" if none."""
    rows = [line.split("\t") for line in re.sub(r"\x1b\[[0-9;]*m", "", topology).splitlines()]
    cells = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if row}
    header = next((row for row in rows if f"GPU{second}" in map(str.strip, row)), [])
    columns = [name.strip() for name in header[1:]]
    own = cells.get(f"GPU{first}", [])
    index = columns.index(f"GPU{second}") if f"GPU{second}" in columns else len(own)
    return own[index] if index < len(own) else ""


def between_gpus(pair: tuple[int, int], ask: Ask = nvidia_smi) -> Link:
    """Return the link between two GPUs: their NVLinks, or the PCIe slot of the first."""
    first, second = pair
    found = connection(ask("topo", "-m"), first, second)
    if count := re.fullmatch(r"NV(\d+)", found):
        rates = re.findall(r"([\d.]+) GB/s", ask("nvlink", "--status", "-i", str(first)))
        if not rates:
            return Link(f"{count[1]} NVLinks of unknown rate")
        rate = max(map(float, rates))
        return Link(f"{count[1]} NVLinks of {rate:g} GB/s", int(count[1]) * rate)
    query = "--query-gpu=pcie.link.gen.max,pcie.link.width.max"
    slot = re.match(r"(\d+), (\d+)", ask(query, "--format=csv,noheader", "-i", str(first)))
    if not slot or int(slot[1]) not in PCIE_LANE_GB_PER_S:
        return Link(f"{found or 'not told'}, its rate is not known")
    generation, width = int(slot[1]), int(slot[2])
    text = f"PCIe {generation} x{width} ({found or 'way not told'})"
    return Link(text, width * PCIE_LANE_GB_PER_S[generation])
