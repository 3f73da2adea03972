"""The real executables, with a cache and locks of their own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import slurm_cluster
from marked_processes import MarkedProcesses
from schema_validation import expect_valid_results, expect_valid_trainings

ROOT = Path(__file__).resolve().parents[2]
ONCE = "--no-repeat-disturbed"
BIN = Path(os.environ.get("STRATAGEM_BIN", ROOT / "build" / "bin"))


@dataclass
class Commands:
    """Starts the executables, and gives each call an environment that nobody else uses."""

    environment: dict[str, str]
    marked: MarkedProcesses  # what its environment leads to
    limit_s: float = 240
    programs: Path = BIN
    started: list[subprocess.Popen] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)

    def start(self, program: str, *arguments: str, **variables: str) -> subprocess.Popen:
        """A run makes each launch once, whatever else this machine does."""
        if (program, *arguments[:1]) == ("stratagem", "run"):
            arguments = ("run", ONCE, *arguments[1:])
        return self.start_command([BIN / program, *arguments], **variables)

    def start_command(self, command: list, **variables: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [str(part) for part in command],
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def finish(self, process: subprocess.Popen) -> subprocess.CompletedProcess:
        out, err = process.communicate(timeout=self.limit_s)
        self.printed.append(out)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def __call__(self, program: str, *arguments: str, **variables: str):
        return self.finish(self.start(program, *arguments, **variables))

    def end_all(self) -> None:
        """Ends what still runs, and fails the test when that leaves processes behind."""
        for process in self.started:
            process.kill()
        try:
            self.marked.expect_none()
        finally:
            self.marked.kill()
            for process in self.started:
                process.communicate()

    def expect_valid_results(self, folder: Path) -> None:
        """Every file that was printed or written there is what its schema says."""
        for path in folder.rglob("*.json"):
            expect_valid_results(path.read_text(encoding="utf-8"), path)
        for text in self.printed:
            expect_valid_results(text, "the standard output")
        for path in (*folder.rglob("*.jsonl"), *folder.rglob("*.log"), *folder.rglob("training.*")):
            expect_valid_trainings(path.read_text(encoding="utf-8"), path)

    def stratagem(self, *arguments: str, **variables: str):
        return self("stratagem", *arguments, **variables)

    @staticmethod
    def results(path: Path) -> dict:
        return json.loads(Path(path).read_text(encoding="utf-8"))

    @staticmethod
    def iterations(results: dict, strategy: str) -> list[dict]:
        """The repetitions of a strategy's rows."""
        return [
            entry
            for entry in results["benchmarks"]
            if entry["run_type"] == "iteration" and entry["stratagem"]["strategy"] == strategy
        ]

    @staticmethod
    def wait_until(condition, limit_s: float = 120, interval_s: float = 0.02) -> None:
        """Fails the test when the condition does not come true in time."""
        end = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(interval_s)

    @staticmethod
    def children_of(process: int) -> list[int]:
        path = Path(f"/proc/{process}/task/{process}/children")
        return [int(child) for child in path.read_text().split()] if path.exists() else []

    @staticmethod
    def partial_of(out: Path) -> Path:
        """Where an unfinished run keeps its launches."""
        return out.with_name(out.name + ".partial")

    @classmethod
    def finished_launches(cls, out: Path) -> int:
        partial = cls.partial_of(out)
        return len(partial.read_text().splitlines()) - 1 if partial.exists() else 0


def _require(program: str) -> None:
    if not (BIN / program).exists():
        pytest.skip(f"{program} is not built: cmake --build --preset release")


@pytest.fixture(scope="session")
def device_rates(tmp_path_factory) -> Path:
    """A cache with the rates of one core and of all, which nearly every command asks for."""
    _require("stratagem")
    folder = tmp_path_factory.mktemp("rates")
    locks = tmp_path_factory.mktemp("locks")
    own = {"XDG_CACHE_HOME": str(folder), "STRATAGEM_LOCK_FOLDER": str(locks)}
    done = subprocess.run(
        [BIN / "stratagem", "run", "--model", "toy", "--global-batch-size", "8", "--repetitions", "1",
         "--strategy", "single,model_parallel", "--no-verify", "--no-predict", ONCE],
        env={**os.environ, **own, "STRATAGEM_UNTIMED": "1"}, capture_output=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@contextlib.contextmanager
def commands_in(folder: Path, device_rates: Path, cache_folder: Path) -> Iterator[Commands]:
    """Commands whose files are in the folder; at the end nothing of theirs runs or is invalid."""
    shutil.copytree(device_rates, cache_folder, dirs_exist_ok=True)
    locks = folder / "locks"
    locks.mkdir()
    marked = MarkedProcesses()
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("BENCHMARK_")},
        "XDG_CACHE_HOME": str(cache_folder),
        "STRATAGEM_LOCK_FOLDER": str(locks),
        "STRATAGEM_UNTIMED": "1",  # other tests run beside this one
        **marked.variables,
    }
    environment.pop("STRATAGEM_TEST_FAULT", None)
    environment.pop("OMP_NUM_THREADS", None)  # with it no worker is a fork
    commands = Commands(environment, marked)
    yield commands
    commands.end_all()
    commands.expect_valid_results(folder)


@pytest.fixture
def commands(device_rates, tmp_path, tmp_path_factory):
    with commands_in(tmp_path, device_rates, tmp_path_factory.mktemp("cache")) as commands:
        yield commands


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory) -> Path:
    """Where the commands that several tests of a module ask about leave their files."""
    return tmp_path_factory.mktemp("module")


@pytest.fixture(scope="module")
def module_commands(device_rates, module_folder, tmp_path_factory):
    """Commands that run once for several tests; those tests share an xdist_group."""
    cache = tmp_path_factory.mktemp("cache")
    with commands_in(module_folder, device_rates, cache) as commands:
        yield commands


@pytest.fixture
def benchmarks(commands):
    _require("bench_strategies")
    return commands


@pytest.fixture(scope="module")
def module_benchmarks(module_commands):
    _require("bench_strategies")
    return module_commands


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    missing = slurm_cluster.missing_programs()
    if missing:
        pytest.skip(
            f"{', '.join(missing)} missing: apt install slurmctld slurmd slurm-client munge"
        )
    cluster = slurm_cluster.SlurmCluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.json"
