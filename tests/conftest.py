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
