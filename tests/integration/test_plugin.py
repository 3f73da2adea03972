"""A user's plug-in, outside the tree: docs/reference/plugins.md as written, and what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

# One process installs the tree and builds the plug-ins, and runs all tests of them.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("plugin")]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "plugin"
PAGE = (ROOT / "docs" / "reference" / "plugins.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
INSTALL, RUN = (text for language, text in BLOCKS if language == "sh")
ROW = ["--model", "residual_mlp", "--global-batch-size", "12", "--split-size", "4"]
ROW += ["--steps", "1", "--repetitions", "1", "--no-repeat-disturbed"]

BROKEN = {
    "undefined": "void nowhere();\nnamespace { const bool called = (nowhere(), true); }\n",
    "empty": "",
    "taken": """#include "strategies/schedules/registry.h"
namespace stratagem::schedules {
namespace {
STRATAGEM_REGISTER(ScheduleEntry{"gpipe", "another", nullptr, nullptr});
}
}
""",
}


@dataclass
class Installed:
    """The installed tree and the plug-ins that were built against it."""

    prefix: Path
    mine: Path
    broken: Path

    @property
    def library(self) -> Path:
        return self.mine / "libmine.so"

    @property
    def places(self) -> dict[str, str]:
        """The variables of the page's commands."""
        return {"PREFIX": str(self.prefix), "MINE": str(self.mine)}


def shell(text: str, environment: dict[str, str], folder: Path = ROOT) -> str:
    """Run the lines of a page, up to the first that fails; returns what they print."""
    done = subprocess.run(
        ["bash", "-ec", text], cwd=folder, env=environment, text=True, capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    if not (ROOT / "build/bin/stratagem").exists():
        pytest.skip("build/bin/stratagem is not built: cmake --build --preset release")
    folder = tmp_path_factory.mktemp("plugin")
    found = Installed(folder / "prefix", folder / "mine", folder / "broken")
    environment = {**os.environ, **found.places}
    shell(INSTALL, environment)
    found.broken.mkdir()
    lines = ["cmake_minimum_required(VERSION 3.22)", "project(broken LANGUAGES CXX)"]
    lines.append("find_package(Stratagem REQUIRED)")
    for name, text in BROKEN.items():
        (found.broken / f"{name}.cpp").write_text(text, encoding="utf-8")
        lines.append(f"stratagem_plugin({name} {name}.cpp)")
    (found.broken / "CMakeLists.txt").write_text("\n".join(lines), encoding="utf-8")
    build = 'cmake -G Ninja -S . -B . -DCMAKE_PREFIX_PATH="$PREFIX"; cmake --build .'
    shell(build, environment, found.broken)
    return found


@pytest.fixture
def stratagem(installed, commands):
    """Run the installed `stratagem`."""

    def run(*arguments, program: str = "stratagem", **variables) -> subprocess.CompletedProcess:
        process = commands.start_command(
            [installed.prefix / "bin" / program, *arguments],
            **{"STRATAGEM_PYTHON": sys.executable, **variables},
        )
        return commands.finish(process)

    return run


def identities(results: dict) -> set[str]:
    rows = [entry for entry in results["benchmarks"] if entry["run_type"] == "iteration"]
    return {entry["stratagem"]["config"]["plugin"] for entry in rows}


def verifications(cache: Path) -> int:
    return len(list((cache / "stratagem").glob("verify-*.json")))


def other_build(installed: Installed, folder: Path) -> Path:
    """A library of the same name with other bytes: loaders do not read behind the sections."""
    path = folder / "other" / "libmine.so"
    path.parent.mkdir()
    path.write_bytes(installed.library.read_bytes() + b"another build")
    return path


@pytest.mark.parametrize("language", ["cpp", "cmake"])
def test_the_page_shows_the_example(language):
    files = [path.read_text(encoding="utf-8") for path in SOURCES.iterdir()]
    shown = [text for found, text in BLOCKS if found == language]
    assert shown
    for text in shown:
        assert any(text in content for content in files), text


def test_the_pages_commands(installed, commands, tmp_path):
    text = shell(RUN, {**commands.environment, **installed.places}, tmp_path)
    for name in ("residual_mlp", "blobs", "eager_1f1b", "eager_pipeline"):
        assert re.search(rf"^  {name} ", text, re.MULTILINE), "not listed"
    assert "eager_1f1b: 4 stages, 8 micro-batches" in text
    first, last = re.findall(r"validation after \d+ steps: loss ([\d.]+)", text)
    assert float(last) < 0.5 * float(first), "it learns the plug-in's data"
    results = commands.results(tmp_path / "results.json")
    (run, *_) = runs = commands.iterations(results, "eager_pipeline")
    for entry in runs:
        assert entry["stratagem"]["error"] is None
        assert entry["stratagem"]["verification"]["passed"] is True
        assert entry["stratagem"]["predicted_ms"] > 0
    assert run["run_name"] == "eager_pipeline/residual_mlp/devices:2/batch:48/split:12"
    (identity,) = identities(results)
    assert re.fullmatch(r"libmine\.so@[0-9a-f]{16}", identity)
    assert results["context"]["stratagem"]["fingerprint"]["software"]["plugins"] == identity


def test_list_as_json_and_the_other_subcommands(installed, stratagem):
    listed = stratagem("list", "schedules", "--json", "--plugin", installed.library)
    assert '"name": "eager_1f1b"' in listed.stdout
    priced = stratagem("simulate", "--calibrated", f"--plugin={installed.library}", *ROW[:6],
                       "--strategy", "eager_pipeline")
    assert priced.returncode == 0 and "ideal" in priced.stdout, priced.stderr
    rates = stratagem("calibrate", "--plugin", installed.library)
    assert rates.returncode == 0, rates.stderr


def test_ranks_load_it(installed, stratagem, out, commands):
    done = stratagem("run", "--plugin", installed.library, *ROW[:4], *ROW[6:],
                     "--strategy", "ddp", "--out", out)
    assert done.returncode == 0, done.stderr
    (run,) = commands.iterations(commands.results(out), "ddp")
    assert len(run["stratagem"]["per_rank_ms"]) == 2


def test_ranks_with_other_files_are_refused(installed, commands, tmp_path):
    others = [installed.library, other_build(installed, tmp_path)]
    ranks = [
        commands.start_command(
            [installed.prefix / "bin" / "stratagem", "run", "--plugin", library, *ROW[:4], *ROW[6:],
             "--strategy", "ddp", "--init-method", f"file://{tmp_path}/meeting", "--rank", rank,
             "--world-size", 2],
        )
        for rank, library in enumerate(others)
    ]
    done = [commands.finish(rank) for rank in ranks]
    assert done[0].returncode != 0
    assert "give every rank the same files" in done[0].stderr


def test_another_build_is_verified_again(installed, stratagem, tmp_path, out, commands):
    row = [*ROW, "--no-predict", "--strategy", "eager_pipeline", "--out", out]
    cache = tmp_path / "cache"
    seen = []
    for library in (installed.library, installed.library, other_build(installed, tmp_path)):
        done = stratagem("run", "--plugin", library, *row, XDG_CACHE_HOME=str(cache))
        assert done.returncode == 0, done.stderr
        seen.append((verifications(cache), identities(commands.results(out))))
    assert [count for count, _ in seen] == [1, 1, 2]
    assert seen[0][1] == seen[1][1] != seen[2][1]


def test_a_config_file_names_it(installed, stratagem, write_json):
    config = write_json({"plugin": str(installed.library), "strategy": "eager_pipeline",
                         "model": "residual_mlp"}, "config.json")
    done = stratagem("run", "--config", config, "--split-size", "100")
    assert done.returncode == 2
    assert "100 is above the batch of 48" in done.stderr  # so the names were known


def test_a_benchmark_program_measures_it(installed, stratagem, out, commands):
    if not (installed.prefix / "bin" / "bench_strategies").exists():
        pytest.skip("bench_strategies is not built: cmake --build --preset release")
    done = stratagem("--plugin", installed.library, *ROW, "--strategy", "eager_pipeline",
                     f"--benchmark_out={out}", program="bench_strategies")
    assert done.returncode == 0, done.stderr
    assert len(commands.iterations(commands.results(out), "eager_pipeline")) == 1


def test_a_report_shows_it(installed, stratagem, out, tmp_path):
    done = stratagem("run", "--plugin", installed.library, *ROW, "--strategy",
                     "single,eager_pipeline", "--out", out)
    assert done.returncode == 0, done.stderr
    done = stratagem("report", "--plugin", installed.library, out, "--out", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "libmine.so@" in page and "Eager pipeline" in page
    assert (tmp_path / "report" / "gantt_eager_pipeline.svg").exists()


def test_the_schemas_are_installed(stratagem):
    for name, described in (("results", "stratagem/1"), ("history", "stratagem-history/1")):
        done = stratagem("schema", name)
        assert done.returncode == 0, done.stderr
        assert f'"const": "{described}"' in done.stdout and json.loads(done.stdout)["title"]


@pytest.mark.parametrize(("name", "words"), [
    ("missing", ["cannot read", "No such file"]),
    ("undefined", ["undefined symbol", "nowhere"]),
    ("taken", ['the schedule "gpipe" is taken']),
    ("empty", ["registers nothing"]),
    ("older", ["built for stratagem", "headers 000000000000", "this is stratagem"]),
    ("foreign", ["not a plug-in", "stratagem_plugin()"]),
])
@pytest.mark.parametrize("program", ["stratagem", "bench_strategies"])
def test_what_cannot_be_loaded(installed, stratagem, tmp_path, program, name, words):
    library = installed.broken / f"lib{name}.so"
    if name == "older":
        library = tmp_path / "libolder.so"
        built = re.sub(rb"headers [0-9a-f]{12}", b"headers 000000000000",
                       installed.library.read_bytes())
        library.write_bytes(built)
    elif name == "foreign":
        library = tmp_path / "libforeign.so"
        shutil.copy(installed.prefix / "lib" / "libc10.so", library)
    if not (installed.prefix / "bin" / program).exists():
        pytest.skip(f"{program} is not built: cmake --build --preset release")
    arguments = ["list"] if program == "stratagem" else ["--benchmark_list_tests"]
    done = stratagem(*arguments, "--plugin", library, program=program)
    assert done.returncode == 2
    assert done.stdout == "" and done.stderr.count("\n") == 1
    for word in [f"--plugin {library}: " if name != "missing" else str(library), *words]:
        assert word in done.stderr
