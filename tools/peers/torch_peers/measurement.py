"""The measurement of a peer: warm-up, a barrier, timed steps, and the answer of one rank."""

import argparse
import itertools
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import distributed

from torch_peers.evidence import state_of

BATCHES = 8  # the steps take them in turn, as in Stratagem


def slowest(seconds: float) -> float:
    """Return the longest time of all ranks; without other ranks, return `seconds`."""
    if not distributed.is_initialized():
        return seconds
    own = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    longest = torch.tensor(seconds, dtype=torch.float64, device=own)
    distributed.all_reduce(longest, op=distributed.ReduceOp.MAX)
    return longest.item()


def fetched(tensor: torch.Tensor, place: str) -> torch.Tensor:
    """Return a copy of a tensor of the batch on the device `place`."""
    return tensor.clone() if place == "cpu" else tensor.to(place, non_blocking=True)


def in_turn(batches: Sequence[tuple]) -> Iterator[tuple]:
    """Return an endless iterator over the batches in their order: one for each step."""
    return itertools.cycle(batches)


def timed(step: Callable[[], None], place: str) -> float:
    """Return the seconds that one step takes by itself."""
    start = time.perf_counter()
    step()
    if place != "cpu":
        torch.cuda.synchronize(place)
    return time.perf_counter() - start


def step_times(step: Callable[[], None], steps: int, place: str) -> list[float]:
    """Return the milliseconds of each of `steps` steps, without waiting for a GPU between them."""
    if place == "cpu":
        return [timed(step, place) * 1e3 for _ in range(steps)]
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize(place)
    return [start.elapsed_time(end) for start, end in pairwise(events)]


def warm_up(step: Callable[[], None], most_steps: int, place: str) -> None:
    """Call `step` until steps no longer get faster, by the rule of bench/timing/warm_up.h.

    It takes at least two steps, and ends after `most_steps` steps or 20 s. All ranks use the times
    of the slowest rank.
    """
    fastest = total = slowest(timed(step, place))
    without_gain = 0
    for _ in range(1, most_steps):
        took = slowest(timed(step, place))
        total += took
        without_gain = 0 if took < 0.98 * fastest else without_gain + 1
        stationary = without_gain == 1 and took <= 1.05 * fastest or without_gain == 2
        if stationary or total >= 20.0:
            break
        fastest = min(fastest, took)


def loaded_allocator() -> str:
    """Return the malloc that this process uses, so that a failed preload is noticed."""
    return "jemalloc" if "libjemalloc" in Path("/proc/self/maps").read_text() else "system"


def peak_resident_bytes() -> int:
    """Return the peak resident memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def value_of(loss: torch.Tensor) -> float:
    """Return a loss as a number; for a DTensor all ranks must call this function."""
    return (loss.full_tensor() if hasattr(loss, "full_tensor") else loss).item()


def measure(
    arguments: argparse.Namespace,
    job,
    step: Callable[[], torch.Tensor | None],
    layers: Mapping[str, torch.nn.Module],
) -> dict:
    """Warm up, time the steps after a barrier of all ranks, and return this rank's answer.

    `step` returns the loss, or None on a rank that has none. With --evidence the answer has the
    fingerprints of this rank's `layers` after the last step. A compiled model compiles in its first
    step, which runs before the warm-up and is reported separately.
    """
    losses: list[torch.Tensor] = []

    def counted_step() -> None:
        loss = step()
        if loss is not None:
            losses.append(loss.detach())

    place = arguments.place
    compiling_s = timed(counted_step, place) if arguments.compile else None
    warm_up(counted_step, arguments.most_warm_up, place)
    if distributed.is_initialized():
        distributed.barrier()
    step_ms = step_times(counted_step, arguments.steps, place)
    peak = peak_resident_bytes()
    values = [value_of(loss) for loss in losses]
    return {
        "step_ms": step_ms,
        "loss": values[-1] if values else None,
        "losses": values,
        "skipped": [],
        "state": state_of(layers, job.exported) if arguments.evidence else {},
        "compiling_s": compiling_s,
        "torch": torch.__version__,
        "allocator": loaded_allocator(),
        "device": place if place == "cpu" else torch.cuda.get_device_name(place),
        "peak_resident_bytes": peak,
    }


def train(arguments: argparse.Namespace, job, layers, model, batches, optimizer) -> dict:
    """Measure steps of a whole model: copies of the batch, forward, loss, backward, update."""
    turns = in_turn(batches)

    def step() -> torch.Tensor:
        inputs, targets = (fetched(tensor, arguments.place) for tensor in next(turns))
        optimizer.zero_grad()
        loss = job.loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss

    return measure(arguments, job, step, layers)
