"""Prints the project's sources that are compiled without LibTorch, one a line, tests left out.

Usage: torch_free_sources.py ROOT COMPILE_COMMANDS

Where several are compiled together as one unit, that stands for them.
"""

import json
import re
import sys
from pathlib import Path

FOLDERS = ("bench", "models", "reports", "strategies", "tools", "training")
TORCH_INCLUDE = re.compile(r"(-I|-isystem)\s*\S*/torch/csrc/api/include")


def torch_free_sources(root: Path, commands: list[dict[str, str]]) -> list[str]:
    """Paths relative to `root`; a source that any target compiles with LibTorch is left out."""
    free, bound = set(), set()
    for entry in commands:
        source = Path(entry["directory"], entry["file"]).resolve()
        if not source.is_relative_to(root):
            continue
        path = source.relative_to(root)
        # A unit lies in the build folder, below the path of its own folder.
        if path.parts[path.parent.name == "Unity"] in FOLDERS:
            (bound if TORCH_INCLUDE.search(entry["command"]) else free).add(str(path))
    return sorted(free - bound)


if __name__ == "__main__":
    root_folder, commands_file = map(Path, sys.argv[1:3])
    for name in torch_free_sources(root_folder.resolve(), json.loads(commands_file.read_text())):
        print(name)
