"""Two ranks of one core each over Gloo on the loopback, for the peers that need them.

The process started by the user only launches the ranks and merges what they print into one JSON
line; it opens the rendezvous socket on a free port of the loopback and hands it to rank 0.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import resnet_work

RANKS = 2


def add_rank_options(parser: argparse.ArgumentParser) -> None:
    """Add the time limit, and what the launcher tells a rank."""
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for everything (240)")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--listen-fd", type=int, default=-1, help=argparse.SUPPRESS)


def check_split(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """End with one line where the micro-batches would not be of one size."""
    if arguments.split < 1 or arguments.batch % arguments.split != 0:
        parser.error(f"--split {arguments.split} must divide --batch {arguments.batch}")


def train_pipeline(arguments: argparse.Namespace, schedule, batch: tuple, optimizer) -> None:
    """Measure steps of this rank's stages; the first rank has the inputs, the last the targets."""
    import torch

    inputs, targets = batch
    losses: list[torch.Tensor] = []

    def step() -> None:
        losses.clear()
        optimizer.zero_grad()
        if arguments.rank == 0:
            schedule.step(inputs.clone())
        else:
            schedule.step(target=targets.clone(), losses=losses)
        optimizer.step()

    def mean_loss() -> float | None:
        return torch.stack([loss.detach() for loss in losses]).mean().item() if losses else None

    resnet_work.measure(f"pipelining/{arguments.schedule}", step, arguments.steps, mean_loss)


def _join_process_group(arguments: argparse.Namespace) -> None:
    """Meets the other rank through the launcher's socket; rank 0 serves the store on it."""
    import torch.distributed as distributed

    timeout = datetime.timedelta(seconds=arguments.limit)
    serves = arguments.rank == 0
    store = distributed.TCPStore(
        "127.0.0.1",
        arguments.port,
        RANKS,
        serves,
        timeout,
        master_listen_fd=arguments.listen_fd if serves else None,
        use_libuv=False,
    )
    distributed.init_process_group(
        "gloo", store=store, rank=arguments.rank, world_size=RANKS, timeout=timeout
    )


def _run_in_group(
    arguments: argparse.Namespace, run_rank: Callable[[argparse.Namespace], None]
) -> None:
    """Run this rank's part on a core of its own, between joining the group and leaving it."""
    core = resnet_work.one_core_per_device(RANKS)[arguments.rank]
    resnet_work.use_one_thread_on(core)
    _join_process_group(arguments)
    from torch import distributed

    run_rank(arguments)
    distributed.barrier()
    distributed.destroy_process_group()


def _die_with_launcher() -> None:
    """Asks the kernel to end this rank when the launcher ends, however that happens."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _start_ranks(listener: socket.socket, outputs: list, errors: list) -> list[subprocess.Popen]:
    """Start the rank processes, each writing to its own file of `outputs` and of `errors`."""
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo")
    port = listener.getsockname()[1]
    ranks = []
    for rank in range(RANKS):
        command = [sys.executable, *sys.argv, "--rank", str(rank)]
        command += ["--port", str(port), "--listen-fd", str(listener.fileno())]
        ranks.append(
            subprocess.Popen(
                command,
                stdout=outputs[rank],
                stderr=errors[rank],
                env=environment,
                pass_fds=[listener.fileno()] if rank == 0 else [],
                preexec_fn=_die_with_launcher,
            )
        )
    return ranks


def _wait_for_ranks(ranks: list[subprocess.Popen], limit: float) -> str | None:
    """Return None when all ranks succeeded, else what went wrong."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        codes = [rank.poll() for rank in ranks]
        failed = [index for index, code in enumerate(codes) if code not in (None, 0)]
        if failed:
            return f"rank {' and '.join(map(str, failed))} failed"
        if None not in codes:
            return None
        time.sleep(0.05)
    return f"the ranks did not finish within {limit:g} s"


def _read(file) -> str:
    """Return all that was written to a rank's file."""
    file.seek(0)
    return file.read()


def _run_ranks(limit: float) -> list[dict]:
    """Return what each rank printed; raises SystemExit in one line and leaves no process behind."""
    ranks: list[subprocess.Popen] = []
    with contextlib.ExitStack() as stack:
        outputs, errors = (
            [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(RANKS)]
            for _ in range(2)
        )
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        try:
            ranks = _start_ranks(listener, outputs, errors)
            failure = _wait_for_ranks(ranks, limit)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        if failure:
            last_lines = [_read(error).strip().rpartition("\n")[2] for error in errors]
            sys.exit("; ".join([failure, *filter(None, last_lines)]))
        return [json.loads(_read(output)) for output in outputs]


def _merge(results: list[dict], peer: str) -> dict:
    """Return the peer's result: the slowest rank's time of each step, the last rank's loss."""
    per_rank_ms = [result["step_ms"] for result in results]
    return {
        **results[-1],
        "peer": peer,
        "step_ms": [max(times) for times in zip(*per_rank_ms, strict=True)],
        "per_rank_ms": per_rank_ms,
    }


def main(
    arguments: argparse.Namespace, peer: str, run_rank: Callable[[argparse.Namespace], None]
) -> None:
    """Run this rank's part, or, as the launcher, both ranks, and print their merged JSON line."""
    if arguments.rank is not None:
        _run_in_group(arguments, run_rank)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))
    print(json.dumps(_merge(_run_ranks(arguments.limit), peer)), flush=True)
