"""Contenders as data: a command, its environment and the parser of its output."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stratagem_reports.comparison.launch import LaunchError, Output

ALLOCATOR_LIBRARY = "jemalloc"
ALLOCATOR_SETTINGS = {
    "MALLOC_CONF": "thp:always,retain:true,dirty_decay_ms:-1,muzzy_decay_ms:-1,"
    "oversize_threshold:0,lg_extent_max_active_fit:63",
    "THP_MEM_ALLOC_ENABLE": "1",
}
# Variables that a user's shell may set, and that would change the meaning of "as installed".
AS_INSTALLED: dict[str, str | None] = {
    "LD_PRELOAD": None,
    "MALLOC_CONF": None,
    "THP_MEM_ALLOC_ENABLE": None,
    "OMP_NUM_THREADS": None,
    "MKL_NUM_THREADS": None,
}


class WrongSteps(LaunchError):
    """Raised for a launch that did not take the steps of the work: its times do not count."""


@dataclass(frozen=True)
class Measurement:
    """The answer of one launch: milliseconds of each timed step, and the loss of the last step."""

    step_ms: tuple[float, ...]
    loss: float | None
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Launchable:
    """A command, the environment variables it changes (None removes one) and its parser.

    `{out}` in the command stands for a fresh file that the command writes and the parser reads.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str | None]
    parse: Callable[[Output], Measurement]


@dataclass(frozen=True)
class Contender:
    """A program that does the work of the scenario and reports its step times.

    `preflight`, such as a verification, runs once before the rounds, and its output must parse too.
    `unavailable` is the reason why the contender cannot run on this machine. `ranks` is the number
    of processes that a launcher can start. It is 1 for a single process, and for a command that
    always starts its other ranks itself. `row` has the options of the row of Stratagem that takes
    the same steps as a peer, and the command of such a peer writes evidence of its steps. The
    results of Stratagem's own rows contain their proof.
    """

    name: str
    timed: Launchable
    preflight: Launchable | None = None
    unavailable: str | None = None
    ranks: int = 1
    row: tuple[str, ...] | None = None


def _check_times(step_ms: object) -> tuple[float, ...]:
    """Return the step times; raise LaunchError unless they are a list of positive numbers."""
    good = isinstance(step_ms, list) and step_ms != []
    if not good or not all(
        isinstance(value, (int, float)) and math.isfinite(value) and value > 0 for value in step_ms
    ):
        raise LaunchError(f"step_ms is not a list of positive numbers: {step_ms!r:.80}")
    return tuple(float(value) for value in step_ms)


def parse_peer(allocator: str) -> Callable[[Output], Measurement]:
    """Return the parser of a peer's JSON line, which must name `allocator` if it names any."""

    def parse(output: Output) -> Measurement:
        lines = [line for line in output.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise LaunchError("the peer printed no JSON line")
        try:
            result = json.loads(lines[-1])
        except json.JSONDecodeError as error:
            raise LaunchError(f"the peer's JSON line is broken: {error}") from error
        used = result.get("allocator", allocator)
        if used != allocator:
            raise LaunchError(f"the peer ran with allocator {used}, not {allocator}")
        details = {key: result[key] for key in result if key not in ("step_ms", "loss")}
        return Measurement(_check_times(result.get("step_ms")), result.get("loss"), details)

    return parse


def parse_training(output: Output) -> Measurement:
    """Return the mean step time of each epoch, from a results file of `stratagem train`.

    The last logged step of an epoch has the seconds of all epochs so far. Raises LaunchError for an
    unreadable file.
    """
    try:
        (training,) = json.loads(output.out_file)["trainings"]
        steps = [event for event in training["events"] if event["event"] == "step"]
        ends = {step["epoch"]: (step["step"], step["seconds"]) for step in steps}
        loss = steps[-1]["loss"]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise LaunchError("stratagem wrote no readable training") from error
    times = []
    before, began = 0, 0.0
    for step, seconds in ends.values():
        times.append(1e3 * (seconds - began) / (step - before))
        before, began = step, seconds
    return Measurement(_check_times(times), loss, {"row": training["name"]})


def parse_benchmark(output: Output) -> Measurement:
    """Return the processor time of a batch, from the one row that a benchmark program printed.

    Raises LaunchError for an unreadable row.
    """
    try:
        (row,) = json.loads(output.stdout)["benchmarks"]
        in_ms = {"ms": 1.0, "us": 1e-3, "s": 1e3}[row["time_unit"]]
        times = [in_ms * row["cpu_time"] / row["batches"]]
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise LaunchError("the benchmark printed no readable row") from error
    return Measurement(_check_times(times), None, {"row": row["name"]})


def parse_stratagem(strategy: str) -> Callable[[Output], Measurement]:
    """Return the parser of a results file of `stratagem run` that holds one row of `strategy`.

    On CPUs it reads the row with one core per device. It raises WrongSteps unless the row passed
    its verification and the proof of its timed steps, and LaunchError for other errors.
    """

    def is_wanted(row: dict) -> bool:
        own = row.get("stratagem") or {}
        cores = (own.get("config") or {}).get("cores_per_device")  # null on a GPU
        aggregate = row.get("run_type") == "aggregate"
        return own.get("strategy") == strategy and cores in (None, 1) and not aggregate

    def parse(output: Output) -> Measurement:
        try:
            rows = json.loads(output.out_file)["benchmarks"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise LaunchError("stratagem wrote no readable results file") from error
        wanted = [row for row in rows if is_wanted(row)]
        if len(wanted) != 1:
            raise LaunchError(f"the results hold {len(wanted)} rows of {strategy}, expected 1")
        own = wanted[0]["stratagem"]
        if wanted[0].get("error_occurred"):
            raise LaunchError(f"{wanted[0].get('error_message', 'the row failed')}")
        for what in ("verification", "proof"):
            if not (own.get(what) or {}).get("passed"):
                raise WrongSteps(f"the row's {what} is missing or did not pass")
        losses = own.get("loss") or [None]
        return Measurement(_check_times(own.get("step_ms")), losses[-1], {"row": wanted[0]["name"]})

    return parse
