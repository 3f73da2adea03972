"""Prints what libtorch_cpu.so needs of the installed torch wheel's dependencies, one a line.

The wheel is only read, never imported: the lean install cannot import it. Wheels before 2.11 name
the CUDA runtime and CUPTI packages directly, later ones as extras of cuda-toolkit; a CPU-only wheel
names neither and nothing is printed.
"""

import importlib.metadata
import re


def lean_requirements(declared: list[str]) -> list[str]:
    """Picks from lines as in a wheel's metadata; environment markers are dropped."""
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
