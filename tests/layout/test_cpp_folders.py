"""Which folder inside bench/, strategies/ and models/ may include which, and that no files include
each other. docs/development/architecture.md draws the same order."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = ("bench", "models", "reports", "strategies", "tools", "training")
MOST_FILES = 35

# Each folder may include itself and those of the lines above its own. The files of strategies/
# itself have a line of their own: what a strategy is.
ORDER = {
    "models": (
        {"models/registry"},
        {"models/datasets"},
        {"models/cpu_kernels/kernels"},
        {"models/cpu_kernels"},
        {"models"},
        {"models/zoo"},
    ),
    "strategies": (
        {"strategies/state.h", "strategies/costs.h"},
        {"strategies/runtime"},
        {"strategies/ranks", "strategies/schedules"},
        {"strategies/backends"},
        {"strategies/distributed"},
        {"strategies/layer_exchange"},
        {"strategies/tensor_parallel"},
        {"strategies"},
        {"strategies/context_parallel"},
        {"strategies/stages"},
        {"strategies/data_parallel"},
        {"strategies/presets"},
    ),
    "training": (
        {"training"},
        {"training/checkpoint"},
        {"training/loop"},
    ),
    "bench": (
        {"bench/config", "bench/machine", "bench/proof"},
        {"bench/predict", "bench/timing", "bench/oracle"},
        {"bench/launch"},
        {"bench/worker", "bench/measure"},
        {"bench/google_benchmark"},
        {"bench/programs"},
    ),
}
# The one way from the controller's side to the worker's: a program that is started again as one.
ALSO = {("bench/google_benchmark", "bench/worker")}
FLOOR = {
    folder: (top, index)
    for top, order in ORDER.items()
    for index, folders in enumerate(order)
    for folder in folders
}


def sources() -> list[str]:
    return sorted(
        str(path.relative_to(ROOT))
        for folder in PRODUCTION
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".h", ".cpp", ".inl"}
    )


def includes(path: str) -> list[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE)


def room_of(path: str) -> str:
    """The folder in the order that a file belongs to, or the file where it has a line of its own."""
    return path if path in FLOOR else str(Path(path).parent)


def wrong_include(path: str, header: str) -> str:
    """Why the file may not include the header, or an empty string."""
    room, target = room_of(path), room_of(header)
    if room == target or room not in FLOOR or target not in FLOOR or (room, target) in ALSO:
        return ""
    (top, floor), (target_top, target_floor) = FLOOR[room], FLOOR[target]
    if top == target_top and target_floor >= floor:
        return f"{path}: {header}: {room}/ may not include {target}/"
    return ""


def cycle(graph: dict[str, list[str]]) -> list[str]:
    """The files of a cycle in order, the first again at the end; [] without one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def folder_graph(files: dict[str, list[str]]) -> dict[str, list[str]]:
    """Of each room, the rooms that its files include."""
    graph: dict[str, set[str]] = {}
    for path, headers in files.items():
        others = {room_of(header) for header in headers} - {room_of(path)}
        graph.setdefault(room_of(path), set()).update(others)
    return {room: sorted(others) for room, others in graph.items()}


def test_every_folder_has_its_place_in_the_order() -> None:
    folders = {room_of(path) for path in sources() if path.split("/")[0] in ORDER}
    assert folders == set(FLOOR)


def test_folders_include_only_those_before_them() -> None:
    wrong = [why for path in sources() for header in includes(path)
             if (why := wrong_include(path, header))]
    assert not wrong, "\n".join(wrong)


def test_files_do_not_include_each_other() -> None:
    found = cycle({path: includes(path) for path in sources()})
    assert not found, " -> ".join(found)


def test_folders_do_not_include_each_other() -> None:
    found = cycle(folder_graph({path: includes(path) for path in sources()}))
    assert not found, " -> ".join(found)


def registers(path: Path) -> bool:
    return path.suffix == ".cpp" and "\nSTRATAGEM_REGISTER(" in path.read_text("utf-8")


def test_no_folder_holds_too_many_files() -> None:
    """Files that register one variant each are not counted: there may be any number of variants."""
    counts: dict[str, int] = {}
    for top in PRODUCTION:
        for path in (ROOT / top).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and not registers(path):
                folder = str(path.parent.relative_to(ROOT))
                counts[folder] = counts.get(folder, 0) + 1
    crowded = {folder: count for folder, count in counts.items() if count > MOST_FILES}
    assert not crowded


@pytest.mark.parametrize(("path", "header"), [
    ("strategies/schedules/executor.cpp", "strategies/stages/stage.h"),
    ("strategies/costs.h", "strategies/strategy.h"),
    ("strategies/tensor_parallel/shard.h", "strategies/strategy.h"),
    ("bench/config/grid.cpp", "bench/launch/launch.h"),
    ("bench/measure/rounds.cpp", "bench/worker/session.h"),
    ("models/cpu_kernels/linear.cpp", "models/layer.h"),
])
def test_a_wrong_include_is_noticed(path: str, header: str) -> None:
    assert wrong_include(path, header)


def test_a_cycle_is_noticed() -> None:
    files = {"bench/config/a.h": ["bench/machine/b.h"], "bench/machine/b.h": ["bench/config/a.h"]}
    assert len(cycle(files)) == 3
    assert set(cycle(folder_graph(files))) == {"bench/config", "bench/machine"}
