"""The scenarios, one per file: contenders and the ratios between them.

A scenario is a function of Settings that returns contenders and ratios as data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from peer_comparison.contenders import Scenario, Settings
from peer_comparison.scenarios.context import context
from peer_comparison.scenarios.data_parallel import data_parallel
from peer_comparison.scenarios.every_way import every_way
from peer_comparison.scenarios.gpt import gpt
from peer_comparison.scenarios.llama import llama
from peer_comparison.scenarios.mixed_precision import mixed_precision
from peer_comparison.scenarios.recomputation import recomputation
from peer_comparison.scenarios.resnet import resnet_single_and_pipeline
from peer_comparison.scenarios.resnet_ddp import resnet_ddp
from peer_comparison.scenarios.train import train
from peer_comparison.scenarios.zero import zero


@dataclass(frozen=True)
class Entry:
    """A scenario, its default batch and split sizes, and the options of the work that it lacks."""

    build: Callable[[Settings], Scenario]
    batch: int = Settings.batch
    splits: tuple[int, ...] = Settings.splits
    quick_splits: tuple[int, ...] = (8,)
    lacks: tuple[str, ...] = ()


SCENARIOS: dict[str, Entry] = {
    "resnet_single_and_pipeline": Entry(resnet_single_and_pipeline, lacks=("devices",)),
    "resnet_ddp": Entry(
        resnet_ddp, splits=(), quick_splits=(), lacks=("splits", "cuts", "devices")
    ),
    "gpt": Entry(
        gpt, batch=8, splits=(1, 2), quick_splits=(1,), lacks=("image", "cuts", "devices")
    ),
    "llama": Entry(
        llama,
        batch=8,
        splits=(),
        quick_splits=(),
        lacks=("image", "splits", "cuts", "devices"),
    ),
    "every_way": Entry(every_way, splits=(12,)),
    "data_parallel": Entry(
        partial(data_parallel, model="resnet50"),
        splits=(),
        quick_splits=(),
        lacks=("splits", "cuts", "devices"),
    ),
    "data_parallel_gpt": Entry(
        partial(data_parallel, model="gpt-small"),
        batch=8,
        splits=(),
        quick_splits=(),
        lacks=("image", "splits", "cuts", "devices"),
    ),
    "zero": Entry(
        partial(zero, model="gpt-small"),
        batch=8,
        splits=(),
        quick_splits=(),
        lacks=("image", "splits", "cuts", "devices"),
    ),
    "zero_resnet": Entry(
        partial(zero, model="resnet50"),
        splits=(),
        quick_splits=(),
        lacks=("splits", "cuts", "devices"),
    ),
    "mixed_precision": Entry(
        partial(mixed_precision, model="gpt-small"),
        batch=8,
        splits=(),
        quick_splits=(),
        lacks=("image", "splits", "cuts", "devices"),
    ),
    "mixed_precision_tiny": Entry(
        partial(mixed_precision, model="gpt-tiny"),
        batch=8,
        splits=(),
        quick_splits=(),
        lacks=("image", "splits", "cuts", "devices"),
    ),
    "recomputation": Entry(
        partial(recomputation, model="gpt-small"),
        batch=8,
        splits=(),
        quick_splits=(),
        lacks=("image", "splits", "cuts", "devices"),
    ),
    "recomputation_tiny": Entry(
        partial(recomputation, model="gpt-tiny"),
        batch=8,
        splits=(),
        quick_splits=(),
        lacks=("image", "splits", "cuts", "devices"),
    ),
    "context": Entry(
        partial(context, model="gpt-long"),
        batch=1,
        splits=(),
        quick_splits=(),
        lacks=("image", "splits", "cuts", "device", "devices"),
    ),
    "context_tiny": Entry(
        partial(context, model="gpt-tiny"),
        batch=8,
        splits=(),
        quick_splits=(),
        lacks=("image", "splits", "cuts", "device", "devices"),
    ),
    "train": Entry(
        train,
        splits=(),
        quick_splits=(),
        lacks=("batch", "image", "splits", "cuts", "steps", "device", "devices"),
    ),
}
