"""The mutants of tests/mutants/*.toml, and which of them a call asks for."""

from __future__ import annotations

import fnmatch
import hashlib
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path


class MutantError(Exception):
    """A mutant that cannot be tried, in one line."""


@dataclass(frozen=True)
class Mutant:
    """One way to break one file; each of `tests` must fail then.

    A test is "PROGRAM GTEST_FILTER" or "pytest NODE_ID...".
    """

    name: str
    what: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]

    @property
    def slow(self) -> bool:
        """Whether the file is compiled with LibTorch's headers, as far as its tests tell."""
        return any(test.startswith("unit_tests_torch ") for test in self.tests)

    def broken(self, text: str) -> str:
        """The file's text with the fault in it."""
        count = text.count(self.find)
        if count != 1:
            raise MutantError(
                f"mutant {self.name}: the text occurs {count} times in {self.file}, not once"
            )
        return text.replace(self.find, self.replace)


def read_mutants(folder: Path) -> list[Mutant]:
    """Every mutant of the folder's files, in order; MutantError where an entry is wrong."""
    found: dict[str, Mutant] = {}
    for path in sorted(folder.glob("*.toml")):
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
        for number, entry in enumerate(entries, start=1):
            mutant = _mutant(entry, f"{path.name}, mutant {number}")
            if mutant.name in found:
                raise MutantError(f"{path.name}: a second mutant is named {mutant.name}")
            found[mutant.name] = mutant
    return list(found.values())


def _mutant(entry: dict, where: str) -> Mutant:
    expected = [item.name for item in fields(Mutant)]
    if sorted(entry) != sorted(expected):
        raise MutantError(f"{where}: has {', '.join(entry)}; expected {', '.join(expected)}")
    tests = entry["tests"]
    texts = [entry[key] for key in expected[:-1]]
    if not isinstance(tests, list) or not all(isinstance(text, str) for text in texts + tests):
        raise MutantError(f"{where}: tests is a list of texts, every other value is a text")
    mutant = Mutant(**entry | {"tests": tuple(tests)})
    if not re.fullmatch(r"[a-z0-9_]+", mutant.name):
        raise MutantError(f"{where}: the name {mutant.name!r} is not in snake_case")
    if not mutant.find or mutant.find == mutant.replace:
        raise MutantError(f"{where}: {mutant.name} changes nothing")
    if Path(mutant.file).suffix not in (".cpp", ".h", ".py"):
        raise MutantError(f"{where}: {mutant.file} is no .cpp, .h or .py file")
    wrong = [test for test in tests if not _well_formed(test.split())]
    if wrong or not tests:
        raise MutantError(
            f"{where}: {wrong[0] if wrong else 'no test'}; "
            'expected "PROGRAM GTEST_FILTER" or "pytest NODE_ID..."'
        )
    return mutant


def _well_formed(words: list[str]) -> bool:
    return len(words) == 2 or (len(words) > 2 and words[0] == "pytest")


def choose(mutants: list[Mutant], patterns: list[str]) -> list[Mutant]:
    """Those whose name matches a pattern, all where there is none."""
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(mutant.name, pattern) for mutant in mutants):
            raise MutantError(f"no mutant is named {pattern}: see tools/check_mutants --list")
    return [
        mutant
        for mutant in mutants
        if not patterns or any(fnmatch.fnmatchcase(mutant.name, pattern) for pattern in patterns)
    ]


def sample(mutants: list[Mutant], count: int, seed: str) -> list[Mutant]:
    """So many of the mutants: the same for the same seed, others for another.

    No more than two in five are slow to compile, as long as there are enough others.
    """

    def order(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed}/{mutant.name}".encode()).hexdigest()

    ordered = sorted(mutants, key=order)
    slow = [mutant for mutant in ordered if mutant.slow]
    most = max(count * 2 // 5, count - (len(ordered) - len(slow)))
    chosen = slow[:most]
    chosen += [mutant for mutant in ordered if not mutant.slow][: count - len(chosen)]
    return [mutant for mutant in mutants if mutant in chosen]
