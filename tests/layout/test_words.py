"""Pages, help and comments are in plain English: words that readers stumbled over stay out."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Each with what to write. The list is short on purpose: it is read by those who write.
WORDS = {
    r"in place of": "instead of",
    r"held against": "compared with",
    r"told apart": "significantly different, distinguished",
    r"likewise": "name the thing",
    r"whoever": "the caller, the user",
    r"contenders?": "candidate",
    r"lonely": "sole",
    r"(?:program|command|page|table|file|row|option)s? (?:says?|tells?|speaks?)": "prints, reports",
    r"of its own accord": "by itself",
    r"be doubted": "be uncertain",
    r"in the hand": "name the object",
}
PLAIN = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
# A comment that begins so leans on the line above it.
LEANING = re.compile(r"^\s*///? (?:Of|What|Whether|Those|As) ")
GENERATED = re.compile(r"<!-- figures: .*?<!-- end -->|```.*?```|`[^`]*`", re.DOTALL)


def tracked(*patterns: str) -> list[Path]:
    """Return the files of the tree that match, new ones included."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def pages() -> list[Path]:
    """Return the documentation."""
    return [path for path in tracked("*.md") if path.parts[-1] != "pull_request_template.md"]


def stumbling(text: str) -> list[str]:
    """Return the words of a page that are on the list."""
    return [match[0] for match in PLAIN.finditer(GENERATED.sub(" ", text))]


def test_pages_are_in_plain_english() -> None:
    found = {str(path.relative_to(ROOT)): stumbling(path.read_text("utf-8")) for path in pages()}
    assert not {path: words for path, words in found.items() if words}


def test_comments_have_a_subject() -> None:
    sources = [
        path
        for path in tracked("*.h", "*.cpp", "*.inl")
        if path.relative_to(ROOT).parts[0] != "tests"
    ]
    assert sources
    found = [
        f"{path.relative_to(ROOT)}:{number}: {lines[number - 1].strip()}"
        for path in sources
        for lines in [path.read_text("utf-8").splitlines()]
        for number, line in enumerate(lines, start=1)
        # The first line of a comment: the line before is none.
        if LEANING.match(line) and not re.match(r"^\s*//", lines[number - 2] if number > 1 else "")
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is held against theory.", ["held against"]),
        ("The table says so, likewise.", ["table says", "likewise"]),
        ("`in place of` and\n```\ntold apart\n```", []),
    ],
)
def test_a_word_of_the_list_is_found(text: str, found: list[str]) -> None:
    assert stumbling(text) == found
