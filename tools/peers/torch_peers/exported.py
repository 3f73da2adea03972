"""The state and the batches that `stratagem export` wrote, instead of a job's own."""

import argparse
from collections.abc import Mapping

import torch


class Exported:
    """A job with the exported initial state and the exported batches."""

    def __init__(self, job, path: str) -> None:
        self.job_ = job
        self.content_ = torch.load(path, weights_only=True)

    def __getattr__(self, name: str):
        return getattr(self.job_, name)

    def make_layers(self, seed: int) -> Mapping[str, torch.nn.Module]:
        """Return the job's layers with the exported state; raise KeyError if the entries differ."""
        layers = self.job_.make_layers(seed)
        left = self.content_.pop("model")
        for name, layer in layers.items():
            keys = {key: f"{name}.{key}" for key in layer.state_dict()}
            layer.load_state_dict(
                {key: self.job_.imported(whole, left.pop(whole)) for key, whole in keys.items()}
            )
        if left:
            raise KeyError(f"the exported state has {next(iter(left))}, and the model has not")
        return layers

    def make_batches(self, arguments: argparse.Namespace) -> list[tuple]:
        """Return the exported batches; raise ValueError for another number of samples or pixels."""
        batches = [(batch["inputs"], batch["targets"]) for batch in self.content_["batches"]]
        inputs = batches[0][0]
        if len(inputs) != arguments.batch:
            raise ValueError(
                f"--batch: {arguments.batch}, and the exported batches have {len(inputs)}"
            )
        if inputs.dim() == 4 and inputs.shape[-1] != arguments.image:
            raise ValueError(
                f"--image: {arguments.image}, and the exported images have {inputs.shape[-1]}"
            )
        return batches
