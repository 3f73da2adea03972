"""Which Python package of the reports may import which, and that no modules import each other."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "reports"
NAME = "stratagem_reports"

# Each package may import itself and those of the lines above its own.
ORDER = (
    {"results"},
    {"analysis"},
    {"charts"},
    {"report"},
    {"comparison", "history"},
    {"commands"},
    {"__main__", ""},
)
ABOVE = {
    package: {package}.union(*ORDER[:index])
    for index, packages in enumerate(ORDER)
    for package in packages
}
Imports = dict[tuple[str, ...], set[tuple[str, ...]]]


def own_imports(module: tuple[str, ...], is_package: bool, source: str) -> set[tuple[str, ...]]:
    """What the module imports of the package, as paths from its root; also inside functions.

    Of `from .a import b` it holds both a and a.b, of which one may be a name inside a module.
    """
    found = set()
    inside = module if is_package else module[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            paths = [tuple(alias.name.split(".")) for alias in node.names]
            found.update(path[1:] for path in paths if path[0] == NAME)
        elif isinstance(node, ast.ImportFrom):
            path = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                path = (NAME, *inside[: len(inside) - node.level + 1], *path)
            if path[:1] == (NAME,):
                found.add(path[1:])
                found.update((*path[1:], alias.name) for alias in node.names)
    return found


def all_imports() -> Imports:
    """Of every module, the modules that it imports."""
    sources = {}
    for path in sorted((ROOT / NAME).rglob("*.py")):
        module = path.relative_to(ROOT / NAME).with_suffix("").parts
        is_package = module[-1] == "__init__"
        sources[module[:-1] if is_package else module] = (is_package, path)
    imports = {}
    for module, (is_package, path) in sources.items():
        found = own_imports(module, is_package, path.read_text(encoding="utf-8"))
        # A package's own file is loaded before its modules and does not depend on itself.
        imports[module] = {item for item in found if item in sources} - {module, module[:-1]}
    return imports


def wrong_directions(imports: Imports) -> list[str]:
    """Each import of a package that stands later in the order, or in none of its lines."""
    return [
        f"{'.'.join(module)} may not import {'.'.join(other)}"
        for module, others in imports.items()
        for other in sorted(others)
        if "".join(other[:1]) not in ABOVE["".join(module[:1])]
    ]


def cycle(imports: Imports) -> list[str]:
    """The modules of a cycle in order, the first of them again at the end; [] without one."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return [".".join(module) for module in error.args[1]]
    return []


def test_every_package_has_its_place_in_the_order() -> None:
    assert {"".join(module[:1]) for module in all_imports()} == set(ABOVE)


def test_packages_import_only_those_before_them() -> None:
    wrong = wrong_directions(all_imports())
    assert not wrong, "\n".join(wrong)


def test_modules_do_not_import_each_other() -> None:
    found = cycle(all_imports())
    assert not found, " -> ".join(found)


@pytest.mark.parametrize(("module", "source"), [
    (("results", "load"), "from ..analysis.labels import percent"),
    (("analysis", "labels"), "from stratagem_reports.charts import theme"),
    (("comparison", "rounds"), "def read():\n    from ..history import store"),
    (("charts", "render"), "import stratagem_reports.report.page"),
])
def test_a_wrong_import_is_noticed(module: tuple[str, ...], source: str) -> None:
    assert wrong_directions({module: own_imports(module, False, source)})


def test_a_cycle_is_noticed() -> None:
    imports = {
        ("results", name): own_imports(("results", name), False, f"from .{other} import thing")
        for name, other in (("files", "load"), ("load", "errors"), ("errors", "files"))
    }
    assert set(cycle(imports)) == {"results.files", "results.load", "results.errors"}
