"""Prints the dependencies of the installed torch wheel that libtorch_cpu.so needs, one per line.

The script reads the wheel's metadata, because the lean install cannot import the wheel. Wheels
before 2.11 name the CUDA runtime and CUPTI packages directly. Later wheels name them as extras of
cuda-toolkit. A CPU-only wheel names neither, and nothing is printed.
"""

import importlib.metadata
import re


def lean_requirements(declared: list[str]) -> list[str]:
    """Return the needed requirements of `declared`, lines of a wheel's metadata.

    Environment markers are dropped.
    """
    needed = []
    for line in declared:
        requirement = line.split(";")[0].replace(" ", "")
        if re.match(r"nvidia-cuda-(runtime|cupti)(-cu\d+)?==", requirement):
            needed.append(requirement)
        elif toolkit := re.match(r"cuda-toolkit\[([\w,]+)\](==[\w.]+)", requirement):
            extras = [name for name in toolkit[1].split(",") if name in ("cudart", "cupti")]
            needed.append(f"cuda-toolkit[{','.join(extras)}]{toolkit[2]}")
    return needed


if __name__ == "__main__":
    for requirement in lean_requirements(importlib.metadata.requires("torch") or []):
        print(requirement)
