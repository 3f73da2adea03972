"""The training job that every PyTorch peer does, and how a peer measures itself.

The job is the one Stratagem measures: torchvision's ResNet-50 in training mode, float32, 1000
classes, mean squared error against one-hot labels, SGD with learning rate 0.001 and no momentum,
synthetic images made once from a seed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

CLASSES = 1000
LEARNING_RATE = 0.001
# The residual blocks of ResNet-50 as a cut names them: "layer3" is the first of layer3.
BLOCKS = [
    name
    for layer, blocks in enumerate((3, 4, 6, 3), start=1)
    for name in (f"layer{layer}", *(f"layer{layer}.{block}" for block in range(1, blocks)))
]


def add_work_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every peer of this job understands."""
    parser.add_argument("--batch", type=int, default=48, help="images in a step (default 48)")
    parser.add_argument("--image", type=int, default=128, help="image side in pixels (default 128)")
    parser.add_argument("--steps", type=int, default=2, help="timed steps (default 2)")
    parser.add_argument("--seed", type=int, default=1, help="of weights and data (default 1)")


def one_core_per_device(devices: int) -> list[int]:
    """Return one CPU of each physical core of this process's affinity mask, `devices` of them.

    Raises SystemExit when the mask holds fewer physical cores than that.
    """
    mask = sorted(os.sched_getaffinity(0))
    cores: dict[str, int] = {}
    for cpu in mask:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = siblings.read_text().strip() if siblings.exists() else str(cpu)
        cores.setdefault(core, cpu)
    if len(cores) < devices:
        raise SystemExit(f"{devices} one-core devices need {devices} cores, found {len(cores)}")
    return list(cores.values())[:devices]


def use_one_thread_on(cpu: int) -> None:
    """Pins this process, and all threads it makes later, to one CPU and one compute thread."""
    os.sched_setaffinity(0, {cpu})
    import torch

    torch.set_num_threads(1)


def make_model(seed: int):
    """Return ResNet-50 in training mode with the weights that `seed` gives."""
    import torch
    import torchvision

    torch.manual_seed(seed)
    return torchvision.models.resnet50(num_classes=CLASSES).train()


def make_batch(batch: int, image: int, seed: int):
    """Return (images [batch, 3, image, image], one-hot labels [batch, CLASSES]), float32, NCHW."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(batch, 3, image, image, generator=generator)
    classes = torch.randint(CLASSES, (batch,), generator=generator)
    return images, torch.nn.functional.one_hot(classes, CLASSES).float()


def make_optimizer(model):
    """Return the job's optimizer over the parameters of `model`."""
    import torch

    return torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)


def in_memory_format(memory_format: str, model, images) -> tuple:
    """Return the model and the images in "nchw" or "channels_last"."""
    import torch

    if memory_format == "nchw":
        return model, images
    last = torch.channels_last
    return model.to(memory_format=last), images.contiguous(memory_format=last)


def warm_up(step: Callable[[], None]) -> None:
    """Call `step` until two in a row agree within 5%, as Stratagem warms up (bench/timing/warm_up.h).

    At least twice, and no further than 50 steps or 20 s. All ranks go by the slowest of them.
    """
    previous = total = 0.0
    for count in range(1, 51):
        start = time.perf_counter()
        step()
        took = slowest(time.perf_counter() - start)
        total += took
        if count > 1 and (abs(took - previous) <= 0.05 * previous or total >= 20.0):
            break
        previous = took


def slowest(seconds: float) -> float:
    """The longest time of all ranks; the own one where there is no other."""
    import torch
    from torch import distributed

    if not distributed.is_available() or not distributed.is_initialized():
        return seconds
    longest = torch.tensor(seconds, dtype=torch.float64)
    distributed.all_reduce(longest, op=distributed.ReduceOp.MAX)
    return longest.item()


def timed_steps(step: Callable[[], None], steps: int) -> list[float]:
    """Call `step` `steps` times and return the milliseconds of each."""
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def measure(peer: str, step: Callable[[], None], steps: int, loss: Callable[[], float | None]):
    """Warm up, time steps from a barrier of all ranks on, and print the JSON line."""
    from torch import distributed

    warm_up(step)
    if distributed.is_available() and distributed.is_initialized():
        distributed.barrier()
    times = timed_steps(step, steps)
    print_result(peer, times, loss())


def train(peer: str, steps: int, model, loss_of: Callable, batch: tuple, optimizer) -> None:
    """Measure steps of a whole model: copies of the batch, forward, loss, backward, update."""
    losses = []

    def step() -> None:
        inputs, targets = (tensor.clone() for tensor in batch)
        optimizer.zero_grad()
        loss = loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    measure(peer, step, steps, lambda: losses[-1].item())


def loaded_allocator() -> str:
    """Return which malloc this process really uses, so that a preload that failed is noticed."""
    return "jemalloc" if "libjemalloc" in Path("/proc/self/maps").read_text() else "system"


def print_result(peer: str, step_ms: list[float], loss: float | None) -> None:
    """Print the one JSON line a peer answers with."""
    import torch

    result = {
        "peer": peer,
        "step_ms": step_ms,
        "loss": loss,
        "torch": torch.__version__,
        "allocator": loaded_allocator(),
    }
    print(json.dumps(result), flush=True)
