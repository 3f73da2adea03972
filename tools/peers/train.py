#!/usr/bin/env python3
"""PyTorch peer: trains a model by one of PyTorch's own ways and prints one JSON line.

Every device is one thread pinned to one core; data_parallel's, which is one, has both cores. Inside the timed region of each rank: copy of its
inputs and targets (plain clones), zero_grad, forward, loss, backward with its communication,
optimizer.step. Steps warm up, a barrier stands before the timed steps and none between them; the
step time is the maximum over the ranks.
"""

import argparse
import functools
import importlib
import json
import os
import signal
import sys

from torch_peers import ranks

MODELS = ("resnet50", "gpt-small")
STRATEGIES = {  # ranks
    "single": 1,
    "data_parallel": 1,
    "ddp": 2,
    "fsdp": 2,
    "tensor_parallel": 2,
    "pipelining": 2,
}
CORES = {"data_parallel": 2}  # of its one process, where they are more than one


def parse_arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("strategy", choices=[*STRATEGIES])
    add("--model", choices=MODELS, default=MODELS[0])
    add("--batch", type=int, default=48, help="samples in a step (48)")
    add("--image", type=int, default=128, help="image side in pixels (128)")
    add("--steps", type=int, default=2, help="timed steps (2)")
    add("--most-warm-up", type=int, default=50, help="warm-up steps, at most (50)")
    add("--seed", type=int, default=1, help="of weights and data (1)")
    add("--memory-format", choices=("nchw", "channels_last"), default="nchw")
    add("--matmul", choices=("installed", "onednn"), default="installed", help="float32 products")
    add("--compile", action="store_true", help="torch.compile the model")
    add("--schedule", default="1f1b", help="of pipelining (1f1b)")
    add("--split-size", type=int, default=12, help="micro-batch size of pipelining (12)")
    add("--cut", default="layer3", help="first layers of the stages after the first, joined by +")
    return parser.parse_args()


def choose_matmul(matmul: str) -> None:
    """Switch oneDNN's float32 products on where asked.

    The precision that sends products to oneDNN also allows it bfloat16 units, where the processor
    has them: another arithmetic than this comparison's, 2.5e-3 off in place of 1e-6. The bound on
    the instruction set, read at oneDNN's first product, leaves it the float32 units.
    """
    import torch

    if matmul == "onednn":
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE"
        torch.set_float32_matmul_precision("medium")


def run(arguments: argparse.Namespace, rank: int) -> dict:
    """Train as one rank, in a process that has its core."""
    choose_matmul(arguments.matmul)
    arguments.rank, arguments.ranks = rank, STRATEGIES[arguments.strategy]
    job = importlib.import_module(f"torch_peers.{arguments.model.replace('-', '_')}")
    return importlib.import_module(f"torch_peers.{arguments.strategy}").run(arguments, job)


def main() -> None:
    """Train and print the JSON line."""
    arguments = parse_arguments()
    count = STRATEGIES[arguments.strategy]
    if count == 1:
        ranks.use_threads_on(ranks.one_core_per_device(CORES.get(arguments.strategy, 1)))
        answer = run(arguments, 0)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))
        answer = ranks.merged(count, functools.partial(run, arguments))
    print(json.dumps({"peer": f"{arguments.model}/{arguments.strategy}", **answer}), flush=True)


if __name__ == "__main__":
    main()
