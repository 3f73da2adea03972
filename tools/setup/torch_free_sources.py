"""Prints the project's sources that are compiled without LibTorch, one per line, without tests.

Usage: torch_free_sources.py ROOT COMPILE_COMMANDS

If several sources are compiled together as one unit, the script prints the unit instead.
"""

import json
import re
import sys
from pathlib import Path

FOLDERS = ("bench", "models", "reports", "strategies", "tools", "training")
TORCH_INCLUDE = re.compile(r"(-I|-isystem)\s*\S*/torch/csrc/api/include")


def torch_free_sources(root: Path, commands: list[dict[str, str]]) -> list[str]:
    """Return paths relative to `root`.

    A source that any target compiles with LibTorch is left out.
    """
    free, bound = set(), set()
    for entry in commands:
        source = Path(entry["directory"], entry["file"]).resolve()
        if not source.is_relative_to(root):
            continue
        path = source.relative_to(root)
        # The path of a unit begins with the build folder, followed by the folder of its sources.
        if path.parts[path.parent.name == "Unity"] in FOLDERS:
            (bound if TORCH_INCLUDE.search(entry["command"]) else free).add(str(path))
    return sorted(free - bound)


if __name__ == "__main__":
    root_folder, commands_file = map(Path, sys.argv[1:3])
    for name in torch_free_sources(root_folder.resolve(), json.loads(commands_file.read_text())):
        print(name)
