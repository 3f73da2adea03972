"""Shared by the tests of the reports."""

from __future__ import annotations

import json

import pytest
from schema_validation import expect_valid
from stratagem_reports.history import store
from stratagem_reports.history.points import to_line


@pytest.fixture(autouse=True, scope="session")
def written_lines_of_the_history_are_valid():
    """Each line that a test has the store write is what its schema says."""

    def checked(run):
        line = to_line(run)
        expect_valid("history", json.loads(line), run.identity)
        return line

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "to_line", checked)
        yield
