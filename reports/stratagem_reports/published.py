"""Figures that others published, with where they stand and under which conditions.

Every figure was read in its source. Nothing here is computed but the tutorial's ratios, which its
own text gives as the divisions repeated here, and `chunks`.
"""

from __future__ import annotations

from dataclasses import dataclass

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class Source:
    """Where figures come from and what was measured there."""

    key: str
    title: str
    place: str
    setting: str
    tolerance: str


@dataclass(frozen=True)
class TutorialFigure:
    """A ratio of times, or the best split (`kind` "best split"), of the tutorial."""

    kind: str
    name: str
    value: float
    split: int | None = None


@dataclass(frozen=True)
class Throughput:
    """Training throughput over that with 2 partitions and one micro-batch."""

    model: str
    stages: int
    micro_batches: int
    value: float


@dataclass(frozen=True)
class BubbleRate:
    """The bubble's share of the step; `chunks` are stages a device where they are interleaved."""

    model: str
    schedule: str
    stages: int
    micro_batches: int
    value: float
    chunks: int = 1


TUTORIAL = Source(
    key="tutorial",
    title="PyTorch tutorial \u201cModel Parallel Best Practices\u201d (Shen Li)",
    place="in its text, under the three charts",
    setting="ResNet-50, batch 120, 128\u00d7128 images, two GPUs; the mean of ten training calls "
    "of three batches",
    tolerance="within 5% of the published ratio, less than the 7% that model parallel costs there; "
    "of the best split, that ours is it or cannot be told apart from it",
)
GPIPE = Source(
    key="gpipe",
    title="GPipe (Huang et al. 2019, arXiv 1811.06965)",
    place="table 2",
    setting="normalised training throughput on TPUs, with re-materialization, the batch adjusted "
    "to fit the memory",
    tolerance="within 5% of the published value",
)
ZERO_BUBBLE = Source(
    key="zero_bubble",
    title="Zero Bubble Pipeline Parallelism (Qi et al. 2023, arXiv 2401.10241)",
    place="table 5",
    setting="bubble rates of GPT-like models, computed from times profiled on A100 GPUs; waiting "
    "for transfers counts as bubble",
    tolerance="within 3 percentage points of the published rate",
)
RATIO_TOLERANCE = 0.05
BUBBLE_TOLERANCE = 0.03

# 4.02 s model parallel, 3.75 s single GPU, 2.51 s pipelined at split 20, 2.43 s at split 12.
TUTORIAL_FIGURES = (
    TutorialFigure("model parallel", "Model parallel takes, of the single device", 4.02 / 3.75),
    TutorialFigure("split", "Pipeline at split 20, as fast as the single device", 3.75 / 2.51, 20),
    TutorialFigure("best split", "Best split", 12),
    TutorialFigure("best", "Pipeline at the best split, as fast as the single device", 3.75 / 2.43),
)

_PARTITIONS = (2, 4, 8)
_THROUGHPUT = (
    ("AmoebaNet-D (18, 256)", 1, (1.0, 1.13, 1.38)),
    ("AmoebaNet-D (18, 256)", 4, (1.07, 1.26, 1.72)),
    ("AmoebaNet-D (18, 256)", 32, (1.21, 1.84, 3.48)),
    ("Transformer-48", 1, (1.0, 1.07, 1.3)),
    ("Transformer-48", 4, (1.7, 3.2, 4.8)),
    ("Transformer-48", 32, (1.8, 3.4, 6.3)),
)

_SCHEDULES = ("1f1b", "interleaved_1f1b", "zb_h1", "zb_h2")
# Model, layers, stages, micro-batches, and the rate of each schedule.
_BUBBLE_RATES = (
    ("1.5B", 22, 8, 24, (0.2431, 0.1055, 0.1585, 0.1083)),
    ("1.5B", 22, 8, 32, (0.1985, 0.0818, 0.1242, 0.0837)),
    ("1.5B", 22, 8, 64, (0.1240, 0.0443, 0.0674, 0.0444)),
    ("6.2B", 30, 8, 24, (0.2347, 0.0808, 0.1323, 0.0698)),
    ("6.2B", 30, 8, 32, (0.1898, 0.0628, 0.1045, 0.0559)),
    ("6.2B", 30, 8, 64, (0.1091, 0.0320, 0.0554, 0.0294)),
    ("14.6B", 46, 16, 48, (0.2552, 0.1104, 0.1397, 0.0672)),
    ("14.6B", 46, 16, 64, (0.2082, 0.0852, 0.1088, 0.0516)),
    ("14.6B", 46, 16, 128, (0.1251, 0.0445, 0.0576, 0.0266)),
    ("28.3B", 62, 32, 96, (0.2646, 0.1493, 0.1421, 0.0641)),
    ("28.3B", 62, 32, 128, (0.2168, 0.1164, 0.1106, 0.0490)),
    ("28.3B", 62, 32, 256, (0.1352, 0.0624, 0.0594, 0.0257)),
)


def throughputs() -> list[Throughput]:
    """GPipe's table 2."""
    return [
        Throughput(model, stages, micro_batches, value)
        for model, micro_batches, values in _THROUGHPUT
        for stages, value in zip(_PARTITIONS, values, strict=True)
    ]


def bubble_rates() -> list[BubbleRate]:
    """Zero Bubble's table 5, of the schedules that are not found by its search.

    Interleaved, each layer is a chunk; first and last stage have one layer fewer than the others.
    """
    return [
        BubbleRate(
            model,
            schedule,
            stages,
            micro_batches,
            value,
            (layers + 2) // stages if schedule == "interleaved_1f1b" else 1,
        )
        for model, layers, stages, micro_batches, values in _BUBBLE_RATES
        for schedule, value in zip(_SCHEDULES, values, strict=True)
    ]
