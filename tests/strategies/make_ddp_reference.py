"""Writes reference_ddp.json: what PyTorch's DistributedDataParallel computes on two ranks.

Run by hand, with torch and torchvision installed, when the checks change:
    python tests/strategies/make_ddp_reference.py

ResNet-18 in float64 with the parameters, statistics and images of tests/models/make_reference.py;
each rank trains two of the four images, at once or accumulating over them one by one: then all
backward passes but the last are under no_sync.
"""

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as distributed
import torchvision
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
import make_reference as single

RANKS = 2
ACCUMULATION_STEPS = (1, 2)


def accumulate(replica: DistributedDataParallel, inputs, targets, parts: int) -> torch.Tensor:
    """The backward passes of a rank's share in so many parts; returns the share's mean loss."""
    losses = []
    for images, wanted in zip(inputs.chunk(parts), targets.chunk(parts)):
        last = len(losses) + 1 == parts
        with contextlib.nullcontext() if last else replica.no_sync():
            loss = torch.nn.functional.mse_loss(replica(images), wanted) / parts
            loss.backward()
        losses.append(loss.detach())
    return torch.stack(losses).sum()


def figures(rank: int, parts: int) -> dict:
    """What a step's forward and backward passes compute, on this rank."""
    model = torchvision.models.resnet18(weights=None).double()
    single.fill(model)
    replica = DistributedDataParallel(model)
    inputs = 3.0 * single.uniform(
        single.INPUT_INDEX, (single.BATCH, 3, single.IMAGE, single.IMAGE)
    )
    targets = torch.nn.functional.one_hot(torch.tensor(single.LABELS), 1000).double()
    share = single.BATCH // RANKS
    own = slice(rank * share, (rank + 1) * share)
    total = accumulate(replica, inputs[own], targets[own], parts)
    distributed.all_reduce(total)
    names = (name for name, _ in model.named_parameters())
    return {
        "accumulation_steps": parts,
        "loss": total.item() / RANKS,
        "gradients": dict(zip(names, single.gradients(model))),
        "buffers": {name: single.checksum(b) for name, b in model.named_buffers()},
    }


def train(rank: int, folder: str) -> None:
    """Train a step of each kind as one rank; rank 0 writes what it finds."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS
    )
    runs = [figures(rank, parts) for parts in ACCUMULATION_STEPS]
    if rank == 0:
        document = {
            "torch": torch.__version__.split("+")[0],
            "ranks": RANKS,
            "batch": single.BATCH,
            "image": single.IMAGE,
            "labels": single.LABELS,
            "input_index": single.INPUT_INDEX,
            "runs": runs,
        }
        (Path(folder) / "result.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")
    distributed.destroy_process_group()


def main() -> None:
    """Train on both ranks and keep the file."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, args=(folder,), nprocs=RANKS)
        text = (Path(folder) / "result.json").read_text()
    path = Path(__file__).with_name("reference_ddp.json")
    path.write_text(text, encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
