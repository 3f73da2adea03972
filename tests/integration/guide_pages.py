"""Reads the commands of pages: in blocks, in steps of workflows, and in spans with a program."""

from __future__ import annotations

import re
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
PART = re.compile(
    r"<!-- figures: .*?<!-- end -->|^```(?P<language>\w*)\n(?P<block>.*?)^```|`(?P<span>[^`]+)`",
    re.MULTILINE | re.DOTALL,
)
PROGRAM = re.compile(
    r"[A-Z_]+=\S+ \./tools/run|((\./)?(build/bin|tools|\.ci)/\w+|stratagem|bench_\w+|cmake|rsync"
    r"|torchrun) (?!SUBCOMMAND)\S"
)

# A pattern and what replaces it in each command, in this order. Each changes a command of a page.
SUBSTITUTIONS = [
    # The set-up is done.
    (
        r"^\./tools/run$",
        "mkdir -p results/split_size; build/bin/stratagem run --preset cpu"
        " --out results/split_size/results.json",
    ),
    (r"\btools/run( --full)? (?=\w)", "build/bin/stratagem "),
    (r"stratagem (?=bench_)", ""),
    # The reader completes these commands.
    (r"^stratagem (train|run|report|history trend|compare --[\w-]+)$", r"\g<0> --help"),
    (
        r"torchrun --standalone --nproc-per-node 2$",
        r"\g<0> --no-python -- stratagem run --strategy ddp",
    ),
    (r"BASE_BUILD HEAD_BUILD -- RUN_OPTION\.\.\.", "build build -- --strategy single --model toy"),
    (r"--format FORMAT \[NAME\].*", "--format bencher single"),
    (r"LOG \[LOG\.\.\.\]", "training.jsonl"),
    (r"images:FOLDER", "images:flowers"),
    (r"--out FILE", "--out results.json"),
    # Less work.
    (r"--preset (cpu|tutorial)", r"\g<0> --model toy"),
    (r"(?<=run )(.*)--model resnet\d\d( --image-size \d+)?", r"\1--model toy"),
    (r"gpt-small", "gpt-tiny"),
    (r'stratagem"? run (?=--)(?!--help|.*--(model|config))', r"\g<0>--model toy "),
    (
        r'stratagem"? run (?=--)(?!--help|.*--repetitions)',
        r"\g<0>--repetitions 1 --no-repeat-disturbed ",
    ),
    (r"bench_split_size", r"\g<0> --model toy"),
    (r"--image-size 64", "--image-size 32"),
    (
        r"torchvision\.models\.resnet18\(\)",
        "torch.nn.Sequential(OrderedDict(conv=torch.nn.Conv2d("
        "3, 8, 5, 4), pool=torch.nn.AdaptiveAvgPool2d(1), fc=torch.nn.Linear(8, 1000)))",
    ),
    (r"--global-batch-size 64", "--global-batch-size 8"),
    (r"--epochs 30", "--epochs 2"),
    (r"--minutes 60", "--minutes 0.1"),
    # Whatever else this machine does.
    (r"history trend (?=--)", r"\g<0>--metric aten_operators "),
    # One machine without a GPU.
    (r"--device cuda --devices (1|8)", r"--devices \1"),
    (r"--devices 8", "--devices 2"),
    (r"--interface eth0", "--interface lo"),
    (r"hosta,hostb", "localhost:2"),
    (r"hosta|HOST(?= |:)", "localhost"),
    (r"29500|(?<=:)PORT", "$PORT"),
    (r"(?s)^(.*--(?:node-)?rank )[IR]\b(.*)$", r"each_rank '\1$rank\2'"),
    (r"(?s)^#!.*", r"cat >job <<'END'\n\g<0>END\nsbatch --wait job"),
    (r"--nodes=2\n#SBATCH --ntasks-per-node=1", "--nodes=1\n#SBATCH --ntasks-per-node=2"),
]

# Why no test of a page runs a command, and the beginnings of such commands.
NOT_RUN = {
    "builds Stratagem": ("CMAKE_BUILD_PARALLEL_LEVEL=1 ", "tools/run", "../base/tools/run list"),
    "installs packages": ("apt-get ",),
    "needs another host": ("rsync ",),
    "needs root, and test_launchers.py runs it": ("tools/two_hosts ",),
    "needs CUDA, and .ci/run cuda runs it": ("cmake --preset cuda ",),
    "needs another commit or a server": ("git worktree ", "git -C ../base ", "git remote "),
    "runs tests": ("./tools/test", "tools/test ", ".ci/run", "tools/check_mutants "),
    "has a test of its own": ("tools/compare_builds ", "tools/add_to_history "),
}  # fmt: skip


def lines_of(block: str) -> list[str]:
    """Return the commands of a block without comments; a script with a `#!` line is one."""
    if block.startswith("#!"):
        return [block]
    lines = re.sub(r" *\\\n *", " ", block).splitlines()
    return [line for text in lines if (line := re.sub(r"(^|  +)# .*", "", text))]


def steps_of(workflow: str) -> list[str]:
    """Return the commands of a workflow of GitHub or of a pipeline of GitLab."""
    jobs = YAML(typ="safe").load(workflow)
    steps = [
        step["run"]
        for job in jobs.get("jobs", {}).values()
        for step in job["steps"]
        if "run" in step
    ]
    for job in jobs.values():
        steps += (
            [*job.get("before_script", []), *job.get("script", [])] if isinstance(job, dict) else []
        )
    return steps


def commands_of(page: str) -> list[tuple[str, str]]:
    """Return (language, text) of each command, workflow and other block, in order."""
    found = []
    for part in PART.finditer((ROOT / page).read_text(encoding="utf-8")):
        span = " ".join((part["span"] or "").split())
        language, block = part["language"] or "sh", part["block"] or ""
        if PROGRAM.match(span):
            found.append(("sh", span))
        elif language == "sh":
            found += [("sh", line) for line in lines_of(block)]
        elif language == "yaml":
            found += [("yaml", block), *(("sh", step) for step in steps_of(block))]
        elif language != "text":
            found.append((language, block))
    return found


def made_small(command: str) -> str:
    """Return what a test runs instead of the command."""
    for pattern, replacement in SUBSTITUTIONS:
        command = re.sub(pattern, replacement, command)
    return command


def is_run(command: str) -> bool:
    """Return whether a test runs the command."""
    return not any(command.startswith(beginnings) for beginnings in NOT_RUN.values())
