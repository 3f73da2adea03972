"""One rank of a launch by another program, such as `tools/two_hosts` on each host."""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from torch_peers import ranks
from torch_peers.placement import RANKED, Placement

OPTIONS = "--init-method, --rank and --world-size"
GRACE_S = 2.0


@dataclass(frozen=True)
class Launch:
    """The address at which the ranks meet, the rank of this process, and the network interface."""

    init_method: str
    rank: int
    world_size: int
    interface: str


def launch_of(arguments: argparse.Namespace) -> Launch | None:
    """Return the launch of a command line, or None without one.

    Raises ValueError for an option that is missing or does not fit.
    """
    names = ("--init-method", "--rank", "--world-size")
    given = (arguments.init_method, arguments.rank, arguments.world_size)
    missing = [name for name, value in zip(names, given, strict=True) if value is None]
    if len(missing) == len(names):
        if arguments.interface is None:
            return None
        raise ValueError(f"--interface: of one rank of a launch, which has {OPTIONS}")
    if missing:
        raise ValueError(f"{' and '.join(missing)}: missing; a rank of a launch has {OPTIONS}")
    if arguments.strategy not in RANKED:
        raise ValueError(f"--init-method: of several ranks, and {arguments.strategy} has one")
    if arguments.device != "cpu":
        raise ValueError(f"--init-method: of CPUs, and --device is {arguments.device}")
    if arguments.world_size != arguments.devices:
        raise ValueError(
            f"--world-size: {arguments.world_size} ranks have as many devices,"
            f" and --devices is {arguments.devices}"
        )
    if not 0 <= arguments.rank < arguments.world_size:
        raise ValueError(f"--rank: {arguments.rank} is not from 0 to {arguments.world_size - 1}")
    return Launch(*given, arguments.interface or "lo")


def _end(code: int) -> NoReturn:
    """End the process at once, because libraries can abort it at exit, after its answer."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _fail(rank: int, error: Exception) -> NoReturn:
    """Print the error in one line, and end the process with exit code 1.

    A rank that lost its connection to another waits GRACE_S seconds first. The other rank then
    prints the cause, and its end ends all ranks.
    """
    from torch import distributed

    if isinstance(error, distributed.DistError) or "gloo/transport" in str(error):
        time.sleep(GRACE_S)
    print(f"rank {rank}: {type(error).__name__}: {error}".splitlines()[0], file=sys.stderr)
    _end(1)


def take_part(
    launch: Launch,
    placement: Placement,
    run: Callable[[int], dict],
    tell: Callable[[dict], None],
) -> NoReturn:
    """Train as the launch's rank, and end the process; rank 0 gives `tell` the answer of all."""
    rank = launch.rank
    ranks.use_threads_on([ranks.one_core_per_device(launch.world_size)[rank]])
    from torch import distributed

    try:
        ranks.meet(rank, placement, launch.init_method, launch.interface)
        given = [None] * launch.world_size if rank == 0 else None
        distributed.gather_object(run(rank), given)
        if given is not None:
            tell(ranks.as_one(placement, given))
            sys.stdout.flush()
    except Exception as error:
        _fail(rank, error)
    with contextlib.suppress(Exception):  # the answer is given, and a connection may close first
        distributed.barrier()
    _end(0)
