"""Whole trainings of a toy, and only batches of images, against PyTorch's DataLoader and loop.

A step of the toy is so small that it takes the time of the loop: order, batches, step, update.
"""

from peer_comparison.contenders import (
    Scenario,
    Settings,
    names,
    peer_program,
    stratagem_benchmark,
    stratagem_training,
)
from peer_comparison.ratios import Ratio

WORK = "toy_sgd: batch 32 a rank, 5 epochs; loader: batch 64 of 3x32x32, shifted and mirrored"
STEPS_AN_EPOCH = {1: 64, 2: 32}  # steps of toy_sgd, by number of ranks


def train(settings: Settings) -> Scenario:
    """Return toy_sgd on one and two ranks, and the loader on one core."""
    seed = ("--seed", str(settings.seed))

    def ours(ranks: int, strategy: str) -> tuple[str, ...]:
        made.append(
            stratagem_training(
                f"toy_sgd/{strategy}",
                f"--preset toy_sgd --strategy {strategy} --devices {ranks}"
                f" --log-every {STEPS_AN_EPOCH[ranks]}",
                settings,
            )
        )
        return (made[-1].name,)

    def torch(name: str, *arguments: str) -> tuple[str, ...]:
        """Return the names of a peer as installed and with the allocator."""
        both = peer_program(name, "epochs.py", *arguments, *seed)
        made.extend(both)
        return names(both)

    made = []
    single, ddp = ours(1, "single"), ours(2, "ddp")
    loader = stratagem_benchmark(
        "loader", "bench_loader:loader/threads:1/augment:1/process_time", settings
    )
    made.append(loader)
    plain = torch("toy_sgd/loop", "toy_sgd")
    batched = torch("toy_sgd/loop/batches", "toy_sgd", "--fetch", "batches")
    plain_ddp = torch("toy_sgd/ddp", "toy_sgd", "--ranks", "2")
    batched_ddp = torch("toy_sgd/ddp/batches", "toy_sgd", "--ranks", "2", "--fetch", "batches")
    loaders = [
        *torch("loader/pictures", "loader"),
        *torch("loader/tensors", "loader", "--transform", "tensors"),
    ]
    ratios = (
        Ratio("toy_sgd: PyTorch's loop over ours", plain, single, 3.00),
        Ratio("  the same, its loader reads whole batches", batched, single),
        Ratio("toy_sgd, two ranks: PyTorch's DDP over ours", plain_ddp, ddp, 1.50),
        Ratio("  the same, its loader reads whole batches", batched_ddp, ddp),
        Ratio("loader: DataLoader over ours, processor time", tuple(loaders), (loader.name,), 3.00),
    )
    return Scenario(tuple(made), ratios, WORK)
