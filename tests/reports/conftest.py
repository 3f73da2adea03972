"""Shared by the tests of the reports."""

from __future__ import annotations

import json

import browser
import pytest
import vl_convert
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


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests of a process; each test opens pages in a context of its own."""
    with browser.chromium() as started:
        yield started


@pytest.fixture(autouse=True, scope="session")
def pictures_made():
    """The pictures so far: many tests draw the same chart, which gives the same picture."""
    made = {}

    def kept(draw):
        def drawn(source, **options):
            key = (draw, json.dumps([source, options]))
            if key not in made:
                made[key] = draw(source, **options)
            return made[key]

        return drawn

    with pytest.MonkeyPatch.context() as patch:
        for name in ("vegalite_to_svg", "svg_to_png"):
            patch.setattr(vl_convert, name, kept(getattr(vl_convert, name)))
        yield made
