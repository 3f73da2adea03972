"""The comparisons that can be run: which contenders, and which questions about them.

A scenario is a function of Settings that returns contenders and ratios as data; a new one is one
more such function in SCENARIOS.
"""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from peer_comparison.contender import (
    ALLOCATOR_LIBRARY,
    ALLOCATOR_SETTINGS,
    AS_INSTALLED,
    Contender,
    Launchable,
    parse_peer,
    parse_stratagem,
)
from peer_comparison.ratios import Kind, Ratio, Target

at_least = partial(Target, Kind.AT_LEAST)
reaches = partial(Target, Kind.REACHES)
within = partial(Target, Kind.WITHIN)

PEERS_FOLDER = Path(__file__).resolve().parent.parent
ROOT = PEERS_FOLDER.parent.parent


@dataclass(frozen=True)
class Settings:
    """The work that all contenders of a scenario do."""

    batch: int = 48
    image: int = 128
    steps: int = 2
    seed: int = 1
    splits: tuple[int, ...] = (24, 16, 12, 8, 6)
    cuts: tuple[str, ...] = ("layer3",)
    stratagem: Path = ROOT / "build" / "bin" / "stratagem"


@dataclass(frozen=True)
class Job:
    """What all contenders of a scenario train: options of the peers, and of `stratagem run`."""

    peer: tuple[str, ...]
    stratagem: tuple[str, ...]


def _options(values: dict[str, object]) -> tuple[str, ...]:
    return tuple(text for key, value in values.items() for text in (key, str(value)))


def resnet_job(settings: Settings) -> Job:
    """ResNet-50, mean squared error, SGD."""
    return Job(
        peer=_options({"--batch": settings.batch, "--image": settings.image}),
        stratagem=_options(
            {
                "--model": "resnet50",
                "--global-batch-size": settings.batch,
                "--image-size": settings.image,
                "--loss": "mse",
                "--optimizer": "sgd",
                "--learning-rate": 0.001,
                "--momentum": 0,
            }
        ),
    )


GPT_SCENARIO = "gpt"
GPT_BATCH = 8


def gpt_job(settings: Settings) -> Job:
    """gpt-small, cross-entropy, AdamW."""
    return Job(
        peer=_options({"--batch": settings.batch}),
        stratagem=_options(
            {
                "--model": "gpt-small",
                "--global-batch-size": settings.batch,
                "--optimizer": "adamw",
                "--learning-rate": 0.001,
            }
        ),
    )


@dataclass(frozen=True)
class Scenario:
    """Contenders and the ratios to draw from them."""

    contenders: tuple[Contender, ...]
    ratios: tuple[Ratio, ...]


def peer_python() -> str:
    """Return the Python that runs the peers: $STRATAGEM_PYTHON, else the venv, else this one."""
    venv = ROOT / ".venv" / "bin" / "python"
    return os.environ.get("STRATAGEM_PYTHON") or (str(venv) if venv.exists() else sys.executable)


@cache
def _why_no_peer(allocator: bool) -> str | None:
    """Return why a PyTorch peer cannot run on this machine, or None."""
    find = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"
    command = [peer_python(), "-c", find, "torch", "torchvision", "numpy", "sympy"]
    try:
        found = subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        found = False
    if not found:
        return f"{peer_python()} lacks torch or torchvision: tools/test installs the full wheels"
    if allocator and ctypes.util.find_library(ALLOCATOR_LIBRARY) is None:
        return f"lib{ALLOCATOR_LIBRARY} was not found: install libjemalloc2"
    return None


def torch_peer(
    name: str, script: str, options: list[str], settings: Settings, job: Job | None = None
) -> list[Contender]:
    """Return two contenders from one peer script: as installed, and with the allocator."""
    work = (job or resnet_job(settings)).peer
    common = ["--steps", str(settings.steps), "--seed", str(settings.seed)]
    command = (peer_python(), str(PEERS_FOLDER / script), *options, *work, *common)
    preload = {"LD_PRELOAD": ctypes.util.find_library(ALLOCATOR_LIBRARY), **ALLOCATOR_SETTINGS}
    return [
        Contender(
            name,
            Launchable(command, AS_INSTALLED, parse_peer("system")),
            unavailable=_why_no_peer(allocator=False),
        ),
        Contender(
            f"{name}/allocator",
            Launchable(command, {**AS_INSTALLED, **preload}, parse_peer(ALLOCATOR_LIBRARY)),
            unavailable=_why_no_peer(allocator=True),
        ),
    ]


def stratagem_row(
    name: str, strategy: str, options: list[str], settings: Settings, job: Job | None = None
) -> Contender:
    """Return Stratagem's contender of one row, verified once before the rounds."""
    common = {
        "--strategy": strategy,
        "--device": "cpu",
        "--cores-per-device": 1,
        "--seed": settings.seed,
        "--repetitions": 1,
        "--out": "{out}",
    }
    work = (*_options(common), *(job or resnet_job(settings)).stratagem)
    command = (str(settings.stratagem), "run", *work, *options)
    timed = (*command, "--steps", str(settings.steps), "--no-verify")
    missing = None if settings.stratagem.exists() else f"{settings.stratagem} is not built"
    return Contender(
        f"stratagem/{name}",
        Launchable(timed, AS_INSTALLED, parse_stratagem(strategy, verified=False)),
        Launchable(
            (*command, "--steps", "1"), AS_INSTALLED, parse_stratagem(strategy, verified=True)
        ),
        missing,
    )


def stratagem_single(settings: Settings) -> Contender:
    """Return `single` of a job with one device, so that no row with all cores comes along."""
    return stratagem_row("single", "single", ["--devices", "1"], settings)


def _parts(settings: Settings) -> list[tuple[str, int, str]]:
    """Return the name, split size and cut of each way to pipeline images."""
    return [
        (f"split:{split}" + ("" if cut == Settings.cuts[0] else f"/cut:{cut}"), split, cut)
        for cut in settings.cuts
        for split in settings.splits
    ]


def stratagem_pipelines(settings: Settings) -> list[Contender]:
    """Return `pipeline` on two devices, a contender for each split size and cut."""
    common = ["--devices", "2", "--schedule", "1f1b", "--split-size"]
    return [
        stratagem_row(
            f"pipeline/{name}", "pipeline", [*common, str(split), "--cut", cut], settings
        )
        for name, split, cut in _parts(settings)
    ]


def torch_pipelines(settings: Settings, memory_format: str) -> list[Contender]:
    """Return torch.distributed.pipelining: every schedule, split and cut, with both allocators."""
    return [
        contender
        for schedule in ("gpipe", "1f1b")
        for name, split, cut in _parts(settings)
        for contender in torch_peer(
            f"torch/pipelining/{memory_format}/{schedule}/{name}",
            "resnet_pipelining.py",
            [
                *("--memory-format", memory_format, "--schedule", schedule),
                *("--split", str(split), "--cut", cut),
            ],
            settings,
        )
    ]


def _names(contenders: list[Contender], allocator: bool | None = None) -> tuple[str, ...]:
    """Return the names, of those with or without the allocator if that is asked for."""
    names = (contender.name for contender in contenders)
    return tuple(
        name for name in names if allocator is None or name.endswith("/allocator") == allocator
    )


def _both_layouts(name: str, script: str, settings: Settings) -> list[Contender]:
    """Return a peer's contenders for NCHW and channels_last, of each with both allocators."""
    return [
        contender
        for layout in ("nchw", "channels_last")
        for contender in torch_peer(
            f"torch/{name}/{layout}", script, ["--memory-format", layout], settings
        )
    ]


def resnet_single_and_pipeline(settings: Settings) -> Scenario:
    """ResNet-50 on one core and pipelined over two, against PyTorch."""
    singles = _both_layouts("single", "resnet_single.py", settings)
    nchw, nchw_allocator, last, last_allocator = ((c.name,) for c in singles)
    single = stratagem_single(settings)
    split_model = stratagem_row("model_parallel", "model_parallel", ["--devices", "2"], settings)
    pipelines = stratagem_pipelines(settings)
    torch = torch_pipelines(settings, "nchw")
    installed, with_allocator = _names(torch, allocator=False), _names(torch, allocator=True)
    ours, ours_split, pipelined = (single.name,), (split_model.name,), _names(pipelines)
    ratios = (
        Ratio("single: all, over PyTorch NCHW", nchw, ours),
        Ratio("  layout: NCHW to channels_last", nchw, last),
        Ratio("  allocator: channels_last", last, last_allocator),
        Ratio("  design: over channels_last with allocator", last_allocator, ours, reaches(1.00)),
        Ratio("  allocator: NCHW", nchw, nchw_allocator),
        Ratio("single: over channels_last as installed", last, ours, at_least(1.25)),
        Ratio("model_parallel over single", ours_split, ours, within(0.05)),
        Ratio("pipeline: over model_parallel", ours_split, pipelined, at_least(1.40)),
        Ratio(
            "pipeline: over torch pipelining as installed", installed, pipelined, at_least(1.30)
        ),
        Ratio(
            "pipeline: over torch pipelining with allocator",
            with_allocator,
            pipelined,
            reaches(1.00),
        ),
    )
    return Scenario((single, split_model, *pipelines, *singles, *torch), ratios)


def resnet_pipelining_channels_last(settings: Settings) -> Scenario:
    """ResNet-50 pipelined, against torch pipelining with channels_last inside its stages."""
    pipelines = stratagem_pipelines(settings)
    inside = torch_pipelines(settings, "channels_last")
    ratios = tuple(
        Ratio(
            f"pipeline: over channels_last stages {how}", _names(inside, own), _names(pipelines)
        )
        for how, own in (("as installed", False), ("with allocator", True))
    )
    return Scenario((*pipelines, *inside), ratios)


def resnet_ddp(settings: Settings) -> Scenario:
    """ResNet-50 data parallel on two ranks, against PyTorch's DistributedDataParallel."""
    single = stratagem_single(settings)
    ddp = stratagem_row("ddp", "ddp", ["--devices", "2"], settings)
    peers = _both_layouts("ddp", "resnet_ddp.py", settings)
    nchw, nchw_allocator, last, last_allocator = ((c.name,) for c in peers)
    ours, over = (ddp.name,), "ddp: over PyTorch DDP channels_last"
    ideal = "ddp: speed-up over single (two cores: 2.00 is ideal, 1.70 is 85%)"
    ratios = (
        Ratio("ddp: all, over PyTorch DDP NCHW", nchw, ours),
        Ratio("  layout: NCHW to channels_last", nchw, last),
        Ratio("  allocator: NCHW", nchw, nchw_allocator),
        Ratio(f"{over} as installed", last, ours, at_least(1.10)),
        Ratio(f"{over} with allocator", last_allocator, ours, reaches(1.00)),
        Ratio(ideal, (single.name,), ours, at_least(1.70)),
    )
    return Scenario((single, ddp, *peers), ratios)


def _gpt_peers(name: str, script: str, options: list[str], settings: Settings) -> list[Contender]:
    """Return a peer with the allocator: matrix products as installed, and by oneDNN."""
    pairs = [
        torch_peer(
            f"torch/{name}/{matmul}",
            script,
            [*options, "--matmul", matmul],
            settings,
            gpt_job(settings),
        )
        for matmul in ("installed", "onednn")
    ]
    return [with_allocator for _, with_allocator in pairs]


def _gpt_pipelines(settings: Settings) -> list[Contender]:
    """Return `pipeline` between two processes, a contender for each schedule."""
    interleaved = "blocks.3+blocks.5+blocks.7"
    cuts = {"1f1b": "blocks.5", "zb_h1": "blocks.5", "interleaved_1f1b": interleaved}
    return [
        stratagem_row(
            f"pipeline/{schedule}",
            "pipeline",
            [*"--devices 2 --ranks 2 --split-size 1 --schedule".split(), schedule, "--cut", cut],
            settings,
            gpt_job(settings),
        )
        for schedule, cut in cuts.items()
    ]


def gpt(settings: Settings) -> Scenario:
    """A GPT on one core, tensor parallel over two, and pipelined over two, against PyTorch."""
    job = gpt_job(settings)
    single = stratagem_row("single", "single", ["--devices", "1"], settings, job)
    tensor = stratagem_row("tensor_parallel", "tensor_parallel", ["--devices", "2"], settings, job)
    pipelines = _gpt_pipelines(settings)
    installed = torch_peer("torch/single", "gpt_single.py", [], settings, job)[0]
    singles = _gpt_peers("single", "gpt_single.py", [], settings)
    tensors = _gpt_peers("tensor_parallel", "gpt_tensor_parallel.py", [], settings)
    plain = _gpt_peers("1f1b", "gpt_pipelining.py", ["--schedule", "1f1b"], settings)
    interleaved = _gpt_peers(
        "interleaved", "gpt_pipelining.py", ["--schedule", "interleaved"], settings
    )
    ours, ours_tensor = (single.name,), (tensor.name,)
    ratios = [
        Ratio("single: over PyTorch as installed", (installed.name,), ours, at_least(1.70)),
        Ratio("  allocator", (installed.name,), (singles[0].name,)),
        Ratio("  oneDNN products", (singles[0].name,), (singles[1].name,)),
        Ratio("single: over PyTorch with both", (singles[1].name,), ours, reaches(1.00)),
        Ratio("tensor_parallel: over our single", ours, ours_tensor, at_least(1.20)),
    ]
    for index, products in enumerate(("MKL", "oneDNN")):
        theirs, torch = (tensors[index].name,), (plain[index].name,)
        best, first = (*torch, interleaved[index].name), (pipelines[0].name,)
        how, all_ours = f"{products} products", _names(pipelines)
        ratios += [
            Ratio(f"tensor_parallel: over PyTorch's, {how}", theirs, ours_tensor, reaches(1.00)),
            Ratio(f"1f1b: over torch 1f1b, {how}", torch, first, at_least(1.15)),
            Ratio(f"best pipeline: over torch's best, {how}", best, all_ours, reaches(1.00)),
        ]
    contenders = (single, tensor, *pipelines, installed, *singles, *tensors, *plain, *interleaved)
    return Scenario(contenders, tuple(ratios))


SCENARIOS: dict[str, Callable[[Settings], Scenario]] = {
    "resnet_single_and_pipeline": resnet_single_and_pipeline,
    "resnet_pipelining_channels_last": resnet_pipelining_channels_last,
    "resnet_ddp": resnet_ddp,
    GPT_SCENARIO: gpt,
}
