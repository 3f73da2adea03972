"""Runs a scenario, and records the results that the pages show with their evidence.

A run can be interrupted: finished launches stay in results/figures/ and do not run again.
"""

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from peer_comparison.contenders import commit_of

from published.scenarios import ROOT, Scenario

WORK = ROOT / "results" / "figures"
MOST_BYTES = 800_000
INTERRUPTED = 130  # the exit code of an interrupted command
# Significant digits of a number in a recorded file. A clock has fewer.
DIGITS = 6
# Fields that all launches of a row share; the record keeps those of the first launch.
SHARED = ("config", "verification", "mesh")
# Changes to these paths do not change a figure.
PAGES = (":!docs", ":!README.md", ":!tests", ":!tools/published", ":!tools/figures")


class NotRecorded(Exception):
    """Raised for a scenario without results; the message is one line."""


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def why_not_traceable(program: Path) -> str | None:
    """Return why results of this program could not be traced to a commit, or None."""
    try:
        return _why_not_traceable(program)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"git cannot tell the commit: {error}"


def _why_not_traceable(program: Path) -> str | None:
    if _git("status", "--porcelain", "--untracked-files=no", "--", ".", *PAGES):
        return "the tree has changes: commit them first, so that the figures have a commit"
    commit = commit_of(program)
    if not commit:
        return f"{program.relative_to(ROOT)} is not built"
    try:
        changed = _git("diff", "--name-only", commit, "HEAD", "--", ".", *PAGES)
    except subprocess.CalledProcessError:
        changed = commit
    return f"{program.relative_to(ROOT)} is of commit {commit}: build it again" if changed else None


def _rounded(value: object) -> object:
    """Return a JSON value with its floats rounded to DIGITS significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return value


def _median_launch(launches: list[dict]) -> dict:
    """Return the launch with the median first step."""
    ordered = sorted(launches, key=lambda each: each["stratagem"]["step_ms"][0])
    return ordered[len(ordered) // 2]


def compact(results: dict) -> dict:
    """Return a results file with one timeline per row, without aggregates, in fewer digits.

    Google Benchmark's tools compute the aggregates from the launches. Only the first launch of a
    row keeps the fields that all its launches share.
    """
    launches: dict[str, list[dict]] = {}
    for entry in results.get("benchmarks", ()):
        if entry.get("run_type") == "iteration" and "stratagem" in entry:
            launches.setdefault(entry["name"], []).append(entry)
    kept = {
        id(_median_launch(timed))
        for each in launches.values()
        if (timed := [one for one in each if one["stratagem"].get("step_ms")])
    }
    for each in launches.values():
        first, *others = (entry["stratagem"] for entry in each)
        for own in others:
            for key in SHARED:
                if own.get(key) == first.get(key):
                    own.pop(key, None)
        for entry in each:
            if id(entry) not in kept and "timeline" in entry["stratagem"]:
                entry["stratagem"]["timeline"] = []
    if "benchmarks" in results:
        entries = results["benchmarks"]
        results["benchmarks"] = [each for each in entries if each.get("run_type") == "iteration"]
    for sample in results.get("samples", ()):
        for key in ("losses", "per_rank_ms"):
            sample["details"].pop(key, None)
    return _rounded(results)


def _is_whole(out: Path) -> bool:
    """Return whether an earlier call finished the measurement with the current build."""
    if not out.exists() or out.with_name(f"{out.name}.partial").exists():
        return False
    found = json.loads(out.read_text())["context"]["stratagem"]["git_commit"]
    return found == commit_of(ROOT / "build" / "bin" / "stratagem")


def _run(command: list[str]) -> int:
    """Run a command and return its exit code; raise KeyboardInterrupt if it was interrupted.

    SIGTERM is passed on to the command, and this process waits for its end.
    """
    process = subprocess.Popen(command, cwd=ROOT)
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        code = process.wait()
    except KeyboardInterrupt:  # the terminal sent it the signal, too
        code = process.wait() or INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


def record(scenario: Scenario) -> None:
    """Run the scenario and write its file; raise NotRecorded if it fails."""
    WORK.mkdir(parents=True, exist_ok=True)
    scenario.file.parent.mkdir(parents=True, exist_ok=True)
    out = WORK / f"{scenario.name}.json"
    command = [*shlex.split(scenario.command), "--out", str(out.relative_to(ROOT))]
    own = command[0].startswith("build/")
    if why := why_not_traceable(ROOT / "build" / "bin" / "stratagem"):
        raise NotRecorded(why)
    command += ["--anonymous"] if own else []
    command += ["--resume"] if not command[0].endswith("bench_collectives") else []
    if not (own and _is_whole(out)):
        print(f"{scenario.name}: {shlex.join(command)}", file=sys.stderr)
        if code := _run(command):
            raise NotRecorded(f"{scenario.name}: {command[0]} ended with exit code {code}")
    text = json.dumps(compact(json.loads(out.read_text())), separators=(",", ":"))
    if len(text) > MOST_BYTES:
        raise NotRecorded(f"{scenario.name}: {len(text)} bytes, and {MOST_BYTES} is the most")
    scenario.file.write_text(text + "\n")
    out.unlink()
