"""The image job of the PyTorch peers: torchvision's ResNet-50 in training mode.

Float32, 1000 classes, mean squared error against one-hot labels, SGD with learning rate 0.001 and
no momentum, synthetic images.
"""

import argparse

import torch
import torchvision

from torch_peers.measurement import BATCHES

CLASSES = 1000
OPTIMIZER = torch.optim.SGD
OPTIMIZER_OPTIONS = {"lr": 0.001}

loss_of = torch.nn.functional.mse_loss


def make_layers(seed: int) -> dict[str, torch.nn.Module]:
    """Return the layers in order, by their names in a state, such as "layer3.0"."""
    torch.manual_seed(seed)
    model = torchvision.models.resnet50(num_classes=CLASSES).train()
    layers = {name: getattr(model, name) for name in ("conv1", "bn1", "relu", "maxpool")}
    for group in ("layer1", "layer2", "layer3", "layer4"):
        for index, block in enumerate(getattr(model, group)):
            layers[f"{group}.{index}"] = block
    return {**layers, "avgpool": model.avgpool, "flatten": torch.nn.Flatten(1), "fc": model.fc}


def make_batches(arguments: argparse.Namespace) -> list[tuple]:
    """Return batches of (images [batch, 3, image, image], one-hot labels [batch, CLASSES])."""
    generator = torch.Generator().manual_seed(arguments.seed)
    side = arguments.image

    def one() -> tuple[torch.Tensor, torch.Tensor]:
        images = torch.randn(arguments.batch, 3, side, side, generator=generator)
        classes = torch.randint(CLASSES, (arguments.batch,), generator=generator)
        return images, torch.nn.functional.one_hot(classes, CLASSES).float()

    return [one() for _ in range(BATCHES)]


def imported(_: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor unchanged: Stratagem's state has torchvision's names and order."""
    return tensor


exported = imported


def make_optimizer(parameters) -> torch.optim.Optimizer:
    """Return the job's optimizer, unfused, which is the fastest of PyTorch's variants for it."""
    return OPTIMIZER(parameters, **OPTIMIZER_OPTIONS)
