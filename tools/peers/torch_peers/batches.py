"""DataLoader's batches of images of CIFAR-10's shape, shifted by up to 4 pixels and mirrored."""

import argparse
import time

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from torch_peers.measurement import loaded_allocator

BATCH, SAMPLES = 64, 10_000
MOVED = [v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip()]
SCALED = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]


class Images(Dataset):
    """Random images and labels from a seed."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        shape = (SAMPLES, 32, 32, 3)
        self.images = torch.randint(256, shape, dtype=torch.uint8, generator=generator)
        self.labels = torch.randint(10, (SAMPLES,), generator=generator).tolist()

    def __len__(self) -> int:
        return SAMPLES


class Pictures(Images):
    """Arrays, each of which becomes a PIL image when it is read, as in torchvision's CIFAR10."""

    transform = v2.Compose([*MOVED, v2.ToImage(), *SCALED])

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.arrays = self.images.numpy()

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.transform(Image.fromarray(self.arrays[index])), self.labels[index]


class Tensors(Images):
    """Images that are tensors from the start."""

    transform = v2.Compose([*MOVED, *SCALED])

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.tensors = self.images.permute(0, 3, 1, 2).contiguous()

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.transform(self.tensors[index]), self.labels[index]


def run(arguments: argparse.Namespace) -> dict:
    """Make the batches of all epochs in this process.

    The `step_ms` of the answer are processor milliseconds per batch, one for each epoch.
    """
    torch.manual_seed(arguments.seed)
    data = (Pictures if arguments.transform == "pictures" else Tensors)(arguments.seed)
    loader = DataLoader(data, BATCH, shuffle=True)
    next(iter(loader))
    step_ms = []
    for _ in range(arguments.epochs):
        start = time.process_time()
        for images, _ in loader:
            images.contiguous(memory_format=torch.channels_last)
        step_ms.append(1e3 * (time.process_time() - start) / len(loader))
    return {
        "step_ms": step_ms,
        "loss": None,
        "torch": torch.__version__,
        "allocator": loaded_allocator(),
    }
