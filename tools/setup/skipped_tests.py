"""Lists the skipped tests of JUnit files (GoogleTest's and pytest's) and why they were skipped.

Exits 1 if a file is missing or holds no test, and, with CI=true, if a test was skipped for
a reason that does not begin with one of ALLOWED or of $STRATAGEM_ALLOW_SKIP (semicolon-separated).
"""

import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ALLOWED = ["needs a GPU", "needs network namespaces"]

# GoogleTest writes "FILE:LINE" and pytest "Skipped: " before the reason.
BEFORE_REASON = re.compile(r"\A(?:\S+:\d+\s+)?(?:Skipped:? )?")


def name_of(case: ElementTree.Element) -> str:
    """Return the name of a test as GoogleTest or pytest prints it."""
    separator = "." if case.get("result") else "::"
    return separator.join(filter(None, [case.get("classname"), case.get("name")]))


def read_skips(path: Path) -> tuple[int, list[tuple[str, str]]]:
    """Return how many tests of a JUnit file ran, and (test, reason) of each skipped test."""
    ran, skips = 0, []
    for case in ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is None:
            ran += 1
        else:
            message = (skipped.get("message") or skipped.text or "").strip()
            skips.append((name_of(case), " ".join(BEFORE_REASON.sub("", message).split())))
    return ran, skips


def main(paths: list[str]) -> int:
    """Print the list and return the exit status."""
    status, skips = 0, []
    for path in map(Path, paths):
        if not path.is_file():
            print(f"no test ran: {path} is missing")
            status = 1
            continue
        ran, of_file = read_skips(path)
        skips += of_file
        if ran == 0 and not of_file:
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
