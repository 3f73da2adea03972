"""Launches two builds in turns and decides as it goes: `stratagem compare --interleave`.

In each round every row is launched by both builds, the rows in random order; both live at the same
time and run a step in turns (see turns.py), so that a neighbour that steals a core for a while
falls on both alike. The round's figure of a row is the median ratio of its pairs of steps. Before
the first round each build runs all rows once unmeasured, which fills its caches of verification and
calibration.
"""

import math
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.labels import listing, percent
from ..results.errors import InputError
from ..results.load import Results
from . import group_sequential
from .builds import LAUNCH_LIMIT_S, Build, result_set_of, run_once, write_round
from .result_set import Launches
from .rounds import Rounds, steps_of
from .turns import run_in_turns
from .verdicts import Comparison, Timing, Verdict, common_rows, compare_rows, failed_timing


@dataclass(frozen=True)
class Settings:
    """How to go about it; `run_options` are those of `stratagem run`."""

    run_options: list[str]
    minutes: float
    threshold: float
    confidence: float
    rounds: int | None = None
    control: bool = False
    seed: int = 0
    record: Path | None = None
    launch_limit_s: float = LAUNCH_LIMIT_S
    turns: bool = True  # step by step; else one whole launch after the other


# Is told what is about to be launched and how many seconds the rest may take, None before round 1.
Progress = Callable[[str, float | None], None]


def interleave(base: Build, head: Build, settings: Settings, progress: Progress) -> Comparison:
    """Runs rounds until every row is decided or the budget is spent.

    Raises LaunchError when a launch gives no results, InputError when the builds cannot be
    compared. KeyboardInterrupt ends the rounds; complete ones are judged as far as they go.
    """
    started = time.monotonic()
    measured = Rounds()
    builds = {"base": base, "head": head}
    try:
        prepared = {}
        for label, build in builds.items():
            progress(f"preparing, {label}", None)
            prepared[label] = run_once(build, settings.run_options, settings.launch_limit_s)
        names = [{row.name for row in results.rows} for results in prepared.values()]
        measured.rows = sorted(names[0] & names[1])
        if measured.rows:
            measured.turns = _turns(prepared, measured.rows) if settings.turns else {}
            _run_rounds(builds, settings, measured, progress, started)
        else:
            measured.compare_nothing(prepared)
    except KeyboardInterrupt:
        measured.interrupted = True
        if measured.plan is None:
            raise
    return _comparison(builds, settings, measured, time.monotonic() - started)


def _run_rounds(builds, settings, measured, progress, started) -> None:
    ends = started + 60 * settings.minutes
    shuffler = random.Random(settings.seed)
    began = time.monotonic()
    while measured.plan is None or measured.count < measured.plan.rounds:
        left = None
        if measured.plan is not None:
            each = (time.monotonic() - began) / measured.count
            if time.monotonic() + each > ends:
                measured.plan = group_sequential.cut_short(measured.plan, measured.count)
                _look(measured, settings)
                return
            left = each * (measured.plan.rounds - measured.count)
        _run_round(builds, shuffler, settings, measured, progress, left)
        if measured.plan is None:
            measured.check_comparable()
            fit = int((ends - began) // max(time.monotonic() - began, 1e-3))
            most = max(1, fit if settings.rounds is None else min(fit, settings.rounds))
            measured.plan = group_sequential.make_plan(most, 1 - settings.confidence)
        if measured.count in measured.plan.looks and _look(measured, settings):
            return


def _run_round(builds, shuffler, settings, measured, progress, left) -> None:
    """Both builds once, row by row; counted only when both gave results."""
    results: dict[str, list[Results]] = {label: [] for label in builds}
    first = []
    for row in _shuffled(shuffler, measured.rows):
        order = _shuffled(shuffler, list(builds))
        first.append([row, order[0]])
        chosen = [*settings.run_options, "--only", row]
        if pairs := measured.turns.get(row):
            progress(f"round {measured.count + 1}, {row}, both in turns", left)
            limit_s = settings.launch_limit_s
            both = run_in_turns(builds, order, chosen, pairs, shuffler, limit_s)
            for label, result in both.items():
                results[label].append(result)
            continue
        for label in order:
            progress(f"round {measured.count + 1}, {label} {row}", left)
            results[label].append(run_once(builds[label], chosen, settings.launch_limit_s))
    measured.base.append(results["base"])
    measured.head.append(results["head"])
    if settings.record is not None:
        ratios = {name: math.exp(values[-1]) for name, values in measured.log_ratios().items()}
        entry = {"round": measured.count, "first": first, "ratio": ratios}
        entry |= {label: steps_of(of) for label, of in results.items()}
        _record(settings.record, entry)


def _record(path: Path, entry: dict) -> None:
    """Keeps a round; a full disk costs the recording a round, and never the comparison."""
    try:
        write_round(path, entry)
    except InputError as error:
        print(f"stratagem compare: round {entry['round']}: {error}", file=sys.stderr)


def _turns(prepared: dict[str, Results], rows: list[str]) -> dict[str, int]:
    """How many pairs of steps a round has, of the rows that the builds can run in turns."""
    base, head = (
        {
            row.name: len(row.repetitions[0].step_ms)
            for row in results.rows
            if row.repetitions and not row.tutorial
        }
        for results in prepared.values()
    )
    return {row: base[row] for row in rows if 0 < base.get(row, 0) == head.get(row, 0)}


def _shuffled(shuffler: random.Random, items: list[str]) -> list[str]:
    return shuffler.sample(items, len(items))


def _look(measured: Rounds, settings: Settings) -> bool:
    """Decides by what there is; True when there is nothing left to decide."""
    level = measured.plan.levels[measured.plan.looks.index(measured.count)]
    now = group_sequential.decide(measured.log_ratios(), level, settings.threshold)
    measured.decisions = group_sequential.keep_clear(measured.decisions, now)
    return group_sequential.all_clear(measured.decisions)


def _comparison(builds, settings: Settings, measured: Rounds, seconds: float) -> Comparison:
    base = result_set_of(builds["base"], list(chain.from_iterable(measured.base)))
    head = result_set_of(builds["head"], list(chain.from_iterable(measured.head)))
    clear = group_sequential.all_clear(measured.decisions)
    complete = clear or measured.count == measured.plan.rounds
    names = common_rows(base, head)
    needed = group_sequential.rounds_needed(1 - settings.confidence, max(1, len(names)))
    ratios = measured.log_ratios() if settings.control else {}
    timings = {
        name: failed_timing(base.rows[name], head.rows[name])
        or _timing(
            base.rows[name], head.rows[name], measured.decisions.get(name), needed, ratios.get(name)
        )
        for name in names
    }
    return Comparison(
        base=base,
        head=head,
        rows=compare_rows(base, head, timings),
        threshold=settings.threshold,
        confidence=settings.confidence,
        method=(
            "Wilcoxon's signed-rank test over interleaved rounds at planned looks, corrected by "
            "Holm for the rows"
        ),
        interleaved=_about(measured, settings, seconds, complete),
    )


def _timing(
    base: Launches,
    head: Launches,
    decision: group_sequential.Decision | None,
    needed: int,
    control: list[float] | None,
) -> Timing:
    one, two = base.step_ms, head.step_ms
    rounds = min(len(one), len(two))
    noise = _noise(control) if control else ""
    if decision is None or rounds < needed:
        note = f"{rounds} rounds; {needed} would be enough"
        return Timing(one, two, decision.change if decision else None, None, Verdict.TOO_FEW, note)
    note = f"decided after round {decision.rounds}" if decision.rounds < rounds else ""
    note = "; ".join(part for part in (note, noise) if part)
    return Timing(one, two, decision.change, decision.adjusted_p, decision.verdict, note)


def _noise(log_ratios: list[float]) -> str:
    """The noise floor: how far apart the two sides of a round of the same build are."""
    distances = np.abs(log_ratios)
    half, most = (math.expm1(float(np.quantile(distances, share))) for share in (0.5, 0.9))
    return (
        f"of the same build, half of the rounds differ by {percent(half)}, nine in ten by less "
        f"than {percent(most)}"
    )


def _about(measured: Rounds, settings: Settings, seconds: float, complete: bool) -> dict[str, Any]:
    plan = measured.plan
    looks = listing([str(look) for look in plan.looks])
    how = "step by step in turns" if measured.turns else "one right after the other"
    notes = [
        f"{measured.count} of at most {plan.rounds} rounds in {seconds / 60:.1f} min, in each both "
        f"builds {how} for every row, in random order; looks after round {looks}."
    ]
    if measured.interrupted:
        notes.append("Interrupted: the verdicts are those of the last look before.")
    if settings.control:
        notes.append("Control: both sides are one build, so slower or faster is a false alarm.")
    return {
        "rounds": measured.count,
        "planned_rounds": plan.rounds,
        "looks": list(plan.looks),
        "levels": list(plan.levels),
        "minutes": seconds / 60,
        "control": settings.control,
        "complete": complete,
        "interrupted": measured.interrupted,
        "notes": notes,
    }
