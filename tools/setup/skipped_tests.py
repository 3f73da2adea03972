"""Lists the skipped tests of JUnit files (ctest's and pytest's) and why they were skipped.

Exits 1 if a file is missing or holds no test that ran, and, with CI=true, if a test was skipped for
a reason that does not begin with one of ALLOWED or of $STRATAGEM_ALLOW_SKIP (semicolon-separated).
"""

import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ALLOWED = ["needs a GPU", "needs network namespaces"]

# What GoogleTest prints for GTEST_SKIP() << "reason", between a test's RUN and SKIPPED lines.
GOOGLETEST_SKIP = re.compile(
    r"\[ RUN      \] (?P<name>\S+)\n"
    r"(?P<output>(?:(?!\[ RUN      \]).)*?)"
    r"\[  SKIPPED \] (?P=name)",
    re.DOTALL,
)
GOOGLETEST_REASON = re.compile(r": Skipped\n(.*?)\s*\Z", re.DOTALL)


def googletest_skips(output: str) -> list[tuple[str, str]]:
    """(test, reason) for each test that a GoogleTest program's output shows as skipped."""
    skips = []
    for match in GOOGLETEST_SKIP.finditer(output):
        reason = GOOGLETEST_REASON.search(match["output"])
        skips.append((match["name"], " ".join(reason[1].split()) if reason else ""))
    return skips


def pytest_reason(skipped: ElementTree.Element) -> str:
    """pytest gives the reason as the message, before or after the place of the skip."""
    return (skipped.get("message") or skipped.text or "").removeprefix("Skipped: ").strip()


def read_skips(path: Path) -> tuple[int, list[tuple[str, str]]]:
    """How many tests of a JUnit file ran, and (test, reason) of those that did not."""
    ran, skips = 0, []
    for case in ElementTree.parse(path).iter("testcase"):
        within = googletest_skips(case.findtext("system-out") or "")
        skipped = case.find("skipped")
        skips += within
        if skipped is None:
            ran += 1
        elif not within:
            name = "::".join(filter(None, [case.get("classname"), case.get("name")]))
            skips.append((name, pytest_reason(skipped)))
    return ran, skips


def main(paths: list[str]) -> int:
    """Prints the list; the exit status."""
    status, skips = 0, []
    for path in map(Path, paths):
        if not path.is_file():
            print(f"no test ran: {path} is missing")
            status = 1
            continue
        ran, of_file = read_skips(path)
        skips += of_file
        if ran == 0:
            print(f"no test ran in {path}")
            status = 1
    print(f"\nSkipped tests: {len(skips) or 'none'}")
    for name, reason in skips:
        print(f"  {name}: {reason or 'no reason given'}")

    more = [text for text in os.environ.get("STRATAGEM_ALLOW_SKIP", "").split(";") if text]
    allowed = tuple(ALLOWED + more)
    refused = [name for name, reason in skips if not reason.startswith(allowed)]
    if refused and os.environ.get("CI") == "true":
        print(f"not to be skipped with CI=true: {', '.join(refused)}")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
