"""A comment or a page that names a file or folder of the tree names one that exists."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("bench", "cmake", "docs", "models", "reports", "strategies", "tests", "tools", "training")
SCRIPT = re.compile(r"#!.*\b(sh|bash|python3)\b")
HASH_COMMENT = re.compile(r"(?:^|(?<=\s))#(?!!).*", re.MULTILINE)

# A path from the root, with `*` and `{h,cpp}` as in a shell; or a file's name, alone or with the
# end of its path.
FROM_ROOT = re.compile(rf"(?<![\w/.$}}>-])(?:{'|'.join(FOLDERS)})/[\w./*{{}},-]*")
FILE_NAME = re.compile(r"(?<![\w/.<$}*-])[\w/-]*\w\.(?:h|cpp|py|md|sh|cmake)\b(?![.(/\w])")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[\w-]*)?\)")
# What a run writes, and files of other projects.
ELSEWHERE = {"comparison.md", "page.md", "report.md", "trend.md", "doc/PERFORMANCE.md", "crt/host_config.h",
             "TorchConfig.cmake", "version.py"}


def written_files() -> set[str]:
    """Every file and folder of the tree, relative to its root; what a build leaves is none."""
    found = {path.name for path in ROOT.iterdir() if path.is_file()}
    for folder in (*FOLDERS, ".ci", ".github"):
        paths = (ROOT / folder).rglob("*")
        found |= {str(path.relative_to(ROOT)) for path in paths if "__pycache__" not in path.parts}
    return found


WRITTEN = written_files()


def python_comments(source: str) -> str:
    """Docstrings and comments."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, documented))
    texts = [ast.get_docstring(node) or "" for node in nodes]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    texts += [token.string for token in tokens if token.type == tokenize.COMMENT]
    return "\n".join(texts)


def comments_of(path: Path, text: str) -> str:
    """What the file says to its reader: of a page all of it, of code its comments."""
    first = text.partition("\n")[0]
    if path.suffix == ".md":
        return text
    if path.suffix in {".h", ".cpp", ".inl"}:
        return "\n".join(re.findall(r"(?<!:)//.*", text))
    if path.suffix == ".py" or (SCRIPT.match(first) and "python" in first):
        return python_comments(text)
    hashes = path.name == "CMakeLists.txt" or path.suffix in {".sh", ".cmake", ".yml"}
    if hashes or SCRIPT.match(first):
        return "\n".join(HASH_COMMENT.findall(text))
    return ""


def alternatives(path: str) -> Iterator[str]:
    """Each path that the shell makes of one with braces."""
    pieces = [piece.split(",") for piece in re.split(r"[{}]", path)]
    return ("".join(chosen) for chosen in product(*pieces))


def exists(path: str) -> bool:
    if "*" in path:
        return any(ROOT.glob(path))
    return path in WRITTEN or path in FOLDERS


def named_like(name: str) -> bool:
    """Whether some file has this name, or a path that ends in it."""
    return name in ELSEWHERE or any(path == name or path.endswith("/" + name) for path in WRITTEN)


def wrong_names(path: Path, text: str) -> list[str]:
    """Each file or folder that the text names, or links to, and that does not exist."""
    said = comments_of(path, text)
    wrong = []
    for found in FROM_ROOT.findall(said):
        named = found.split(",")[0] if "{" not in found else found
        wrong += [one for one in alternatives(named.rstrip(".,-/")) if not exists(one)]
    wrong += [name for name in FILE_NAME.findall(said)
              if name.split("/")[0] not in FOLDERS and not named_like(name)]
    if path.suffix == ".md":
        wrong += [link for link in LINK.findall(said) if not (ROOT / path.parent / link).exists()]
    return sorted({f"{path}: there is no {name}" for name in wrong})


def files() -> list[Path]:
    return sorted(Path(path) for path in WRITTEN if (ROOT / path).is_file())


def test_what_is_named_exists() -> None:
    wrong = []
    for path in files():
        content = (ROOT / path).read_bytes()
        if b"\0" not in content:
            wrong += wrong_names(path, content.decode("utf-8"))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("path", "text"), [
    ("bench/a.h", "// See bench/no_such_file.h."),
    ("bench/a.cpp", "int x;  // as in strategies/pipeline/"),
    ("strategies/a.h", "/// What a thread needs is handed in (see cpu_backend.h)."),
    ("strategies/a.h", "std::string name;  // see pipeline/schedule_registry.h"),
    ("tools/a.py", '"""Reads reports/no_such_module.py."""'),
    ("tools/a.py", "x = 1  # as tools/no_such_tool does"),
    ("tools/a", "#!/usr/bin/env bash\n# Calls tools/setup/no_such_step.sh."),
    ("docs/a.md", "`models/registry/{registry,no_such_registry}.h`"),
    ("docs/a.md", "one file in `strategies/no_such_folder/*`"),
    ("docs/a.md", "[a page](no_such_page.md#part)"),
    ("docs/a.md", "![a picture](images/no_such_picture.png)"),
])
def test_a_wrong_name_is_noticed(path: str, text: str) -> None:
    assert wrong_names(Path(path), text)


@pytest.mark.parametrize(("path", "text"), [
    ("bench/a.h", "// See bench/config/config.cpp, and registry.h."),
    ("bench/a.h", 'auto text = read("bench/no_such_file.h");'),
    ("tools/a.py", 'path = "reports/no_such_module.py"'),
    ("docs/a.md", "`models/registry/registry.{h,cpp}`, `models/registry/*.h`, build/bin/bench_x."),
    ("docs/a.md", "[statistics](explanation/statistics.md#outliers) of `strategies/presets/`; <ATen/ATen.h>"),
])
def test_a_right_name_is_let_pass(path: str, text: str) -> None:
    assert not wrong_names(Path(path), text)
