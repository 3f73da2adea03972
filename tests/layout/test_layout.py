"""The rules that a compiler does not check: which folder may include which, and the like."""

import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("bench", "models", "reports", "strategies", "tests", "tools", "training")
CPP_SUFFIXES = {".h", ".cpp", ".cu"}

# Which of the project's folders a folder may include, besides itself.
MAY_INCLUDE = {
    "models": set(),
    "reports": set(),
    "strategies": {"models"},
    "training": {"strategies", "models"},
    "bench": {"training", "strategies", "models", "reports"},
    "tools": {"bench", "training", "strategies", "models", "reports"},
    "tests": {"bench", "training", "strategies", "models", "reports", "tools"},
}
TORCH_HEADER = re.compile(r"^(ATen|c10|c10d|torch)/")
BACKEND_FILE = re.compile(r"_backend(_\w+)?\.(h|cpp|cu)$")
ALLOWED_MACRO = re.compile(r"STRATAGEM_(REGISTER(_\w+)?|FIELDS)$")
LONGEST_FILE, USUAL_LENGTH, USUAL_SHARE = 450, 300, 0.9

# Written so that no line of this file matches itself.
MACHINE_PATH = re.compile(r"(?<![\w.:~/})$*>-])/(?:home|root|work|tmp|opt|mnt|srv)/[\w.]")
REGISTRY_HOST = re.compile(r"\b(?:pypi|pythonhosted|anaconda)\.org|\bdownload\.pytorch\b")
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X|not yet impl[e]mented)\b")


def project_files() -> list[Path]:
    """Every text file that belongs to the project, relative to its root."""
    files = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in (*FOLDERS, "cmake", "docs", ".ci", ".github"):
        files += (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return sorted(
        path.relative_to(ROOT)
        for path in files
        if "__pycache__" not in path.parts and path.suffix not in {".png", ".svg", ".html", ".pyc"}
    )


def cpp_files() -> list[Path]:
    return [p for p in project_files() if p.suffix in CPP_SUFFIXES and p.parts[0] in FOLDERS]


def text_of(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def matches(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    """Each line that matches, as path:line: text; a script's first line names its interpreter."""
    return [
        f"{path}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if pattern.search(line) and not line.startswith("#!")
    ]


def includes(path: Path) -> list[tuple[str, str]]:
    """(quote, header) of each #include."""
    return re.findall(r'^\s*#\s*include\s+(["<])([^">]+)[">]', text_of(path), re.MULTILINE)


def wrong_include(folder: str, quote: str, header: str) -> str:
    """Why a file of `folder` may not include this header, or an empty string."""
    if quote == '"':
        if not (ROOT / header).is_file():
            return "is not a path from the repository's root"
        target = Path(header).parts[0]
        if target != folder and target not in MAY_INCLUDE[folder]:
            return f"{folder}/ may not include {target}/"
    elif Path(header).parts[0] in FOLDERS and (ROOT / header).is_file():
        return "is the project's own and belongs in double quotes"
    elif folder == "reports" and TORCH_HEADER.match(header):
        return "reports/ knows nothing of LibTorch"
    return ""


def test_the_walk_finds_the_tree() -> None:
    assert {path.parts[0] for path in cpp_files()} >= {"bench", "models", "reports", "strategies"}
    assert Path("CMakeLists.txt") in project_files()


def test_include_directions() -> None:
    wrong = [
        f"{path}: {header}: {reason}"
        for path in cpp_files()
        for quote, header in includes(path)
        if (reason := wrong_include(path.parts[0], quote, header))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("folder", "quote", "header"), [
    ("models", '"', "strategies/registry.h"),
    ("strategies", '"', "bench/config/config.h"),
    ("reports", '"', "models/layer.h"),
    ("bench", '"', "config.h"),
    ("bench", "<", "bench/config/config.h"),
    ("reports", "<", "ATen/ATen.h"),
])
def test_a_wrong_include_is_noticed(folder: str, quote: str, header: str) -> None:
    assert wrong_include(folder, quote, header)


def test_conditional_compilation_stays_in_backend_files() -> None:
    sources = [path for path in cpp_files() if not BACKEND_FILE.search(path.name)]
    found = matches(re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b"), sources)
    assert not found, "\n".join(found)


def test_no_macros_but_registration_and_lists_of_fields() -> None:
    found = [
        f"{path}: {name}"
        for path in cpp_files()
        if not BACKEND_FILE.search(path.name)
        for name in re.findall(r"^\s*#\s*define\s+(\w+)", text_of(path), re.MULTILINE)
        if not ALLOWED_MACRO.match(name)
    ]
    assert not found, "\n".join(found)


def listed_fields() -> list[tuple[str, str | None, list[str], list[str]]]:
    """(struct, its base, its members, what its STRATAGEM_FIELDS lists) of the production code."""
    found = []
    for path in cpp_files():
        text = re.sub(r"//.*", "", text_of(path))
        structs = re.findall(r"struct (\w+)(?: : (\w+))? {(.*?)\n};", text, re.DOTALL)
        for name, base, body in structs:
            listing = re.search(r"STRATAGEM_FIELDS\((.*?)\)", body, re.DOTALL)
            if not listing:
                continue
            lines = [line.strip(" \n}") for line in body[: listing.start()].split(";")]
            members = [
                re.split(r"[={]", line)[0].split()[-1]
                for line in lines
                if line and not re.match(r"static |using |[^=]*\(", line)
            ]
            found.append((name, base or None, members, re.findall(r"\w+", listing[1])))
    return found


def test_a_list_of_fields_names_every_member() -> None:
    """A member that it lacks is neither written nor read."""
    # Facts of a row that its summary in results.json does not repeat, and verdicts need.
    elsewhere = {"name", "strategy", "cores_per_device", "tutorial", "disturbed", "rounds_ms"}
    structs = {name: members for name, _, members, _ in listed_fields()}
    assert {"Repetition", "RowSummary", "MeasureJob", "ActionCost"} <= structs.keys()
    for name, base, members, listed in listed_fields():
        expected = (structs[base] if base else []) + members
        if name == "RowSummary":
            expected = [member for member in expected if member not in elsewhere]
        assert listed == expected, name


def test_headers_are_included_once_and_open_with_what_they_are() -> None:
    headers = [path for path in cpp_files() if path.suffix == ".h"]
    for path in headers:
        assert "#pragma once" in text_of(path), path
    silent = [str(path) for path in headers if not re.search(r"^//", text_of(path)[:400], re.M)]
    assert not silent, f"no opening comment: {silent}"


def test_files_are_named_in_snake_case() -> None:
    sources = [p for p in project_files() if p.suffix in CPP_SUFFIXES | {".py"}]
    wrong = [str(path) for path in sources if not re.fullmatch(r"[a-z0-9_]+", path.stem)]
    assert not wrong, wrong


def test_file_lengths(record_property) -> None:
    sources = [p for p in project_files() if p.suffix in CPP_SUFFIXES | {".py", ".sh"}]
    lengths = {path: len(text_of(path).splitlines()) for path in sources}
    longest = sorted(lengths, key=lengths.__getitem__, reverse=True)[:10]
    report = "\n".join(f"{lengths[path]:5} {path}" for path in longest)
    record_property("median", statistics.median(lengths.values()))
    record_property("longest", report)
    usual = sum(length <= USUAL_LENGTH for length in lengths.values()) / len(lengths)
    assert usual >= USUAL_SHARE, f"over {USUAL_LENGTH} lines: split some of\n{report}"
    assert lengths[longest[0]] <= LONGEST_FILE, f"over {LONGEST_FILE} lines: split\n{report}"


@pytest.mark.parametrize(("what", "pattern"), [
    ("path of one machine", MACHINE_PATH),
    ("host of a package registry", REGISTRY_HOST),
    ("mark of unfinished work", UNFINISHED),
])
def test_nothing_names_a(what: str, pattern: re.Pattern[str]) -> None:
    found = matches(pattern, project_files())
    assert not found, f"{what}:\n" + "\n".join(found)


def test_programs_are_executable() -> None:
    scripts = [path for path in project_files() if not path.suffix and text_of(path)[:2] == "#!"]
    assert Path("tools/run") in scripts
    not_executable = [str(path) for path in scripts if not (ROOT / path).stat().st_mode & 0o100]
    assert not not_executable, not_executable
