"""The sections as data: their commands on a machine, and notes on shortened work."""

import sys
from dataclasses import dataclass

from gpu_sections.figures import Reader, against, as_printed, nothing, of_tests
from gpu_sections.machine import CABLE, Machine, cpus

NEED_FOUR_DEVICES = ("ddp_model_parallel",)
REHEARSED = "Rehearsed on CPU devices, at sizes whose times say nothing."


@dataclass(frozen=True)
class Command:
    """A command that runs in the root of the tree, and the reader of its output."""

    words: tuple[str, ...]
    read: Reader = as_printed


@dataclass(frozen=True)
class Section:
    """Commands with one verdict. `share` is the weight of the section in sharing the time."""

    key: str
    title: str
    share: float
    commands: tuple[Command, ...]
    notes: tuple[str, ...] = ()
    left_out: str = ""  # the reason if nothing runs


def _devices(machine: Machine, count: int) -> list[str]:
    """Return the options of a job on `count` devices."""
    options = ["--device", machine.device, "--devices", str(count)]
    if machine.shared:
        options += ["--device-ids", "+".join(["0"] * count)]
    if machine.rehearsal and cpus() < count:
        options.append("--oversubscribe")
    return options


def _conformance(machine: Machine) -> Section:
    groups = "--gtest_filter=*Conformance*:NcclGroup*"
    return Section(
        "conformance",
        "Devices and process groups",
        2,
        (
            Command((machine.program("device_test"),), of_tests),
            Command((machine.program("unit_tests_torch"), groups), of_tests),
        ),
    )


def _verify(machine: Machine) -> Section:
    models, schedules = "gpt-tiny,resnet18", "1f1b,zb_v"
    families = "two families of models"
    if machine.rehearsal:
        models, schedules, families = "toy", "1f1b", "one small model"
    words = [machine.program("stratagem"), "verify", "--device", machine.device]
    words += ["--model", models, "--schedule", schedules]
    notes = (f"Shortened: {families}, and of schedules {schedules} alone.",)
    return Section(
        "verify", "Every strategy against its oracle", 5, (Command(tuple(words)),), notes
    )


def _tutorial(machine: Machine) -> Section:
    results = machine.out / "tutorial.json"
    run = [machine.program("stratagem"), "run", "--preset", "tutorial", *_devices(machine, 2)]
    run += ["--no-verify", "--no-predict", "--no-repeat-disturbed", "--out", str(results)]
    if machine.rehearsal:
        run += "--model resnet18 --global-batch-size 4 --image-size 32 --split-size 2".split()
        run += "--repetitions 1 --steps 1".split()
        notes = ("ResNet-18, batch 4, 32x32, one batch a call, one repeat, 1 of 9 split sizes.",)
    else:
        run += "--split-size 5,12,20,60 --repetitions 3".split()
        notes = (
            "Shortened: 4 of its 9 split sizes, 3 of its 10 repeats; rows not verified again.",
        )
    report = (machine.program("stratagem"), "report", str(results))
    charts = ("--out-dir", str(machine.out / "tutorial"))
    return Section(
        "tutorial",
        "The tutorial's protocol",
        2,
        (Command(tuple(run)), Command((*report, *charts), nothing)),
        notes,
    )


def _strategies(machine: Machine) -> Section:
    count = machine.devices
    names = ["single", "data_parallel", "ddp", "model_parallel", "pipeline"]
    names += ["tensor_parallel", "sequence_parallel"]
    notes = ["Rows not verified again, and not predicted."]
    if count >= 4:
        names += NEED_FOUR_DEVICES
    else:
        notes.append(f"{', '.join(NEED_FOUR_DEVICES)} left out: four devices.")
    model = "gpt-tiny" if machine.rehearsal else "gpt-small"
    run = [machine.program("stratagem"), "run", "--strategy", ",".join(names), "--model", model]
    run += [*_devices(machine, count), "--no-verify", "--no-predict", "--no-repeat-disturbed"]
    run += ["--global-batch-size", str(8 * count), "--split-size", "4", "--optimizer", "adamw"]
    run += ["--out", str(machine.out / "strategies.json")]
    run += "--steps 1 --repetitions 1".split() if machine.rehearsal else "--repetitions 2".split()
    if machine.shared:
        run += ["--backend", "gloo"]
        notes.append("The devices share one GPU, and ranks talk by Gloo: no times of a machine.")
    return Section(
        "strategies", "Every strategy in one table", 3, (Command(tuple(run)),), tuple(notes)
    )


def _collectives(machine: Machine) -> Section:
    key, title = "collectives", "Collectives against the link"
    if machine.shared:
        why = "one GPU: two ranks of NCCL need two"
        return Section(key, title, 0, (), left_out=why)
    program, out = machine.program("bench_collectives"), machine.out / "collectives.json"
    if machine.rehearsal:
        words = [program, "--min-bytes", "16M", "--max-bytes", "16M", "--repetitions", "1"]
        if machine.link.gb_per_s:
            words = [*CABLE, *words]
    else:
        words = [program, "--device", "cuda", "--step-factor", "16", "--repetitions", "2"]
    words += ["--collectives", "all_reduce,send", "--out", str(out)]
    pair = Command(tuple(words), against(machine.link, out))
    if machine.gpus <= 2:
        return Section(key, title, 2, (pair,))
    many = (program, "--device", "cuda", "--ranks", str(machine.gpus), "--min-bytes", "1M")
    chosen = ("--collectives", "all_reduce,all_gather,reduce_scatter,all_to_all")
    sizes = ("--step-factor", "16", "--repetitions", "1")
    notes = ("First of two GPUs, then of all.",)
    return Section(key, title, 2, (pair, Command((*many, *chosen, *sizes))), notes)


def _peers(machine: Machine) -> Section:
    count = machine.devices
    words = [sys.executable, "tools/peers/compare", "--scenario", "every_way"]
    words += ["--device", machine.device, "--devices", str(count)]
    words += ["--stratagem", machine.program("stratagem"), "--out", str(machine.out / "peers.json")]
    notes = ["Images in channels_last on both sides, nothing compiled."]
    if machine.rehearsal:
        words += "--batch 4 --image 64 --splits 2 --rounds 1 --steps 1".split()
        words += ["--only", "/single$"]
        notes.append("One round of one way, without the allocator.")
    else:
        words += ["--batch", str(32 * count), "--splits", "16", "--rounds", "2", "--steps", "5"]
        notes.append("Two rounds: too few for a verdict.")
    if machine.shared:
        notes.append(
            "The devices share one GPU. torch/data_parallel and torch/pipelining left out: Gloo"
            " sends no tensors of GPUs, and nn.DataParallel has a GPU for each replica."
        )
    title = "PyTorch on the same devices"
    return Section("peers", title, 5, (Command(tuple(words)),), tuple(notes))


def sections_of(machine: Machine) -> list[Section]:
    """Return the sections in their order."""
    made = (_conformance, _verify, _tutorial, _strategies, _collectives, _peers)
    return [make(machine) for make in made]
