"""Which device each rank of a peer computes on, and what carries the ranks' tensors."""

from dataclasses import dataclass

# The names that torch.distributed.pipelining gives its schedules.
SCHEDULES = {
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "Interleaved1F1B",
    "interleaved_zero_bubble": "InterleavedZeroBubble",
    "zb_v": "ZBVZeroBubble",
    "dualpipe_v": "DualPipeV",
}
CONTEXT_PARALLEL = ("ulysses", "ring_attention")  # a rank has a part of each sample's positions
# Strategies with a rank for each device.
RANKED = ("ddp", "zero1", "fsdp", "tensor_parallel", "pipelining", *CONTEXT_PARALLEL)


@dataclass(frozen=True)
class Placement:
    """PyTorch's names of the devices, one a rank or replica, and torch.distributed's backend."""

    devices: tuple[str, ...]
    backend: str


def place(kind: str, count: int, gpus: int = 0) -> Placement:
    """Return where `count` ranks compute, with so many GPUs to be seen.

    NCCL wants a GPU for each rank; ranks that share one talk by Gloo. Raises SystemExit where there
    is no GPU.
    """
    if kind == "cpu":
        return Placement(("cpu",) * count, "gloo")
    if gpus == 0:
        raise SystemExit("--device cuda: PyTorch sees no GPU")
    names = tuple(f"cuda:{rank % gpus}" for rank in range(count))
    return Placement(names, "nccl" if count <= gpus else "gloo")
