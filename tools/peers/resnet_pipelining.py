#!/usr/bin/env python3
"""PyTorch peer: ResNet-50 by torch.distributed.pipelining over Gloo, two ranks of one core each.

The model is cut before layer3. Inside the timed region of each rank: copy of the rank's input (the
images on the first, the labels on the last), zero_grad, schedule.step (forward, loss, backward of
all micro-batches and their sends and receives), optimizer.step. Two steps warm up, a barrier stands
before the timed steps and none between them; the step time is the maximum over the ranks. The loss
of a micro-batch is its mean and the schedule divides the gradients by the number of micro-batches
(scale_grads, its default), so a step is the update of one process that accumulates over the same
micro-batches. Tensors between the stages are NCHW, because the library demands the strides that
contiguous tensors have; with --memory-format channels_last the stages convert inside.

The process started by the user only launches the two ranks and merges what they print into one JSON
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

import resnet_work

RANKS = 2


def parse_arguments() -> argparse.Namespace:
    """Return the checked command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedule", choices=("gpipe", "1f1b"), default="1f1b")
    parser.add_argument("--split", type=int, default=12, help="micro-batch size (default 12)")
    parser.add_argument("--memory-format", choices=("nchw", "channels_last"), default="nchw")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for everything (240)")
    resnet_work.add_work_options(parser)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--listen-fd", type=int, default=-1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.split < 1 or arguments.batch % arguments.split != 0:
        parser.error(f"--split {arguments.split} must divide --batch {arguments.batch}")
    if arguments.batch // arguments.split < RANKS:
        parser.error(f"--split {arguments.split} must leave at least {RANKS} micro-batches")
    return arguments


def make_stage_module(rank: int, memory_format: str, seed: int):
    """Return the rank's half of ResNet-50, in training mode, cut before layer3."""
    import torch

    class ChannelsLastInside(torch.nn.Module):
        """Runs `layers` in channels_last between contiguous input and output."""

        def __init__(self, layers: torch.nn.Module) -> None:
            super().__init__()
            self.layers = layers.to(memory_format=torch.channels_last)

        def forward(self, value):
            return self.layers(value.contiguous(memory_format=torch.channels_last)).contiguous()

    model = resnet_work.make_model(seed)
    if rank == 0:
        layers = [model.conv1, model.bn1, model.relu, model.maxpool, model.layer1, model.layer2]
    else:
        layers = [model.layer3, model.layer4, model.avgpool, torch.nn.Flatten(1), model.fc]
    stage = torch.nn.Sequential(*layers)
    return ChannelsLastInside(stage) if memory_format == "channels_last" else stage


def join_process_group(arguments: argparse.Namespace) -> None:
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


def run_rank(arguments: argparse.Namespace) -> None:
    """Trains one stage and print its JSON line; the last rank's holds the loss."""
    resnet_work.use_one_thread_on(resnet_work.one_core_per_device(RANKS)[arguments.rank])
    import torch
    import torch.distributed as distributed
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    join_process_group(arguments)
    schedule_class = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}[arguments.schedule]
    module = make_stage_module(arguments.rank, arguments.memory_format, arguments.seed)
    stage = PipelineStage(module, arguments.rank, RANKS, torch.device("cpu"))
    schedule = schedule_class(
        stage, n_microbatches=arguments.batch // arguments.split, loss_fn=torch.nn.MSELoss()
    )
    optimizer = resnet_work.make_optimizer(module)
    host_images, host_labels = resnet_work.make_batch(
        arguments.batch, arguments.image, arguments.seed
    )
    losses: list[torch.Tensor] = []

    def step() -> None:
        losses.clear()
        optimizer.zero_grad()
        if arguments.rank == 0:
            schedule.step(host_images.clone())
        else:
            schedule.step(target=host_labels.clone(), losses=losses)
        optimizer.step()

    resnet_work.warm_up(step)
    distributed.barrier()
    step_ms = resnet_work.timed_steps(step, arguments.steps)
    loss = torch.stack([loss.detach() for loss in losses]).mean().item() if losses else None
    resnet_work.print_result(f"pipelining/{arguments.schedule}", step_ms, loss)
    distributed.barrier()
    distributed.destroy_process_group()


def die_with_launcher() -> None:
    """Asks the kernel to end this rank when the launcher ends, however that happens."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def start_ranks(listener: socket.socket, outputs: list, errors: list) -> list[subprocess.Popen]:
    """Start the rank processes, each writing to its own file of `outputs` and of `errors`."""
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo")
    port = listener.getsockname()[1]
    ranks = []
    for rank in range(RANKS):
        command = [sys.executable, __file__, *sys.argv[1:], "--rank", str(rank)]
        command += ["--port", str(port), "--listen-fd", str(listener.fileno())]
        ranks.append(
            subprocess.Popen(
                command,
                stdout=outputs[rank],
                stderr=errors[rank],
                env=environment,
                pass_fds=[listener.fileno()] if rank == 0 else [],
                preexec_fn=die_with_launcher,
            )
        )
    return ranks


def wait_for_ranks(ranks: list[subprocess.Popen], limit: float) -> str | None:
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


def read(file) -> str:
    """Return all that was written to a rank's file."""
    file.seek(0)
    return file.read()


def run_ranks(limit: float) -> list[dict]:
    """Return what each rank printed; raises SystemExit in one line and leaves no process behind."""
    ranks: list[subprocess.Popen] = []
    with contextlib.ExitStack() as stack:
        outputs, errors = (
            [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(RANKS)]
            for _ in range(2)
        )
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        try:
            ranks = start_ranks(listener, outputs, errors)
            failure = wait_for_ranks(ranks, limit)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        if failure:
            last_lines = [read(error).strip().rpartition("\n")[2] for error in errors]
            sys.exit("; ".join([failure, *filter(None, last_lines)]))
        return [json.loads(read(output)) for output in outputs]


def merge(results: list[dict], peer: str) -> dict:
    """Return the peer's result: the slowest rank's time of each step, the last rank's loss."""
    per_rank_ms = [result["step_ms"] for result in results]
    return {
        **results[-1],
        "peer": peer,
        "step_ms": [max(times) for times in zip(*per_rank_ms, strict=True)],
        "per_rank_ms": per_rank_ms,
    }


def launch(arguments: argparse.Namespace) -> None:
    """Run the ranks and print their merged JSON line."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))
    peer = f"pipelining/{arguments.memory_format}/{arguments.schedule}/split:{arguments.split}"
    print(json.dumps(merge(run_ranks(arguments.limit), peer)), flush=True)


if __name__ == "__main__":
    parsed = parse_arguments()
    launch(parsed) if parsed.rank is None else run_rank(parsed)
