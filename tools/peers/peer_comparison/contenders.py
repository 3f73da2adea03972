"""Makes contenders: a row of `stratagem run`, or a PyTorch peer with and without the allocator."""

import ctypes.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from torch_peers.placement import RANKED

from peer_comparison.contender import (
    ALLOCATOR_LIBRARY,
    ALLOCATOR_SETTINGS,
    AS_INSTALLED,
    Contender,
    Launchable,
    parse_benchmark,
    parse_peer,
    parse_stratagem,
    parse_training,
)
from peer_comparison.ratios import Ratio

PEERS = Path(__file__).resolve().parent.parent
ROOT = PEERS.parent.parent
JOBS = {
    "resnet50": "--loss mse --optimizer sgd --momentum 0",
    "gpt-small": "--optimizer adamw",
    "gpt-long": "--optimizer adamw",
    "gpt-tiny": "--optimizer adamw",
    "llama-small": "--optimizer adamw",
    "llama-tiny": "--optimizer adamw",
}
# Strategies that use all devices from one process, unless --ranks sets another number.
ONE_PROCESS = ("single", "data_parallel", "model_parallel", "pipeline")


@dataclass(frozen=True)
class Settings:
    """The work that all contenders of a scenario do."""

    batch: int = 48
    image: int = 128
    steps: int = 2
    seed: int = 1
    splits: tuple[int, ...] = (24, 16, 12, 8)
    cuts: tuple[str, ...] = ("layer3",)
    stratagem: Path = ROOT / "build" / "bin" / "stratagem"
    device: str = "cpu"  # or cuda
    devices: int = 2  # 2 in scenarios without --devices
    gpus: int = 0  # visible GPUs
    cable: str | None = None  # its rate if the ranks are on two hosts
    workload: Path = Path("workload.pt")  # exported initial state and batches

    @property
    def matmuls(self) -> tuple[str, ...]:
        """Return the kinds of float32 matrix products of a peer, which are choices of --matmul."""
        return ("installed", "onednn") if self.device == "cpu" else ("installed",)

    @property
    def shares_gpus(self) -> bool:
        """Return whether there are fewer GPUs than devices."""
        return self.device == "cuda" and self.devices > self.gpus


@dataclass(frozen=True)
class Scenario:
    """Contenders, and the ratios between their step times."""

    contenders: tuple[Contender, ...]
    ratios: tuple[Ratio, ...]
    work: str = ""  # a description, if the settings do not describe it


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


@cache
def visible_gpus() -> int:
    """Return how many GPUs the peers' PyTorch sees; 0 without PyTorch."""
    command = [peer_python(), "-c", "import torch; print(torch.cuda.device_count())"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return int(found.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def commit_of(program: Path) -> str:
    """Return the commit of an executable's build, or an empty string if it prints none."""
    try:
        found = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.partition("(")[2].partition(",")[0]


def _options(values: dict[str, object]) -> tuple[str, ...]:
    return tuple(text for key, value in values.items() for text in (key, str(value)))


def work_of(model: str, settings: Settings) -> tuple[str, ...]:
    """Return Stratagem's options for the scenario's work; every strategy has the same."""
    images = {"--image-size": settings.image} if model == "resnet50" else {}
    values = {"--model": model, "--global-batch-size": settings.batch, **images}
    values |= {"--learning-rate": 0.001, "--seed": settings.seed}
    return (*_options(values), *JOBS[model].split())


def row_of_peer(model: str, options: str, settings: Settings) -> tuple[str, ...]:
    """Return the options of the row that takes the same steps as train.py with `options`.

    Both normalise the same samples together, compute in the same format, and keep the running
    statistics of the same rank.
    """
    strategy, *words = options.split()
    replicas = strategy in ("ddp", "zero1", "fsdp") or (
        strategy == "data_parallel" and settings.device != "cpu"
    )
    if replicas:
        return (*work_of(model, settings), "--strategy", "ddp", "--devices", str(settings.devices))
    row = (*work_of(model, settings), "--strategy", "single")
    if strategy == "pipelining":
        parts = settings.batch // _value(words, "--split-size")
        return (*row, "--accumulation-steps", str(parts))
    if strategy == "autocast":
        return (*row, "--mixed-precision", words[words.index("--format") + 1])
    return row


def torch_peer(name: str, model: str, options: str, settings: Settings) -> list[Contender]:
    """Return two contenders that run train.py: as installed, and with the allocator.

    On GPUs it returns only the first, because the allocator does not manage their memory.
    """
    work = {
        "--model": model,
        "--batch": settings.batch,
        "--image": settings.image,
        "--steps": settings.steps,
        "--device": settings.device,
        "--devices": settings.devices,
        "--workload": settings.workload,
        "--evidence": "{out}",
    }
    ranks = settings.devices if options.split()[0] in RANKED else 1
    made = [
        replace(contender, ranks=ranks, row=row_of_peer(model, options, settings))
        for contender in peer_program(name, "train.py", *options.split(), *_options(work))
    ]
    return made if settings.device == "cpu" else made[:1]


# Tuned variants of PyTorch's DDP and FSDP2: a part of the name, and options of train.py.
DDP_VARIANTS = {
    "bucket:5": "--bucket-mb 5",
    "bucket:100": "--bucket-mb 100",
    "static_graph": "--static-graph",
}
FSDP_VARIANTS = {"blocks": "--wrap blocks"}


def variants_of(
    name: str, model: str, options: str, variants: Mapping[str, str], settings: Settings
) -> list[Contender]:
    """Return the tuned variants of a peer; on CPUs, only with the allocator."""
    return [
        torch_peer(f"{name}/{part}", model, f"{options} {extra}", settings)[-1]
        for part, extra in variants.items()
    ]


def peer_program(name: str, program: str, *arguments: str) -> list[Contender]:
    """Return two contenders that run a program: as installed, and with the allocator.

    The program is in the folder of train.py. A contender with --compile is launched once before the
    rounds, to fill the compiler's cache.
    """
    command = (peer_python(), str(PEERS / program), *arguments)
    preload = {"LD_PRELOAD": ctypes.util.find_library(ALLOCATOR_LIBRARY), **ALLOCATOR_SETTINGS}
    installed = Launchable(command, AS_INSTALLED, parse_peer("system"))
    preloaded = Launchable(command, {**AS_INSTALLED, **preload}, parse_peer(ALLOCATOR_LIBRARY))
    compiled = "--compile" in command
    return [
        Contender(f"torch/{name}{end}", timed, timed if compiled else None, _why_no_peer(bool(end)))
        for end, timed in (("", installed), ("/allocator", preloaded))
    ]


def stratagem_row(name: str, model: str, options: str, settings: Settings) -> Contender:
    """Return the contender of one row of `stratagem run`, verified once before the rounds."""
    how = {
        "--device": settings.device,
        **({"--cores-per-device": 1} if settings.device == "cpu" else {"--tf32": "off"}),
        "--repetitions": 1,
        "--out": "{out}",
    }
    chosen = tuple(options.split())
    strategy = chosen[chosen.index("--strategy") + 1]
    once = ("--no-predict", "--no-repeat-disturbed")
    work = work_of(model, settings)
    command = (str(settings.stratagem), "run", *once, *work, *_options(how), *chosen)
    timed, short = (
        Launchable((*command, "--steps", str(steps)), AS_INSTALLED, parse_stratagem(strategy))
        for steps in (settings.steps, 1)
    )
    return Contender(
        f"stratagem/{name}",
        timed,
        short,
        _why_not_built(settings.stratagem),
        _ranks_of(strategy, chosen),
    )


def _ranks_of(strategy: str, words: Sequence[str]) -> int:
    """Return the number of processes of a row with these options."""
    by_default = 1 if strategy in ONE_PROCESS else _value(words, "--devices")
    return _value(words, "--ranks", by_default)


def _value(words: Sequence[str], option: str, default: int = 1) -> int:
    return int(words[words.index(option) + 1]) if option in words else default


def stratagem_training(name: str, options: str, settings: Settings) -> Contender:
    """Return the contender of a training by `stratagem train`, verified before the rounds."""
    command = (str(settings.stratagem), "train", "--quiet", *options.split(), "--out", "{out}")
    command = (*command, "--seed", str(settings.seed))
    return Contender(
        f"stratagem/{name}",
        Launchable((*command, "--no-verify"), AS_INSTALLED, parse_training),
        Launchable(command, AS_INSTALLED, parse_training),
        _why_not_built(settings.stratagem),
    )


def stratagem_benchmark(name: str, row: str, settings: Settings) -> Contender:
    """Return the contender of one row of a benchmark program; `row` is PROGRAM:ROW.

    The program is in the folder of the executable.
    """
    program, _, wanted = row.partition(":")
    path = settings.stratagem.parent / program
    command = (str(path), f"--benchmark_filter=^{wanted}$", "--benchmark_format=json")
    launchable = Launchable(command, AS_INSTALLED, parse_benchmark)
    return Contender(f"stratagem/{name}", launchable, None, _why_not_built(path))


def _why_not_built(program: Path) -> str | None:
    return None if program.exists() else f"{program} is not built"


def names(
    contenders: Sequence[Contender], allocator: bool | None = None, part: str = ""
) -> tuple[str, ...]:
    """Return the names of contenders.

    `allocator` selects contenders with (True) or without (False) the allocator. `part` selects
    names that have this part between slashes.
    """
    return tuple(
        name
        for name in (contender.name for contender in contenders)
        if (allocator is None or name.endswith("/allocator") == allocator)
        and (not part or part in name.split("/"))
    )
