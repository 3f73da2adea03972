#!/usr/bin/env python3
"""PyTorch peer: trains a model by one of PyTorch's own ways and prints one JSON line.

A CPU device is one thread pinned to one core; data_parallel's, which is one, has all cores. A CUDA
device is a GPU. Inside the timed region of each rank: copy of its inputs and targets (clones, to a
GPU from page-locked memory), zero_grad, forward, loss, backward with its communication,
optimizer.step. Steps warm up, a barrier stands before the timed steps and none between them; a step
lasts from the last rank's end to the last rank's end. With --init-method, --rank and --world-size
the process is one rank of a launch that something else started, and rank 0 prints the line.
"""

import argparse
import functools
import importlib
import json
import os
import signal
import sys
from pathlib import Path

from command_line import Parser, at_least_one, not_negative
from torch_peers import launched, ranks
from torch_peers.placement import CONTEXT_PARALLEL, RANKED, SCHEDULES, Placement, place

MODELS = ("resnet50", "gpt-small", "gpt-long", "gpt-tiny", "llama-small", "llama-tiny")
ONE_DEVICE = ("single", "autocast")
STRATEGIES = (*ONE_DEVICE, "data_parallel", *RANKED)
SHARE_A_GPU = ("single", "ddp")  # Gloo reduces tensors of GPUs, and sends none
RECOMPUTING = ("single", "ddp")
BUCKETED = ("ddp", *CONTEXT_PARALLEL)  # DDP averages their gradients
# The transformer blocks of each model that can repeat forward passes. ResNet-50 cannot: its running
# statistics would take in each batch twice.
BLOCKS = {"gpt-small": 8, "gpt-long": 4, "gpt-tiny": 2, "llama-small": 8, "llama-tiny": 2}
# Context parallelism cuts the positions of a sample and the heads of attention of these models.
POSITIONS = {"gpt-small": 128, "gpt-long": 4096, "gpt-tiny": 32}
HEADS = {"gpt-small": 8, "gpt-long": 8, "gpt-tiny": 4}


def parse_arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = Parser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    number = at_least_one
    add("strategy", choices=STRATEGIES)
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--devices", type=number, default=2, help="devices; single and autocast use one (2)")
    add("--model", choices=MODELS, default=MODELS[0])
    add("--batch", type=number, default=48, help="number of samples of a step (48)")
    add("--image", type=number, default=128, help="height and width of images in pixels (128)")
    add("--steps", type=number, default=2, help="number of timed steps (2)")
    add("--most-warm-up", type=number, default=50, help="largest number of warm-up steps (50)")
    add("--seed", type=not_negative, help="random seed of weights and data (1)")
    add("--workload", metavar="FILE", help="take initial state and batches of `stratagem export`")
    add("--evidence", metavar="FILE", help="write the evidence for `stratagem prove`")
    add("--memory-format", choices=("nchw", "channels_last"), default="nchw")
    add("--matmul", choices=("installed", "onednn"), default="installed",
        help="library of float32 matrix products on CPUs (installed)")  # fmt: skip
    add("--compile", action="store_true", help="compile the model by torch.compile")
    add("--format", choices=("bfloat16", "float16"), help="number format of autocast (bfloat16)")
    add("--no-reshard-after-forward", action="store_true",
        help="fsdp: keep gathered layers from the forward pass to the backward pass")  # fmt: skip
    add("--wrap", choices=("layers", "blocks"), help="fsdp: units of gathering (layers)")
    add("--bucket-mb", type=float, help=f"{', '.join(BUCKETED)}: MiB of a gradient bucket (25)")
    add("--static-graph", action="store_true", help=f"{', '.join(BUCKETED)}: set static_graph")
    add("--recompute", choices=("none", "full"), default="none",
        help="single, ddp: blocks repeat their forward pass in the backward pass (none)")  # fmt: skip
    add("--segments", type=int, metavar="N",
        help="--recompute full: N runs of blocks; all but the last are repeated (every block)")  # fmt: skip
    add("--reentrant", action="store_true", help="--recompute full: use reentrant autograd")
    add("--order", choices=("zigzag", "contiguous"),
        help="ring_attention: positions of a rank, two parts or one (zigzag)")  # fmt: skip
    add("--rotate", choices=("allgather", "alltoall"),
        help="ring_attention: exchange of keys and values (allgather)")  # fmt: skip
    add("--schedule", choices=SCHEDULES, default="1f1b", help="pipelining: schedule (1f1b)")
    add("--split-size", type=number, default=12, help="pipelining: micro-batch size (12)")
    add("--cut", default="layer3", help="first layer of each stage after the first, joined by +")
    add("--init-method", help="rendezvous address, if another program starts the ranks")
    add("--rank", type=int, help="rank of this process, if another program starts the ranks")
    add("--world-size", type=int, help="number of ranks, if another program starts the ranks")
    add("--interface", help="network interface between ranks (lo)")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and arguments.matmul != "installed":
        parser.error(f"--matmul {arguments.matmul}: of CPUs, and --device is cuda")
    if arguments.no_reshard_after_forward and arguments.strategy != "fsdp":
        parser.error(f"--no-reshard-after-forward: of fsdp, not of {arguments.strategy}")
    if arguments.wrap and arguments.strategy != "fsdp":
        parser.error(f"--wrap: of fsdp, not of {arguments.strategy}")
    bucket = arguments.bucket_mb is not None
    if (bucket or arguments.static_graph) and arguments.strategy not in BUCKETED:
        option = "--bucket-mb" if bucket else "--static-graph"
        parser.error(f"{option}: of {', '.join(BUCKETED)}, not of {arguments.strategy}")
    if bucket and arguments.bucket_mb <= 0:
        parser.error(f"--bucket-mb: {arguments.bucket_mb:g} is not above 0")
    if arguments.compile and arguments.strategy == "tensor_parallel":
        parser.error("--compile: not of tensor_parallel")
    if arguments.format and arguments.strategy != "autocast":
        parser.error(f"--format: of autocast, not of {arguments.strategy}")
    checks = (why_no_recomputation, why_no_context_parallelism, why_not_these_files)
    if why := next(filter(None, (check(arguments) for check in checks)), None):
        parser.error(why)
    arguments.seed = 1 if arguments.seed is None else arguments.seed
    arguments.format = arguments.format or "bfloat16"
    arguments.wrap = arguments.wrap or "layers"
    arguments.order = arguments.order or "zigzag"
    arguments.rotate = arguments.rotate or "allgather"
    try:
        arguments.launch = launched.launch_of(arguments)
    except ValueError as error:
        parser.error(str(error))
    return arguments


def why_no_recomputation(arguments: argparse.Namespace) -> str | None:
    """Return in one line which option of repeated forward passes cannot be, or None."""
    segments = arguments.segments is not None
    options = {"--segments": segments, "--reentrant": arguments.reentrant}
    named = next((option for option, given in options.items() if given), None)
    if arguments.recompute == "none":
        return f"{named}: of --recompute full" if named else None
    if arguments.strategy not in RECOMPUTING:
        return f"--recompute: of {' and '.join(RECOMPUTING)}, not of {arguments.strategy}"
    if arguments.model not in BLOCKS:
        return f"--recompute: of {', '.join(BLOCKS)}, not of {arguments.model}"
    if named and arguments.compile:
        # The compiler omits checkpoint_sequential, and has one kind of checkpoint.
        return f"{named}: not of --compile"
    if segments and not 2 <= arguments.segments <= BLOCKS[arguments.model]:
        return f"--segments: {arguments.segments} is not from 2 to {BLOCKS[arguments.model]}"
    return None


def why_no_context_parallelism(arguments: argparse.Namespace) -> str | None:
    """Return in one line why the ranks cannot share each sample's positions, or None."""
    strategy, model, devices = arguments.strategy, arguments.model, arguments.devices
    ring = strategy == "ring_attention"
    for option, value in (("--order", arguments.order), ("--rotate", arguments.rotate)):
        if value and not ring:
            return f"{option}: of ring_attention, not of {strategy}"
    if strategy not in CONTEXT_PARALLEL:
        return None
    if arguments.device != "cpu":
        return f"--device: {strategy} is of cpu, not of {arguments.device}"
    if model not in POSITIONS:
        return f"--model: {strategy} is of {', '.join(POSITIONS)}, not of {model}"
    zigzag = ring and arguments.order != "contiguous"
    shared = {"positions": POSITIONS[model] // (2 if zigzag else 1)}
    if not ring:
        shared["heads"] = HEADS[model]
    counts = range(1, min(shared.values()) + 1)
    fit = [count for count in counts if all(number % count == 0 for number in shared.values())]
    if devices not in fit:
        why = f"cannot share the {' and '.join(shared)} of {model} evenly"
        return f"--devices: {devices} {why}; use one of {', '.join(map(str, fit))}"
    return None


def why_not_these_files(arguments: argparse.Namespace) -> str | None:
    """Return in one line what is wrong with --workload or --evidence, or None."""
    if arguments.workload:
        if arguments.seed is not None:
            return "--seed: not with --workload, whose file has the state and the batches"
        if not Path(arguments.workload).is_file():
            return f"--workload: {arguments.workload}: no such file"
    if arguments.evidence and not Path(arguments.evidence).absolute().parent.is_dir():
        return f"--evidence: {arguments.evidence}: no such folder"
    return None


def placement_of(arguments: argparse.Namespace, gpus: int) -> Placement:
    """Return where the strategy's ranks or replicas compute, with so many GPUs to be seen."""
    count = 1 if arguments.strategy in ONE_DEVICE else arguments.devices
    placement = place(arguments.device, count, gpus)
    shared = count > len(set(placement.devices)) and arguments.device == "cuda"
    if shared and arguments.strategy not in SHARE_A_GPU:
        why = f"--devices {count} needs as many GPUs, found {gpus}"
        raise SystemExit(f"{arguments.strategy}: {why}")
    return placement


def visible_gpus(device: str) -> int:
    """Return how many GPUs PyTorch sees; a job on CPUs sees none."""
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        return 0
    import torch

    return torch.cuda.device_count()


def choose_arithmetic(arguments: argparse.Namespace) -> None:
    """Switch oneDNN's float32 products on where asked, and TF32 off, as Stratagem has it.

    The precision that sends products to oneDNN also allows it bfloat16 units, where the processor
    has them: another arithmetic than this comparison's, 2.5e-3 off in place of 1e-6. The bound on
    the instruction set, read at oneDNN's first product, leaves it the float32 units.
    """
    import torch

    if arguments.device == "cuda":
        torch.backends.cudnn.allow_tf32 = False
    if arguments.matmul == "onednn":
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE"
        torch.set_float32_matmul_precision("medium")


def job_of(model: str, workload: str | None = None):
    """Return what a way of training takes: layers, batches, loss and optimizer of the model.

    With a `workload`, which `stratagem export` wrote, the layers begin with its state, and the
    batches are its own.
    """
    if model == "resnet50":
        job = importlib.import_module("torch_peers.resnet50")
    else:
        family = model.partition("-")[0]  # "gpt" or "llama"
        job = importlib.import_module(f"torch_peers.{family}").JOBS[model]
    if workload is None:
        return job
    return importlib.import_module("torch_peers.exported").Exported(job, workload)


def run(arguments: argparse.Namespace, rank: int) -> dict:
    """Train as one rank, in a process that has its core or GPU."""
    choose_arithmetic(arguments)
    devices = arguments.placement.devices
    arguments.rank, arguments.ranks = rank, len(devices) if arguments.strategy in RANKED else 1
    arguments.place = devices[rank]
    return importlib.import_module(f"torch_peers.{arguments.strategy}").run(
        arguments, job_of(arguments.model, arguments.workload)
    )


def tell(arguments: argparse.Namespace, answer: dict) -> None:
    """Print the JSON line, and write the evidence where it is asked for."""
    state = answer.pop("state")
    if arguments.evidence:
        told = {"loss": answer["losses"], "skipped": answer["skipped"], "state": state}
        Path(arguments.evidence).write_text(json.dumps(told))
    print(json.dumps({"peer": f"{arguments.model}/{arguments.strategy}", **answer}), flush=True)


def main() -> None:
    """Train and print the JSON line; as one rank of a launch, end the process."""
    arguments = parse_arguments()
    try:
        placement = placement_of(arguments, visible_gpus(arguments.device))
    except SystemExit as error:  # a wrong option, like those that the parser finds
        print(error, file=sys.stderr)
        sys.exit(2)
    arguments.placement = placement
    run_rank = functools.partial(run, arguments)
    if arguments.launch:
        launched.take_part(
            arguments.launch, placement, run_rank, functools.partial(tell, arguments)
        )
    if arguments.strategy in RANKED:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))
        answer = ranks.merged(placement, run_rank)
    else:
        if arguments.device == "cpu":
            cores = len(arguments.placement.devices)
            ranks.use_threads_on(ranks.one_core_per_device(cores))
        try:
            answer = run(arguments, 0)
        except (OSError, ValueError, KeyError) as error:
            sys.exit(f"{type(error).__name__}: {error}".splitlines()[0])
    tell(arguments, answer)


if __name__ == "__main__":
    main()
