"""The table "What changes when" of docs/development/architecture.md.

Where one variant of a kind is named in as few files as the table says, no list of all of them has to
be extended for the next one.
"""

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = ("bench", "models", "reports", "strategies", "tools/stratagem", "tools/stratagem_torch", "training")
# Display names and colours: a variant without them is shown by its own name.
OPTIONAL = {
    "reports/stratagem_reports/analysis/labels.py",
    "reports/stratagem_reports/charts/theme.py",
}
# Where rows are chosen: defaults, presets, benchmark programs.
CHOOSERS = re.compile(
    r"bench/(programs/|config/(presets|training_presets)\.|config/(config|config_file|options)\.h$)"
    r"|models/workload\.h$|strategies/options\.h$|tools/stratagem(_torch)?/(simulate|verify)\.cpp$"
)
# Names that mean something to others, and to whom.
MEANT_BY = {
    # The baseline of every table, and the row that uses all the job's cores.
    "single": r"reports/(row_comparison|verdict)\.cpp$|bench/(config/grid|launch/rendezvous)\.cpp$",
    # Also a dimension of the mesh.
    "pipeline": r"strategies/(ranks/mesh|presets/\w+)\.cpp$|strategies/registry\.h$|bench/|tools/",
    # Also a schedule of the learning rate.
    "linear": r"training/options\.cpp$",
    # What each kind of model is trained on unless the user names a set; and words of their own.
    "images": r"bench/config/training_data\.cpp$",
    "random": r"bench/|models/datasets/dataset\.h$",
    "shapes": r"bench/config/training_data\.cpp$",
    "text": r"bench/",
    # Also what a model takes; and the set that --token-dtype is for.
    "tokens": r"bench/config/|training/loop/batch_maker\.cpp$",
    # The one strategy with a schedule of its own says its name.
    "data_parallel": r"strategies/schedules/data_parallel_schedule\.cpp$",
    # The order without overlap of stages, which presets of one stage run.
    "naive": r"strategies/plan\.h$|strategies/presets/\w+\.cpp$",
}
REGISTRATIONS = {
    "strategies/schedules": r'STRATAGEM_REGISTER\(ScheduleEntry\{\s*"(\w+)"',
    "strategies/presets": r'(?:\.name = |tensor_entry\(\s*)"(\w+)"',
    "models/zoo": r'(?:\.name = |_entry\(\s*)"([\w-]+)"',
    "models/datasets": r'\.name = "(\w+)"',
}
COMMENT = {".h": r"(?<!:)//.*", ".cpp": r"(?<!:)//.*", ".py": r"(?m)(?:^|(?<=\s))#.*"}


@functools.cache
def code_files() -> dict[str, str]:
    """The production code by path, without comments."""
    paths = (path for folder in PRODUCTION for path in sorted((ROOT / folder).rglob("*")))
    return {
        str(path.relative_to(ROOT)): re.sub(COMMENT[path.suffix], "", path.read_text("utf-8"))
        for path in paths
        if path.suffix in COMMENT
    }


def files_with(pattern: str, code: dict[str, str]) -> set[str]:
    """The files that name it; a header and its .cpp are one."""
    return {path.rpartition(".")[0] for path, text in code.items()
            if path not in OPTIONAL and re.search(pattern, text)}


def promised(kind: str) -> int:
    """How many files the page says that a new one takes."""
    page = (ROOT / "docs/development/architecture.md").read_text("utf-8")
    return int(re.search(rf"^\| {kind} \|.*\| (\d+) \|$", page, re.MULTILINE)[1])


@pytest.mark.parametrize(("kind", "pattern", "file"), [
    ("a chart", '"breakdown"', "reports/stratagem_reports/charts/breakdown"),
])
def test_a_variant_is_named_in_few_files(kind: str, pattern: str, file: str) -> None:
    found = files_with(pattern, code_files())
    assert file in found
    assert len(found) <= promised(kind), sorted(found)


def options_of_one_reader() -> list[tuple[str, str]]:
    """(name, its table) of the options whose name means nothing else in the code."""
    named = ["bucket_mb", "overlap", "compression", "async", "shard_group_mb", "reduce_dtype",
             "replicas_of_shards", "output_device", "loss_on", "update", "virtual_stages",
             "clip_gradients", "loss_scale", "loss_scale_hysteresis", "cudnn_benchmark"]  # fmt: skip
    tables = {table: code_files()[f"{table}.cpp"] for table in ("strategies/options", "bench/config/config")}
    return [(name, table) for name in named for table, text in tables.items()
            if f'.name = "{name}"' in text]


def files_that_name_an_option(name: str, code: dict[str, str]) -> set[str]:
    """The C++ files in which the option's name is a text."""
    cpp = {path: text for path, text in code.items() if not path.endswith(".py") and not CHOOSERS.match(path)}
    return files_with(f'"{name}"', cpp)


def test_options_are_found_in_their_tables() -> None:
    found = options_of_one_reader()
    assert ("bucket_mb", "strategies/options") in found
    assert ("clip_gradients", "bench/config/config") in found
    assert len(found) == 15


@pytest.mark.parametrize(("name", "table"), options_of_one_reader())
def test_an_option_is_named_by_its_table_alone(name: str, table: str) -> None:
    """The second file is its reader, which takes the member."""
    assert promised("an option") == 2
    assert files_that_name_an_option(name, code_files()) <= {table}


def test_a_list_of_options_is_noticed() -> None:
    code = code_files() | {"bench/worker/check.cpp": 'for (const char* name : {"bucket_mb", "cut"})'}
    assert "bench/worker/check" in files_that_name_an_option("bucket_mb", code)


@pytest.mark.parametrize("kind", ["broadcast", "reduce_gradients"])
def test_a_kind_of_action_is_named_by_who_performs_it(kind: str) -> None:
    """And by the schedules, which order it."""
    named = files_with(rf"\bActionKind::{kind}\b|\bDescription{{{kind}\b", code_files())
    found = {path for path in named if Path(path).name not in {"schedule", "lowering", "sharding"}}
    assert "strategies/schedules/action" in found
    assert len(found) <= promised("a kind of action"), sorted(found)


def test_a_kernel_is_named_by_its_loops_and_its_function() -> None:
    """The fourth file has the include of its loops."""
    kernels = "models/cpu_kernels/kernels"
    cpp = {path: text for path, text in code_files().items() if not path.endswith(".py")}
    found = files_with(r"\bTransposedProductKernels\b", cpp) | files_with("transposed_product_loops", cpp)
    assert found == {f"{kernels}/transposed_product_kernels", f"{kernels}/transposed_product_loops",
                     f"{kernels}/all_loops", "models/cpu_kernels/linear"}
    assert len(found) <= promised("a kernel")


def test_a_benchmark_program_is_one_file() -> None:
    assert promised("a benchmark program") == 1
    assert (ROOT / "bench/programs/bench_batch_norm.cpp").is_file()
    found = files_with(r"\bbench_batch_norm\b", code_files())
    assert found <= {"bench/programs/bench_batch_norm"}, sorted(found)


def variants() -> list[tuple[str, str]]:
    """(name, the file that registers it) of every schedule, strategy, model and data set."""
    return [
        (name, path)
        for folder, pattern in REGISTRATIONS.items()
        for path, text in code_files().items()
        if str(Path(path).parent) == folder
        for name in re.findall(pattern, text)
    ]


def others_that_say(name: str, own: str, code: dict[str, str]) -> list[str]:
    """The files beyond those that may in which the name stands as a text of its own."""
    meant = re.compile(MEANT_BY.get(name, r"(?!)"))
    return [
        path
        for path, text in code.items()
        if f'"{name}"' in text and path != own and not path.endswith(".py")
        and not CHOOSERS.match(path) and not meant.match(path)
    ]


def test_every_kind_of_variant_is_found() -> None:
    names = {name for name, _ in variants()}
    assert names >= {"gpipe", "zb_h1", "1f1b", "ddp", "single", "tensor_parallel", "resnet50",
                     "gpt-tiny", "mlp", "mnist"}
    kinds = ("a schedule", "a model", "a data set", "a preset strategy")
    assert [promised(kind) for kind in kinds] == [1, 1, 1, 1]


@pytest.mark.parametrize(("name", "own"), variants())
def test_a_variant_is_one_file(name: str, own: str) -> None:
    assert others_that_say(name, own, code_files()) == []


def test_a_list_of_variants_is_noticed() -> None:
    code = code_files() | {"bench/worker/check.cpp": 'if (config.schedule == "zb_h1") return;'}
    own = "strategies/schedules/zb_h1.cpp"
    assert others_that_say("zb_h1", own, code) == ["bench/worker/check.cpp"]
