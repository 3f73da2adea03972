"""A headless Chromium for tests, and what a page did while it was open."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

TIMEOUT_MS = 30_000
# How a page is seen: by day each scheme and each width once.
VIEWS = [
    ("light", 1200),
    ("dark", 400),
    pytest.param("light", 400, marks=pytest.mark.night),
    pytest.param("dark", 1200, marks=pytest.mark.night),
]
NAMES = ("chromium", "chromium-browser", "google-chrome")


def found() -> str:
    """Chromium's path; without one the test is skipped, in CI it fails."""
    path = next((where for name in NAMES if (where := shutil.which(name))), None)
    missing = "" if path else "no chromium on PATH: apt-get install chromium"
    if importlib.util.find_spec("playwright") is None:
        missing = "no Python package playwright: tools/test installs it"
    if missing and os.environ.get("CI"):
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    return path


@contextlib.contextmanager
def chromium():
    """The browser, closed again at the end; root may not use its sandbox."""
    path = found()
    from playwright.sync_api import sync_playwright

    arguments = ["--disable-dev-shm-usage"]  # containers have a small one
    arguments += ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=arguments, timeout=2 * TIMEOUT_MS
        )
        yield browser
        browser.close()


def until(holds: Callable[[], bool]) -> None:
    """Waits for what a page's content policy keeps it from waiting for itself."""
    limit = time.monotonic() + TIMEOUT_MS / 1e3
    while not holds():
        assert time.monotonic() < limit, "it never came to hold"
        time.sleep(0.05)


_BROKEN_WORDS = """() => {
  const broken = [];
  for (const part of document.querySelectorAll("main :is(li, p, dd, h3, figcaption), h1")) {
    const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      for (const word of walker.currentNode.data.matchAll(/[^\\s-]+/g)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, word.index);
        range.setEnd(walker.currentNode, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((line) => Math.round(line.top)));
        if (lines.size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""


@dataclass(frozen=True)
class Box:
    """Where a text stands, in pixels."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def holds(self, other: Box, slack: float = 1.0) -> bool:
        """Whether the other lies inside."""
        across = self.left - slack <= other.left and other.right <= self.right + slack
        return across and self.top - slack <= other.top and other.bottom <= self.bottom + slack

    def meets(self, other: Box) -> bool:
        """Whether the other covers a part."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def boxes(locator) -> list[Box]:
    """The boxes of the elements that are seen, in their order."""
    found = locator.evaluate_all(
        "all => all.filter(one => one.getClientRects().length && getComputedStyle(one).opacity > 0)"
        ".map(one => [one.textContent, one.getBoundingClientRect().toJSON()])"
    )
    edges = ("left", "top", "right", "bottom")
    return [Box(text, *(box[edge] for edge in edges)) for text, box in found]


@dataclass
class Seen:
    """An open page with its complaints and the requests it made."""

    page: object
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def draw_all(self) -> None:
        """Brings every chart onto the screen until it is drawn."""
        for figure in self.page.locator("figure[data-chart]").all():
            figure.scroll_into_view_if_needed()
            figure.locator(".plot svg.marks").first.wait_for(state="visible")

    def broken_words(self) -> list[str]:
        """The words of sentences that go on in another line, except behind a hyphen."""
        return self.page.evaluate(_BROKEN_WORDS)

    def hover(self, figure: str) -> object:
        """Brings a chart onto the screen, draws it, and points at it; gives the figure."""
        found = self.page.locator(figure)
        found.scroll_into_view_if_needed()
        found.locator(".plot svg.marks").first.wait_for(state="visible")
        found.locator(".plot").hover()
        return found

    def sorted_by(self) -> dict[str, str]:
        """{heading: direction} of the headings that say that the table is sorted by them."""
        return self.page.eval_on_selector_all(
            "table[data-sortable] thead [aria-sort]",
            "cells => Object.fromEntries("
            "cells.map(cell => [cell.innerText, cell.getAttribute('aria-sort')]))",
        )

    def column(self, number: int) -> list[str]:
        """The texts of a column in the rows that are not filtered out, from the top."""
        return self.page.eval_on_selector_all(
            "table[data-sortable] tbody tr:not([hidden])",
            f"rows => rows.map(row => row.cells[{number}].innerText)",
        )

    def outside_requests(self) -> list[str]:
        """What the page asked for besides itself and what it holds."""
        inside = ("data:", self.page.url)
        return [url for url in self.requests if not url.startswith(inside)]

    def shown_rows(self) -> list[str]:
        """The first cell of each row that is not filtered out, from the top."""
        return self.column(0)


@contextlib.contextmanager
def opened(browser, path: Path, width: int = 1200, **options):
    """The page in a context of its own; `options` are the context's, as color_scheme."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    seen = Seen(page)
    page.on(
        "console",
        lambda message: seen.complaints.append(message.text)
        if message.type in ("error", "warning")
        else None,
    )
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(path.as_uri())
    yield seen
    context.close()
