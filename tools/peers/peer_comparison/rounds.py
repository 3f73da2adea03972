"""Measures contenders in rounds: each round launches every one once, in seeded random order.

The first quarter of the rounds chooses among candidates. After each of these rounds, candidates
that are much slower than the best of their side are dropped. The other rounds launch only the best.
"""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields

from stratagem_reports.comparison.launch import LaunchError, Output, launch

from peer_comparison.contender import Contender, Launchable, Measurement, WrongSteps
from peer_comparison.ratios import SLACK, Ratio, finalists

# Returns the proof of a launch as text; raises WrongSteps for a launch that took other steps.
Prove = Callable[[Contender, Output], str]
# Takes the contender about to start, the round (0: preflight) and the launches still to come.
Progress = Callable[[Contender, int, Sequence[str]], None]


@dataclass(frozen=True)
class Sample:
    """One launch: its round, its position in the round, and its measurements."""

    round: int
    position: int
    contender: str
    seconds: float
    step_ms: tuple[float, ...]
    loss: float | None
    details: dict
    peak_resident_bytes: int | None = None  # in the largest process
    proof: str = ""  # the proof of a peer's steps, as text

    @property
    def step_time_ms(self) -> float:
        """Return the launch's step time: the median of its steps in ms."""
        return statistics.median(self.step_ms)


@dataclass
class Result:
    """Samples of finished rounds, one-line reasons of failures, and how the measurement ended."""

    samples: list[Sample] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)  # contenders that did not take the work's steps
    finished_rounds: int = 0
    selection_rounds: int = 0
    interrupted: bool = False

    @staticmethod
    def from_json(content: Mapping) -> "Result":
        """Return the result that as_json() wrote; `content` may have further fields."""
        samples = [Sample(**{**each, "step_ms": tuple(each["step_ms"])}) for each in content["samples"]]
        kept = {each.name: content[each.name] for each in fields(Result)}
        return Result(**{**kept, "samples": samples})

    def step_times(self) -> dict[str, dict[int, float]]:
        """Return step times in ms by contender and round, without contenders that were wrong."""
        times: dict[str, dict[int, float]] = {}
        for sample in self.samples:
            if sample.contender in self.wrong:
                continue
            times.setdefault(sample.contender, {})[sample.round] = sample.step_time_ms
        return times

    def peaks(self) -> dict[str, list[int]]:
        """Return the peak resident bytes of each contender's launches, if they are measured."""
        peaks: dict[str, list[int]] = {}
        for sample in self.samples:
            if sample.peak_resident_bytes:
                peaks.setdefault(sample.contender, []).append(sample.peak_resident_bytes)
        return peaks

    def as_json(self) -> dict:
        """Return everything that was measured as JSON values."""
        return asdict(self)


def order_of_round(names: Sequence[str], seed: int, index: int) -> list[str]:
    """Return the launch order of round `index`: a permutation that seed and index determine."""
    order = list(names)
    random.Random(f"{seed}/{index}").shuffle(order)
    return order


def _measure(launchable: Launchable, limit_s: float) -> tuple[Measurement, Output]:
    output = launch(launchable.command, launchable.environment, limit_s)
    return launchable.parse(output), output


def _run_preflight(
    contenders: Sequence[Contender], result: Result, limit_s: float, progress: Progress
) -> None:
    """Run each contender's preflight once, and record the failures in `result`."""
    waiting = [contender for contender in contenders if contender.preflight]
    for index, contender in enumerate(waiting):
        progress(contender, 0, [later.name for later in waiting[index:]])
        try:
            _measure(contender.preflight, limit_s)
        except LaunchError as error:
            result.failures[contender.name] = f"before the rounds: {error}"


def run_rounds(
    contenders: Sequence[Contender],
    rounds: int,
    seed: int,
    limit_s: float,
    ratios: Sequence[Ratio] = (),
    progress: Progress = lambda *_: None,
    after_round: Callable[[Result], None] = lambda _: None,
    prove: Prove = lambda *_: "",
    result: Result | None = None,
) -> Result:
    """Run the preflights once, then `rounds` rounds, and return the samples of finished rounds.

    The rounds that choose drop the contenders that `ratios` no longer need. A contender that fails
    is not launched again, and the others continue. Each launch may take `limit_s` seconds.
    KeyboardInterrupt ends the measurement, drops the unfinished round and is recorded. An earlier
    `result` is continued.
    """
    result = result or Result()
    result.interrupted = False
    result.selection_rounds = rounds // 4
    for contender in contenders:
        if contender.unavailable:
            result.failures[contender.name] = contender.unavailable
    by_name = {contender.name: contender for contender in contenders}
    try:
        available = [by_name[name] for name in by_name if name not in result.failures]
        if result.finished_rounds == 0:
            _run_preflight(available, result, limit_s, progress)
        for index in range(1, rounds + 1):
            if by_name.keys() <= result.failures.keys():
                break
            done = index - 1
            if 0 < done <= result.selection_rounds:
                slack = 0 if done == result.selection_rounds else SLACK.get(done, min(SLACK.values()))
                needed = finalists(list(by_name), ratios, result.step_times(), done, slack)
                by_name = {name: by_name[name] for name in needed}
            if index <= result.finished_rounds:
                continue
            order = order_of_round(list(by_name), seed, index)
            result.samples += _run_round(by_name, order, index, result, limit_s, progress, prove)
            result.finished_rounds = index
            after_round(result)
    except KeyboardInterrupt:
        result.interrupted = True
    return result


def _run_round(
    by_name: dict[str, Contender],
    order: Sequence[str],
    index: int,
    result: Result,
    limit_s: float,
    progress: Progress,
    prove: Prove,
) -> list[Sample]:
    """Launch the contenders that have not failed, one at a time, and return their samples."""
    samples = []
    for position, name in enumerate(order):
        if name in result.failures:
            continue
        left = [later for later in order[position:] if later not in result.failures]
        progress(by_name[name], index, left)
        try:
            measurement, output = _measure(by_name[name].timed, limit_s)
            proof = prove(by_name[name], output)
        except LaunchError as error:
            result.failures[name] = f"round {index}: {error}"
            if isinstance(error, WrongSteps):
                result.wrong.append(name)
            continue
        # A peer reads its own peak before it computes the fingerprints of its state. Only the
        # rank itself can count its memory if another process started it.
        own_peak = measurement.details.get("peak_resident_bytes")
        samples.append(
            Sample(
                index,
                position,
                name,
                output.seconds,
                measurement.step_ms,
                measurement.loss,
                dict(measurement.details),
                own_peak or output.peak_resident_bytes,
                proof,
            )
        )
    return samples
