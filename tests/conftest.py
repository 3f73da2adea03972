"""Shared by every Python test."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest


@pytest.fixture
def write_json(tmp_path):
    """Writes a value as JSON into the test's own folder and returns the path."""

    def write(value, name: str = "results.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    return write


def is_integration(item: pytest.Item) -> bool:
    return item.path.parent.name == "integration"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the tests of a fast file into a group, and orders all tests.

    One process runs a group whole (`--dist loadgroup`), so that it makes what the tests share once.
    Tests of the real executables have a group only where they share something. Slow groups come
    first, then other slow tests, so that no process waits long for another's last test.
    STRATAGEM_TEST_ORDER=SEED shuffles the tests instead.
    """
    apart = {item.path for item in items if item.get_closest_marker("slow") or is_integration(item)}
    for item in items:
        if item.path not in apart and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))

    def rank(item: pytest.Item) -> int:
        if not (item.get_closest_marker("slow") or is_integration(item)):
            return 2
        return 0 if item.get_closest_marker("xdist_group") else 1

    if seed := os.environ.get("STRATAGEM_TEST_ORDER"):
        random.Random(seed).shuffle(items)
    else:
        items.sort(key=rank)
    if config.getoption("loadgroup", False):
        append_groups(items)


def append_groups(items: list[pytest.Item]) -> None:
    """Tells pytest-xdist the groups, by the ends of names: 3.8 sets a field that pytest 9.2 lacks."""
    for item in items:
        groups = sorted({mark.args[0] for mark in item.iter_markers("xdist_group")})
        if groups and "@" not in item.nodeid.rpartition("]")[2]:
            item._id = item._id.parse(f"{item.nodeid}@{'_'.join(groups)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Takes the group, which pytest-xdist appends to a test's name, off in what is reported."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        report.nodeid = re.sub(r"@[^@\]]+$", "", report.nodeid)
