"""Ranks of a peer on one machine, each on one core or on a GPU."""

import datetime
import multiprocessing
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from multiprocessing.connection import Connection, wait
from pathlib import Path

from torch_peers.placement import Placement

LIMIT = datetime.timedelta(seconds=240)
# The modules that a step imports. Importing them initialises no GPU.
PRELOADED = ["torch", "torch.distributed", "torch._dynamo"]


def one_core_per_device(devices: int) -> list[int]:
    """Return one CPU of each physical core of this process's affinity mask, `devices` of them.

    Raises SystemExit when the mask holds fewer physical cores than that.
    """
    cores: dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = siblings.read_text().strip() if siblings.exists() else str(cpu)
        cores.setdefault(core, cpu)
    if len(cores) < devices:
        raise SystemExit(f"{devices} one-core devices need {devices} cores, found {len(cores)}")
    return list(cores.values())[:devices]


def use_threads_on(cpus: list[int]) -> None:
    """Pin this process and its later threads to `cpus`, with a compute thread for each."""
    os.sched_setaffinity(0, set(cpus))
    import torch

    torch.set_num_threads(len(cpus))


def meet(rank: int, placement: Placement, store: str, interface: str) -> None:
    """Join the other ranks; NCCL connects all at once, before some of them exchange tensors."""
    import torch
    from torch import distributed

    os.environ["GLOO_SOCKET_IFNAME"] = interface
    own = placement.devices[rank]
    if own != "cpu":
        torch.cuda.set_device(own)
    distributed.init_process_group(
        placement.backend,
        init_method=store,
        rank=rank,
        world_size=len(placement.devices),
        timeout=LIMIT,
        device_id=torch.device(own) if placement.backend == "nccl" else None,
    )


def _rank(
    rank: int, placement: Placement, cpu: int | None, store: str, run: Callable, answer: Connection
) -> None:
    """Run one rank in this process, and send its answer or the text of its error."""
    try:
        if cpu is not None:
            use_threads_on([cpu])
        from torch import distributed

        meet(rank, placement, store, "lo")
        answer.send(run(rank))
        distributed.barrier()
        distributed.destroy_process_group()
    except Exception as error:
        answer.send(f"{type(error).__name__}: {error}")


def answers(placement: Placement, run: Callable[[int], dict]) -> list[dict]:
    """Return the answers of all ranks; raise SystemExit with one line for the first that fails.

    An error after a rank's answer is ignored, because a connection may close before the other rank
    reads from it.
    """
    # A server imports PyTorch once, and each rank is a copy of it: an import takes seconds.
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(PRELOADED)
    ranks = len(placement.devices)
    on_cpus = set(placement.devices) == {"cpu"}
    cores = one_core_per_device(ranks) if on_cpus else [None] * ranks
    given: dict[Connection, dict | None] = {}
    with tempfile.TemporaryDirectory(prefix="stratagem_") as folder:
        for rank in range(ranks):
            receiver, sender = server.Pipe(duplex=False)
            arguments = (rank, placement, cores[rank], f"file://{folder}/store", run, sender)
            # A daemon is ended when this process ends.
            server.Process(target=_rank, args=arguments, daemon=True).start()
            sender.close()
            given[receiver] = None
        while waited := [receiver for receiver, answer in given.items() if answer is None]:
            for receiver in wait(waited):
                try:
                    given[receiver] = receiver.recv()
                except EOFError:
                    given[receiver] = "ended without a word"
                if isinstance(given[receiver], str):
                    rank = [*given].index(receiver)
                    raise SystemExit(f"rank {rank}: {given[receiver]}".splitlines()[0])
    return [*given.values()]


def merged(placement: Placement, run: Callable[[int], dict]) -> dict:
    """Run all ranks and return their answers as one."""
    try:
        return as_one(placement, answers(placement, run))
    except ValueError as error:
        raise SystemExit(str(error)) from error


def as_one(placement: Placement, given: Sequence[dict]) -> dict:
    """Return the step times, the mean loss of the ranks that have one, and the peak memory.

    The ranks begin together at a barrier. A step lasts from the last rank's end of the step before
    to the last rank's end of this step, as in Stratagem. The maximum of the ranks' own times would
    count their jitter.
    """
    from torch_peers.evidence import joined

    step_ms = [answer["step_ms"] for answer in given]
    last_ends = [max(ends) for ends in zip(*map(accumulate, step_ms), strict=True)]
    losses = [answer["losses"] for answer in given if answer["losses"]]
    mean = [statistics.fmean(values) for values in zip(*losses, strict=True)]
    return {
        **given[-1],
        "backend": placement.backend,
        "step_ms": [end - start for start, end in pairwise([0.0, *last_ends])],
        "per_rank_ms": step_ms,
        "peak_resident_bytes": max(answer["peak_resident_bytes"] for answer in given),
        "loss": mean[-1],
        "losses": mean,
        "state": joined([answer.get("state", {}) for answer in given]),
    }
