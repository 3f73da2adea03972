"""The device of each rank of a peer, and the backend that exchanges the ranks' tensors."""

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
    """PyTorch's names of the devices, one per rank or replica, and torch.distributed's backend."""

    devices: tuple[str, ...]
    backend: str


def place(kind: str, count: int, gpus: int = 0) -> Placement:
    """Return the placement of `count` ranks on a machine with `gpus` visible GPUs.

    NCCL needs a GPU for each rank. Ranks that share a GPU communicate by Gloo. Raises SystemExit if
    the ranks need GPUs and there is none.
    """
    if kind == "cpu":
        return Placement(("cpu",) * count, "gloo")
    if gpus == 0:
        raise SystemExit("--device cuda: PyTorch sees no GPU")
    names = tuple(f"cuda:{rank % gpus}" for rank in range(count))
    return Placement(names, "nccl" if count <= gpus else "gloo")
