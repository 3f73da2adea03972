"""torch.distributed.pipelining: a schedule of the library over the stages of --cut.

The loss function divides a micro-batch's mean by the number of micro-batches. The gradients then
add up to those of one process that accumulates over the same micro-batches, without the library's
pass over all gradients (scale_grads). Outputs are not kept, which saves their copy.
"""

import argparse
import copy
from collections.abc import Mapping, Sequence

import torch
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class

from torch_peers.measurement import fetched, in_turn, measure
from torch_peers.placement import SCHEDULES
from torch_peers.whole_model import compiled, held, in_memory_format

V_SHAPED = ("zb_v", "dualpipe_v")


class Nhwc(torch.autograd.Function):
    """The NHWC view of a channels_last tensor, as a tensor that autograd does not treat as a view.

    The library detaches a stage's outputs in place, which fails for views.
    """

    @staticmethod
    def forward(_, images: torch.Tensor) -> torch.Tensor:
        """Return [batch, height, width, channels] over the same memory."""
        return images.permute(0, 2, 3, 1).data

    @staticmethod
    def backward(_, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient of the images, in channels_last."""
        return gradient.permute(0, 3, 1, 2)


class ChannelsLast(torch.nn.Module):
    """Runs `layers` in channels_last, and passes NHWC views between neighbouring stages.

    The view is contiguous, so nothing is copied. The first stage takes images in channels_last, and
    the last stage returns a matrix.
    """

    def __init__(self, layers: torch.nn.Module, first: bool) -> None:
        super().__init__()
        self.layers = layers.to(memory_format=torch.channels_last)
        self.first = first

    def forward(self, value):
        """Return the layers' output, images as [batch, height, width, channels]."""
        output = self.layers(value if self.first else value.permute(0, 3, 1, 2))
        return Nhwc.apply(output) if output.dim() == 4 else output


def nhwc(value: torch.Tensor) -> torch.Tensor:
    """Return the tensor on the meta device that a channels_last stage passes on for `value`."""
    if value.dim() != 4:
        return value
    n, channels, height, width = value.shape
    return value.new_empty(n, height, width, channels)


class Stage(PipelineStage):
    """A stage without the library's first handshake.

    The handshake sends a tensor to each neighbour. In V-shaped schedules two neighbours are on one
    rank, which would send to itself, and Gloo refuses this. Gloo needs no handshake, and NCCL needs
    none if the ranks are already connected.
    """

    def _get_init_p2p_neighbors_ops(self) -> list:
        return []


def place_of(cut: str, names: list[str]) -> int:
    """Return the index of the layer that a cut names: "layer3.1", or "layer3" for "layer3.0".

    Raises ValueError for an unknown layer.
    """
    for name in (cut, f"{cut}.0"):
        if name in names:
            return names.index(name)
    raise ValueError(f"--cut: the model has no layer {cut}")


def handed_over(layers: Mapping[str, torch.nn.Module], inputs: torch.Tensor) -> list[torch.Tensor]:
    """Return the input of each layer and the output of the last, as tensors on the meta device.

    The library would find the shapes by a forward pass of zeros, which changes running statistics.
    """
    values = [inputs.to("meta")]
    for layer in layers.values():
        values.append(copy.deepcopy(layer).to("meta")(values[-1]).detach())
    return values


def make_stages(
    arguments: argparse.Namespace, layers: dict, values: Sequence[torch.Tensor]
) -> list[Stage]:
    """Return this rank's stages; `values` are the inputs of all layers and the last output."""
    names = [*layers]
    cuts = [place_of(name, names) for name in arguments.cut.split("+")]
    bounds = [0, *cuts, len(names)]
    count = len(bounds) - 1
    mine = range(arguments.rank, count, arguments.ranks)
    if arguments.schedule in V_SHAPED:
        mine = (arguments.rank, count - 1 - arguments.rank)
    stages = []
    for index in mine:
        module = torch.nn.Sequential(*[*layers.values()][bounds[index] : bounds[index + 1]])
        given, made = values[bounds[index]], values[bounds[index + 1]]
        if arguments.memory_format == "channels_last":
            module = ChannelsLast(module, first=index == 0)
            given, made = (given if index == 0 else nhwc(given)), nhwc(made)
        module = compiled(arguments, module)
        device = torch.device(arguments.place)
        stages.append(
            Stage(module.to(device), index, count, device, input_args=given, output_args=made)
        )
    return stages


def run(arguments: argparse.Namespace, job) -> dict:
    """Train this rank's stages.

    The rank of the first stage has the inputs, and the rank of the last stage has the targets.
    """
    layers = job.make_layers(arguments.seed)
    batches = [in_memory_format(arguments, *batch) for batch in job.make_batches(arguments)]
    values = handed_over(layers, batches[0][0][: arguments.split_size])
    stages = make_stages(arguments, layers, values)
    own = {id(module) for stage in stages for module in stage.submod.modules()}
    layers = {name: layer for name, layer in layers.items() if id(layer) in own}
    count = arguments.batch // arguments.split_size

    def part_of_loss(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return job.loss_of(output, targets) / count

    make_schedule = get_schedule_class(SCHEDULES[arguments.schedule])
    one = issubclass(make_schedule, PipelineScheduleSingle)
    schedule = make_schedule(
        stages[0] if one else stages, count, loss_fn=part_of_loss, scale_grads=False
    )
    optimizer = job.make_optimizer([p for stage in stages for p in stage.submod.parameters()])
    turns = in_turn([held(arguments, *batch) for batch in batches])
    first, last = stages[0].is_first, stages[-1].is_last

    def step() -> torch.Tensor | None:
        losses: list[torch.Tensor] = []
        inputs, targets = next(turns)
        optimizer.zero_grad()
        given = [fetched(inputs, arguments.place)] if first else []
        kept = {"target": fetched(targets, arguments.place), "losses": losses} if last else {}
        schedule.step(*given, **kept, return_outputs=False)
        optimizer.step()
        return torch.stack([loss.detach() for loss in losses]).sum() if last else None

    return measure(arguments, job, step, layers)
