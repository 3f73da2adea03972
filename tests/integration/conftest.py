"""The real executables, with a cache and locks of their own."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("STRATAGEM_BIN", ROOT / "build" / "bin"))


@dataclass
class Commands:
    """Starts the executables, and gives each call an environment that nobody else uses."""

    environment: dict[str, str]
    limit_s: float = 240
    programs: Path = BIN
    started: list[subprocess.Popen] = field(default_factory=list)

    def start(self, program: str, *arguments: str, **variables: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [BIN / program, *map(str, arguments)],
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
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def __call__(self, program: str, *arguments: str, **variables: str):
        return self.finish(self.start(program, *arguments, **variables))

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
    def is_running(process: int) -> bool:
        """Whether a process exists and is more than a name waiting to be collected."""
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return False
        return state not in "ZX"

    @staticmethod
    def finished_launches(partial: Path) -> int:
        return len(partial.read_text().splitlines()) - 1 if partial.exists() else 0


def _require(program: str) -> None:
    if not (BIN / program).exists():
        pytest.skip(f"{program} is not built: cmake --build --preset release")


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory) -> Path:
    """One for all tests: a device is calibrated once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def commands(cache_folder, tmp_path):
    _require("stratagem")
    locks = tmp_path / "locks"
    locks.mkdir()
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("BENCHMARK_")},
        "XDG_CACHE_HOME": str(cache_folder),
        "STRATAGEM_LOCK_FOLDER": str(locks),
    }
    environment.pop("STRATAGEM_TEST_FAULT", None)
    commands = Commands(environment)
    yield commands
    for process in commands.started:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def benchmarks(commands):
    _require("bench_strategies")
    return commands


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.json"
