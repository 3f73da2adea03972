"""tools/gpu_check rehearsed with the real programs on CPU devices."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="no torchvision"),
]
# What stands in a section when it did its work, besides that it passed.
FIGURES = {
    "Devices and process groups": r"\[  PASSED  \] \d+ tests\.[^#]*\[  PASSED  \] \d+ tests\.",
    "Every strategy against its oracle": r"\nddp/toy.* equal [^#]*\ntensor_parallel/.* equal ",
    "The tutorial's protocol": r" call ms [^#]* pipeline/devices:2(?:/split:2)? +[\d.]+ ",
    "Every strategy in one table": r" ms [^#]* tensor_parallel/devices:2\S* +[\d.]+ ",
    "Collectives against the link": r"\nall_reduce +16 MiB +16 MiB +[\d.]+ +[\d.]+[^#]*\nlink: ",
    "PyTorch on the same devices": r"\ntorch/single +\d[^#]*\nsingle: torch's single over ours",
}


def rehearse(commands, folder, *options) -> dict[str, str]:
    """The text of each section, by its title."""
    commands.limit_s = 600
    program = [ROOT / "tools" / "gpu_check", "--rehearse", "--programs", commands.programs]
    done = commands.finish(commands.start_command([*program, "--out-dir", folder, *options]))
    page = (folder / "page.md").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr + page
    assert done.stdout == f"{folder / 'page.md'}\n"
    assert "Nothing failed." in page
    assert re.search(r"\| PyTorch \| 2\.\d+", page) and "| driver | " in page
    parts = dict(re.findall(r"^### (.*)\n([^#]*)", page, re.MULTILINE))
    for title, text in parts.items():
        assert f"| {title} | passed | " in page
        assert re.match(r"\npassed; \d+ s\.", text)
        assert re.search(FIGURES[title], text), text
    return parts


def test_a_section_runs_the_real_programs_and_writes_the_page(commands, tmp_path):
    parts = rehearse(commands, tmp_path / "check", "--only", "verify")
    assert [*parts] == ["Every strategy against its oracle"]


@pytest.mark.night
def test_the_rehearsal_runs_every_section(commands, tmp_path):
    folder = tmp_path / "check"
    assert [*rehearse(commands, folder)] == [*FIGURES]
    assert (folder / "tutorial" / "report.html").exists()


@pytest.mark.night
def test_every_way_of_both_sides_runs_on_images(commands, tmp_path):
    """What the rehearsal does with smaller models and one way of each side."""
    commands.limit_s = 600
    verified = commands.stratagem("verify", "--model", "resnet18", "--schedule", "1f1b,zb_v")
    assert verified.returncode == 0, verified.stderr
    assert re.search(r"\nddp/resnet18.* equal ", verified.stdout)
    compare = [ROOT / "tools" / "peers" / "compare", "--scenario", "every_way", "--batch", 8]
    compare += ["--image", 64, "--splits", 4, "--rounds", 1, "--steps", 1]
    compare += ["--stratagem", commands.programs / "stratagem", "--only", "^(?!.*/allocator$)"]
    done = commands.finish(commands.start_command(compare))
    assert done.returncode == 0, done.stderr
    assert re.search(r"\ntorch/pipelining +\d[^#]*\nsingle: torch's single over ours", done.stdout)
