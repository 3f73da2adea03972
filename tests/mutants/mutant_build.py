"""Compiles a broken source as the build folder compiled the right one, and links programs with it.

Everything that is written goes into the folder that the caller names.
"""

from __future__ import annotations

import functools
import json
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mutant_list import MutantError
from processes import Processes

# Options by which a compiler lists headers in another file, and whether a value follows.
_LISTS_OF_HEADERS = {"-MD": False, "-MMD": False, "-MT": True, "-MQ": True, "-MF": True}


@dataclass(frozen=True)
class Unit:
    """What the build compiles for a source: the source alone, or a file that includes several."""

    file: Path
    command: list[str]
    folder: Path  # the command runs here

    @property
    def object(self) -> str:
        """The path of what is made, as the build's commands have it."""
        return self.command[self.command.index("-o") + 1]


# A header that more objects than this include takes too long.
MOST_OBJECTS = 8


class Build:
    """A build folder of Ninja, which is only read."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        self._folder = folder
        self._processes = processes
        path = folder / "compile_commands.json"
        if not path.is_file():
            raise MutantError(f"no {path.name} in {folder.name}/: tools/test builds everything")
        self._units = [
            Unit(Path(entry["file"]), shlex.split(entry["command"]), Path(entry["directory"]))
            for entry in json.loads(path.read_text(encoding="utf-8"))
        ]

    @property
    def programs(self) -> Path:
        """Where the build puts programs."""
        return self._folder / "bin"

    @functools.lru_cache(maxsize=None)  # noqa: B019 (one build a process)
    def units_of(self, source: Path) -> list[Unit]:
        """The one unit that a .cpp file is compiled in, or all that include a header."""
        if source.suffix == ".h":
            users = self._objects_with(source)
            return [unit for unit in self._units if unit.object in users]
        line = f'#include "{source}"'
        found = [
            unit
            for unit in self._units
            if unit.file == source
            or (unit.file.parent.name == "Unity" and line in unit.file.read_text().splitlines())
        ]
        if len(found) != 1:
            raise MutantError(f"{source.name} is compiled {len(found)} times, not once")
        return found

    def contains(self, program: str, source: Path) -> bool:
        """Whether the program is linked with an object of the source."""
        return bool(self._units_in(program, source))

    def link_broken(
        self, programs: dict[str, Path], source: Path, broken: Path, includes: Path
    ) -> None:
        """Links programs, to the paths given, in which the broken file takes the source's place.

        `includes` is a folder with the broken file at the source's path from the root.
        """
        units = {name: self._units_in(name, source) for name in programs}
        for name, own in units.items():
            if not own:
                raise MutantError(f"{name} is not linked with {source.name}")
        wanted = {unit.object: unit for own in units.values() for unit in own}
        if len(wanted) > MOST_OBJECTS:
            raise MutantError(f"{source.name} is part of {len(wanted)} objects; break another file")
        made = {
            original: self._compile(unit, source, broken, includes)
            for original, unit in wanted.items()
        }
        for name, to in programs.items():
            self._link(name, {unit.object: made[unit.object] for unit in units[name]}, to)

    def _compile(self, unit: Unit, source: Path, broken: Path, includes: Path) -> Path:
        """The unit's object with the broken file in the source's place."""
        out = Path(tempfile.mkdtemp(prefix="", dir=includes.parent))
        command = _without_lists_of_headers(unit.command)
        if source.suffix == ".h":
            command += ["-iquote", str(includes)]
        elif unit.file == source:
            command[command.index("-c") + 1] = str(broken)
        else:
            own, other = f'#include "{source}"', f'#include "{broken}"'
            (out / unit.file.name).write_text(unit.file.read_text().replace(own, other))
            command[command.index("-c") + 1] = str(out / unit.file.name)
        made = out / "broken.o"
        command[command.index("-o") + 1] = str(made)
        self._run([*command, "-Wno-error"], unit.folder, f"{source.name} does not compile")
        return made

    def _link(self, program: str, made: dict[str, Path], to: Path) -> None:
        """Links the program as the build does, with other objects in the place of its own."""
        words = [str(made.get(word, word)) for word in self._link_command(program)]
        of_archives = [str(path) for own, path in made.items() if str(path) not in words]
        # Before every archive, so that the archives' own objects are not needed.
        first = next(index for index, word in enumerate(words) if word.endswith(".o"))
        words[first:first] = of_archives
        words[words.index("-o") + 1] = str(to)
        self._run(words, self._folder, f"{program} cannot be linked")

    def _units_in(self, program: str, source: Path) -> list[Unit]:
        linked = set(self._link_command(program))
        return [
            unit
            for unit in self.units_of(source)
            if unit.object in linked or linked & set(self._archives(program, unit.object))
        ]

    def _objects_with(self, header: Path) -> set[str]:
        """The objects whose last compilation read the header."""
        command = ["ninja", "-n", "-t", "deps"]
        found, current = set(), ""
        for line in self._run(command, self._folder, "ninja knows no headers").splitlines():
            if line.startswith(" "):
                if (self._folder / line.strip()) == header:
                    found.add(current)
            else:
                current = line.partition(":")[0]
        return found

    def _archives(self, program: str, made: str) -> list[str]:
        """The static libraries among the program's inputs that hold the object."""
        found = []
        for words in self._commands(program):
            if made in words and "-o" not in words:
                found += [word for word in words if word.endswith(".a")]
        return found

    def _link_command(self, program: str) -> list[str]:
        wanted = f"bin/{program}"
        for words in self._commands(program):
            if "-o" in words and words[words.index("-o") + 1] == wanted:
                return words
        raise MutantError(f"{self._folder.name}/{wanted} is no program of the build")

    @functools.lru_cache(maxsize=None)  # noqa: B019 (one build a process)
    def _commands(self, program: str) -> list[list[str]]:
        """The commands that make the program, each in words."""
        command = ["ninja", "-t", "commands", f"bin/{program}"]
        text = self._run(command, self._folder, f"ninja knows no {program}")
        return [
            shlex.split(part)
            for line in text.splitlines()
            for part in line.split(" && ")
            if f"bin/{program}" in part or ".a " in part
        ]

    def _run(self, command: list[str], folder: Path, failure: str) -> str:
        done = self._processes.run(command, folder)
        if done.code != 0:
            raise MutantError(f"{failure}:\n{done.output[-3000:]}")
        return done.output


def _without_lists_of_headers(command: list[str]) -> list[str]:
    words = iter(command)
    kept = []
    for word in words:
        if word not in _LISTS_OF_HEADERS:
            kept.append(word)
        elif _LISTS_OF_HEADERS[word]:
            next(words, None)
    return kept
