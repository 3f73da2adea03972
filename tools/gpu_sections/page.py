"""The page: Markdown that can be pasted into docs/explanation/performance.md as a section."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_sections.machine import ROOT, Machine
from gpu_sections.sections import REHEARSED, Section


@dataclass(frozen=True)
class Result:
    """The result of a section: one text of figures per command, and the reasons of a failure."""

    section: Section
    seconds: float = 0
    figures: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Return the verdict in a word: passed, failed or left out, with the reasons."""
        if self.complaints:
            return f"failed: {'; '.join(self.complaints)}"
        return f"left out: {self.section.left_out}" if self.section.left_out else "passed"


def without_folders(text: str, machine: Machine) -> str:
    """Return the text without the folders of this machine.

    Paths in the tree become relative to it. Programs lose their folder, and output files keep only
    its name.
    """
    for folder, name in ((ROOT, ""), (machine.programs, ""), (machine.out, f"{machine.out.name}/")):
        text = text.replace(f"{folder}/", name)
    return text


def command_line(words: Sequence[str], machine: Machine) -> str:
    """Return a command as a user types it."""
    first, *rest = words
    if Path(first).name.startswith("python"):
        first, *rest = rest
    return without_folders(shlex.join([first, *rest]), machine)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines]


def _part(result: Result, machine: Machine) -> list[str]:
    """Return a section's part of the page."""
    section = result.section
    lines = ["", f"### {section.title}", "", f"{result.verdict}; {result.seconds:.0f} s."]
    lines += section.notes
    for index, command in enumerate(section.commands):
        shown = [f"$ {command_line(command.words, machine)}"]
        if index < len(result.figures) and result.figures[index]:
            shown.append(result.figures[index])
        lines += ["", "```", *shown, "```"]
    return lines


def render(machine: Machine, results: Sequence[Result], when: str) -> str:
    """Return the page of the results so far."""
    device = "rehearsal on CPU devices" if machine.rehearsal else f"{machine.facts[0][1]}"
    failed = [result.section.key for result in results if result.complaints]
    seconds = sum(result.seconds for result in results)
    lines = [f"## GPU check: {device}", "", f"`tools/gpu_check`, {when}; {seconds:.0f} s."]
    lines += [REHEARSED] if machine.rehearsal else []
    lines += [f"Failed: {', '.join(failed)}." if failed else "Nothing failed.", ""]
    lines += _table(["machine", ""], machine.facts)
    lines.append("")
    rows = [[r.section.title, r.verdict, f"{r.seconds:.0f} s"] for r in results]
    lines += _table(["section", "verdict", "time"], rows)
    for result in results:
        lines += _part(result, machine)
    return without_folders("\n".join(lines), machine) + "\n"
