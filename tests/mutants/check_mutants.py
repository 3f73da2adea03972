"""Tries mutants and reports which tests kill them: what tools/check_mutants runs."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NoReturn

from mutant_build import Build
from mutant_list import Mutant, MutantError, choose, read_mutants, sample
from processes import Processes
from trial import TEST_LIMIT_S, Trials, copy_tree, git

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Exit code 0 where every mutant was killed, 1 where one was not, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        mutants = choose(read_mutants(root / "tests" / "mutants"), options.names)
        if options.sample is not None:
            mutants = sample(mutants, options.sample, options.seed or _commit(root))
        if options.list:
            for mutant in mutants:
                print(f"{mutant.name:<40} {mutant.file}: {mutant.what}")
            return 0
        return _try_all(mutants, root, options.jobs, options.test_limit)
    except MutantError as error:
        print(f"tools/check_mutants: {error}", file=sys.stderr)
        return 2


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}: see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("tools/check_mutants", add_help=False)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--sample", type=_positive, metavar="N")
    parser.add_argument("--seed", metavar="TEXT")
    parser.add_argument("--jobs", type=_positive, metavar="N", default=os.cpu_count())
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--test-limit", type=float, default=TEST_LIMIT_S, help=argparse.SUPPRESS)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number, 1 or more")
    return int(text)


def _commit(root: Path) -> str:
    return subprocess.run(
        [*git(root), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()


def _try_all(mutants: list[Mutant], root: Path, jobs: int, limit_s: float) -> int:
    started = time.monotonic()
    processes = Processes()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        folder = Path(temporary)
        build = Build(root / "build", processes)
        trials = Trials(copy_tree(root, folder / "tree"), build, processes, folder, limit_s)
        pool = ThreadPoolExecutor(jobs)
        try:
            return _report(mutants, trials, pool, started)
        finally:
            processes.stop()
            pool.shutdown(cancel_futures=True)


def _report(
    mutants: list[Mutant], trials: Trials, pool: ThreadPoolExecutor, started: float
) -> int:
    """Prints a line a mutant and what came of all; returns the exit code."""
    tests = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
    unusable = {test: error for test, error in _each(pool, trials.expect_pass, tests) if error}
    for error in unusable.values():
        print(f"error     {error}", flush=True)
    usable = [mutant for mutant in mutants if not unusable.keys() & set(mutant.tests)]
    survivors: list[tuple[Mutant, list[str]]] = []
    killed = 0
    for mutant, outcome in _each(pool, lambda one: _timed(trials, one), usable):
        if isinstance(outcome, MutantError):
            print(f"error     {outcome}", flush=True)
            continue
        causes, passed, seconds = outcome
        words = f"by {', '.join(causes)}" if not passed else f"{', '.join(passed)} still passes"
        kind = "survived" if passed else "killed"
        print(f"{kind:<9} {mutant.name}: {words} ({seconds:.1f} s)", flush=True)
        if passed:
            survivors.append((mutant, passed))
        else:
            killed += 1
    failed = len(mutants) - killed - len(survivors)
    _print_survivors(survivors)
    errors = f", {failed} could not be tried" if failed else ""
    print(f"mutants: {killed} killed, {len(survivors)} survived{errors}")
    print(f"total time: {time.monotonic() - started:.1f} s")
    return 1 if survivors or failed else 0


def _timed(trials: Trials, mutant: Mutant) -> tuple[list[str], list[str], float]:
    started = time.monotonic()
    killed, survived = trials.try_mutant(mutant)
    return killed, survived, time.monotonic() - started


def _each(pool: ThreadPoolExecutor, work: Callable, items: Iterable) -> Iterable[tuple]:
    """Each item with what the work on it gave, or its MutantError, as they finish."""
    futures = {pool.submit(work, item): item for item in items}
    for future in as_completed(futures):
        try:
            yield futures[future], future.result()
        except MutantError as error:
            yield futures[future], error


def _print_survivors(survivors: list[tuple[Mutant, list[str]]]) -> None:
    if not survivors:
        return
    print("\nSurvivors:")
    for mutant, passed in survivors:
        print(f"  {mutant.name:<32} {mutant.file}: {mutant.what}")
        for test in passed:
            print(f"  {'':<32} still passes: {test}")
    print()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("tools/check_mutants: interrupted", file=sys.stderr)
        sys.exit(130)
