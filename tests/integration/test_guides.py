"""The commands of the guides run as written, apart from sizes and hosts (see guide_pages.py)."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from guide_pages import NOT_RUN, ROOT, SUBSTITUTIONS, commands_of, is_run, made_small
from launchers import free_port
from PIL import Image

pytestmark = pytest.mark.slow

# test_plugin.py runs the commands of plugins.md.
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("README.md", "docs/guide/*.md", "docs/reference/*.md", "docs/development/ci.md")
    for path in ROOT.glob(pattern)
    if path.name != "plugins.md"
)
COMMANDS = {page: commands_of(page) for page in PAGES}
RUN = [
    page for page in PAGES if any(name == "sh" and is_run(text) for name, text in COMMANDS[page])
]
FILES = {"cpp": "model.cpp", "cmake": "CMakeLists.txt"}  # in the folder MINE

# These results exist before the commands of a page.
RESULTS = (
    "stratagem run --model toy --strategy single,pipeline --split-size 8 --repetitions 1"
    " --no-repeat-disturbed --out base.json; tee head.json results.json r.json <base.json >c.json"
)
MODEL = f"python - <<'END'\n{made_small(dict(COMMANDS['docs/guide/own_model.md'])['python'])}END"
BEFORE = {
    "README.md": f"{RESULTS}; {MODEL}",
    "docs/guide/regression_tracking.md": RESULTS,
    "docs/reference/results.md": RESULTS,
}
TRAINED = """
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR
model = torch.nn.ModuleDict({"linear": torch.nn.Linear(20, 1)})
optimizer, steps = torch.optim.SGD(model.parameters()), 32000
"""
# The files and the lines that a page promises.
PROMISED = {
    "docs/guide/quick_start.md": (["results/split_size/report.html"], ["step ms", "speed-up"]),
    "docs/guide/split_size.md": (
        ["results/my_batch/split_size_tradeoff.png"],
        ["fastest: |cannot tell "],
    ),
    "docs/guide/own_model.md": (["resnet18.pt"], ["ddp/my_model.* equal"]),
    "docs/guide/training.md": (["training.jsonl", "kept/best.pt"], [r"stalls: \d+ of \d+ steps"]),
    "docs/guide/regression_tracking.md": (["history", "charts"], ["same"]),
}


def source_tree(folder: Path, build: Path) -> Path:
    """Make a folder in which a page's commands find the source tree, and what the reader has."""
    tree = folder / "tree"
    for place in (tree, tree / "base", tree / "head"):
        place.mkdir(parents=True)
        (place / "stratagem").symlink_to(tree)
        (place / "stratagem.json").write_text(
            '{"model": "mlp", "strategy": ["single", "ddp"], "no_verify": true}'
        )
    (folder / "base").symlink_to(tree / "base")
    (tree / "build").symlink_to(build)
    (tree / "tools").symlink_to(ROOT / "tools")
    (tree / "mine").mkdir()
    for part in ("train", "val", "test"):
        for name in ("rose", "tulip"):
            pictures = tree / "flowers" / part / name
            pictures.mkdir(parents=True)
            for number in range(8):
                Image.new("RGB", (40, 40), (30 * number, 50, 200)).save(pictures / f"{number}.png")
    return tree


def script_of(page: str) -> str:
    """Return the page as a script that prints each command and stops at the first that fails."""
    lines = [
        "set -e",
        'each_rank() { rank=1; eval "$1" & rank=0; eval "$1"; wait $!; }',
        BEFORE.get(page, ""),
    ]
    for language, text in COMMANDS[page]:
        if language == "python":
            before = TRAINED if "state" in text else ""
            lines.append(f"python - <<'END'\n{before}{made_small(text)}END")
        elif language in FILES:
            lines.append(f"cat >\"$MINE/{FILES[language]}\" <<'END'\n{text}END")
        elif language == "sh" and is_run(text):
            lines += [f"echo {shlex.quote('$ ' + made_small(text))}", made_small(text)]
    return "\n".join(lines)


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page(page, commands, tmp_path_factory, request):
    tree = source_tree(tmp_path_factory.mktemp("page"), commands.programs.parent)
    script = script_of(page)
    cluster = request.getfixturevalue("slurm").environment if "sbatch" in script else {}
    path = [str(commands.programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    process = commands.start_command(
        ["bash", "-c", f"cd {tree}; {script}"],
        PATH=os.pathsep.join(path), STRATAGEM_PYTHON=sys.executable,
        PREFIX=str(tree / "prefix"), MINE=str(tree / "mine"), PORT=str(free_port()),
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **cluster,
    )  # fmt: skip
    done = commands.finish(process)
    commands.printed.clear()  # what a page prints is more than one results file
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    files, words = PROMISED.get(page, ([], []))
    assert [name for name in files if not (tree / name).exists()] == []
    assert [pattern for pattern in words if not re.search(pattern, done.stdout + done.stderr)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if "yaml" in dict(COMMANDS[page])])
def test_workflows_are_valid(page, tmp_path):
    file = tmp_path / "workflow.yml"
    for language, text in COMMANDS[page]:
        if language == "yaml":
            file.write_text(text)
            schema = "vendor.github-workflows" if "\njobs:" in text else "vendor.gitlab-ci"
            check = [Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema", schema]
            done = subprocess.run([*check, file], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout


def test_every_entry_of_a_table_is_about_a_command():
    found = [command for commands in COMMANDS.values() for command in commands]
    texts = [text for language, text in found if language in ("sh", "python")]
    beginnings = [one for several in NOT_RUN.values() for one in several]
    assert [one for one in beginnings if not any(text.startswith(one) for text in texts)] == []
    unused = dict(SUBSTITUTIONS)
    for text in filter(is_run, texts):
        for pattern, replacement in SUBSTITUTIONS:
            changed = re.sub(pattern, replacement, text)
            if changed != text:
                unused.pop(pattern, None)
            text = changed
    assert list(unused) == []
