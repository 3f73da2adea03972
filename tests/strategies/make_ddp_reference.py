"""Writes reference_ddp.json: what PyTorch's DistributedDataParallel computes on two ranks.

Run by hand, with torch and torchvision installed, when the checks change:
    python tests/strategies/make_ddp_reference.py

ResNet-18 in float64 with the parameters, statistics and images of tests/models/make_reference.py;
each rank trains two of the four images.
"""

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


def train(rank: int, folder: str) -> None:
    """One step's forward and backward pass; rank 0 writes what it finds."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS
    )
    model = torchvision.models.resnet18(weights=None).double()
    single.fill(model)
    replica = DistributedDataParallel(model)
    inputs = 3.0 * single.uniform(
        single.INPUT_INDEX, (single.BATCH, 3, single.IMAGE, single.IMAGE)
    )
    targets = torch.nn.functional.one_hot(torch.tensor(single.LABELS), 1000).double()
    share = single.BATCH // RANKS
    own = slice(rank * share, (rank + 1) * share)
    loss = torch.nn.functional.mse_loss(replica(inputs[own]), targets[own])
    loss.backward()
    total = loss.detach().clone()
    distributed.all_reduce(total)
    if rank == 0:
        document = {
            "torch": torch.__version__.split("+")[0],
            "ranks": RANKS,
            "batch": single.BATCH,
            "image": single.IMAGE,
            "labels": single.LABELS,
            "input_index": single.INPUT_INDEX,
            "loss": total.item() / RANKS,
            "gradients": dict(
                zip((name for name, _ in model.named_parameters()), single.gradients(model))
            ),
            "buffers": {name: single.checksum(b) for name, b in model.named_buffers()},
        }
        (Path(folder) / "result.json").write_text(json.dumps(document, indent=1) + "\n")
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
