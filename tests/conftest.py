"""Shared by every Python test."""

from __future__ import annotations

import json
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that no process waits for another's last one."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
