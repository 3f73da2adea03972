"""The set-up scripts without a network: on a scratch tree, with stub programs first on PATH."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [
    "tools/run", "tools/test", "tools/check_format", "tools/check_google_benchmark",
    "tools/check_tidy", "tools/gpu_check",
]  # fmt: skip
ALL_INSTALLED = 'printf installed'
NONE_INSTALLED = 'exit 1'


class Tree:
    """A copy of the scripts in a folder of its own, and the stubs that its calls meet."""

    def __init__(self, folder: Path):
        self.root = folder / "tree"
        self.stubs = folder / "stubs"
        self.calls = folder / "calls"
        self.stubs.mkdir(parents=True)
        self.calls.touch()
        shutil.copytree(ROOT / "tools" / "setup", self.root / "tools" / "setup")
        for script in SCRIPTS:
            shutil.copy(ROOT / script, self.root / script)
        shutil.copy(ROOT / "CMakePresets.json", self.root)
        self.stub("dpkg-query", ALL_INSTALLED)
        self.stub("nvidia-smi", "exit 9")
        self.stub("apt-get", "exit 100")
        self.stub("sudo", "exit 1")
        self.stub("cmake", "mkdir -p build; touch build/build.ninja")
        self.stub("ninja", "exit 0")

    def stub(self, name: str, body: str) -> None:
        """A program that notes its arguments and then does `body`."""
        self.program(self.stubs / name, f'echo "{name} $*" >>"{self.calls}"\n{body}')

    @staticmethod
    def program(path: Path, body: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def make_environment(self) -> None:
        """An environment whose pip only notes its calls, and what the wheel would declare."""
        self.program(self.root / ".venv/bin/pip", f'echo "pip $*" >>"{self.calls}"')
        self.program(self.root / ".venv/bin/python", "echo nvidia-cuda-runtime==13.0.96")

    def make_command(self, body: str) -> None:
        self.program(
            self.root / "build/bin/stratagem", f'echo "stratagem $*" >>"{self.calls}"\n{body}'
        )

    def run(self, script: str, *arguments: str, cwd: Path | None = None, **environment: str):
        """Runs a script of the tree with the stubs before everything else on PATH."""
        path = f"{self.stubs}:{os.environ['PATH']}"
        return subprocess.run(
            [self.root / script, *arguments],
            cwd=cwd or self.root,
            env={**os.environ, "PATH": path, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def calls_of(self, program: str) -> list[str]:
        lines = self.calls.read_text().splitlines()
        return [line for line in lines if line.split()[0] == program]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def ready(tree: Tree) -> Tree:
    tree.make_environment()
    tree.make_command("exit 0")
    return tree


def wanted_packages() -> set[str]:
    lines = (ROOT / "tools/setup/packages-run.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


@pytest.mark.parametrize("script", [*SCRIPTS, ".ci/run"])
def test_help_is_the_script_s_own_and_sets_nothing_up(script: str) -> None:
    result = subprocess.run(
        [ROOT / script, "--help"], capture_output=True, text=True, timeout=30, check=True
    )
    assert f"  {script}" in result.stdout
    assert "set -euo" not in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("script", [*SCRIPTS, ".ci/run"])
def test_unknown_option_is_one_line_and_exit_2(script: str) -> None:
    result = subprocess.run([ROOT / script, "--nonsense"], capture_output=True, text=True, timeout=30)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith(f"{script}: unknown")
    assert "--nonsense" in result.stderr


@pytest.mark.parametrize("option", ["--torch", "--index-url"])
def test_option_without_its_value(tree: Tree, option: str) -> None:
    result = tree.run("tools/run", option)
    assert result.returncode == 2
    assert result.stderr == f"tools/run: {option} needs a value\n"


def test_ci_runs_every_test(tree: Tree) -> None:
    result = tree.run("tools/test", "--quick", CI="true")
    assert result.returncode == 2
    assert result.stderr == "tools/test: --quick: not with CI=true, which runs every test\n"
    assert not tree.calls.read_text()


def test_without_root_names_exactly_what_is_missing(tree: Tree) -> None:
    tree.stub("id", "echo 1000")
    tree.stub("dpkg-query", 'case "${@: -1}" in cmake | libgloo-dev) exit 1 ;; esac; printf installed')
    result = tree.run("tools/run")
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "missing packages: cmake libgloo-dev;" in result.stderr
    assert "apt-get update && apt-get install --yes cmake libgloo-dev" in result.stderr
    assert tree.calls_of("apt-get") == []


def test_without_root_lists_every_package_of_a_bare_machine(tree: Tree) -> None:
    tree.stub("id", "echo 1000")
    tree.stub("dpkg-query", NONE_INSTALLED)
    listed = re.search("missing packages: ([^;]*);", tree.run("tools/run").stderr)
    assert set(listed[1].split()) == wanted_packages()


def test_a_removed_package_counts_as_missing(tree: Tree) -> None:
    tree.stub("id", "echo 1000")
    tree.stub("dpkg-query", "printf config-files")
    assert "missing packages: ccache" in tree.run("tools/run").stderr


def test_as_root_installs_what_is_missing_and_nothing_else(ready: Tree) -> None:
    ready.stub("id", "echo 0")
    ready.stub("dpkg-query", '[[ ${@: -1} != cmake ]] && printf installed')
    ready.stub("apt-get", "exit 0")
    assert ready.run("tools/run", "list").returncode == 0
    update, install = ready.calls_of("apt-get")
    assert update.endswith(" update")
    assert install.endswith(" install --yes --no-install-recommends cmake")
    assert ready.calls_of("sudo") == []


def test_apt_goes_through_sudo_where_it_needs_no_password(ready: Tree) -> None:
    ready.stub("id", "echo 1000")
    ready.stub("sudo", '[[ $1 == -n ]] || exec "$@"')
    ready.stub("dpkg-query", '[[ ${@: -1} != cmake ]] && printf installed')
    ready.stub("apt-get", "exit 0")
    assert ready.run("tools/run", "list").returncode == 0
    assert len(ready.calls_of("apt-get")) == 2


def test_apt_without_network_is_one_clear_line(tree: Tree) -> None:
    tree.stub("id", "echo 0")
    tree.stub("dpkg-query", NONE_INSTALLED)
    result = tree.run("tools/run")
    assert result.returncode == 2
    assert "apt-get update failed: is there a network? missing: ccache cmake" in result.stderr


def test_installed_packages_leave_apt_alone(ready: Tree) -> None:
    assert ready.run("tools/run", "list").returncode == 0
    assert ready.calls_of("apt-get") == []


def test_no_apt_option_does_not_look_at_packages(ready: Tree) -> None:
    ready.stub("dpkg-query", NONE_INSTALLED)
    assert ready.run("tools/run", "--no-apt", "list").returncode == 0
    assert ready.calls_of("dpkg-query") == []


def test_second_run_installs_and_configures_nothing(ready: Tree) -> None:
    ready.run("tools/run", "list")
    assert len(ready.calls_of("pip")) >= 2
    assert all("--no-warn-conflicts" in call for call in ready.calls_of("pip"))
    assert any("--preset release" in call for call in ready.calls_of("cmake"))
    ready.calls.write_text("")
    result = ready.run("tools/run", "list")
    assert result.returncode == 0
    assert ready.calls_of("pip") == []
    assert not any("--preset" in call for call in ready.calls_of("cmake"))
    assert result.stdout == ""


def test_a_changed_requirement_list_is_installed_anew(ready: Tree) -> None:
    ready.run("tools/run", "list")
    ready.calls.write_text("")
    with (ready.root / "tools/setup/requirements-run.txt").open("a") as requirements:
        requirements.write("another==1.0\n")
    ready.run("tools/run", "list")
    calls = ready.calls_of("pip")
    assert [call.rsplit("/", 1)[-1] for call in calls] == [
        "requirements-run.txt", "requirements-run-alone.txt"
    ]  # fmt: skip
    assert "--no-deps" in calls[1] and "--no-deps" not in calls[0]


def test_a_failed_install_is_tried_again(ready: Tree) -> None:
    Tree.program(ready.root / ".venv/bin/pip", "exit 1")
    result = ready.run("tools/run", "list")
    assert result.returncode == 2
    assert "pip could not install" in result.stderr
    assert ready.calls_of("stratagem") == []
    Tree.program(ready.root / ".venv/bin/pip", f'echo "pip $*" >>"{ready.calls}"')
    assert ready.run("tools/run", "list").returncode == 0
    assert any("torch==" in call for call in ready.calls_of("pip"))


def test_lean_by_default_and_full_on_request(ready: Tree) -> None:
    ready.run("tools/run", "list")
    assert "--no-deps torch==" in ready.calls_of("pip")[0]
    ready.calls.write_text("")
    ready.run("tools/run", "--full", "list")
    (full,) = ready.calls_of("pip")
    assert "torch==" in full and "--no-deps" not in full
    ready.calls.write_text("")
    ready.run("tools/run", "list")
    assert ready.calls_of("pip") == []


def test_another_torch_is_installed_and_the_build_configured_anew(ready: Tree) -> None:
    ready.run("tools/run", "list")
    cache = ready.root / "build/CMakeCache.txt"
    cache.touch()
    ready.calls.write_text("")
    ready.run("tools/run", "--torch", "2.12.1", "--index-url", "https://wheels.example/simple", "list")
    assert "--index-url https://wheels.example/simple torch==2.12.1" in ready.calls_of("pip")[0]
    assert any("--preset release" in call for call in ready.calls_of("cmake"))
    assert not cache.exists()


def test_a_cache_that_someone_configured_is_kept(ready: Tree) -> None:
    cache = ready.root / "build/CMakeCache.txt"
    cache.touch()
    (ready.root / "build/build.ninja").touch()
    ready.run("tools/run", "list")
    assert cache.exists()


def test_a_gpu_asks_for_the_full_wheel_and_a_cuda_build(ready: Tree) -> None:
    ready.stub("nvidia-smi", "echo 'GPU 0: Some Model (UUID: 1)'")
    ready.run("tools/run", "list")
    assert "--no-deps" not in ready.calls_of("pip")[0]
    assert any("-DSTRATAGEM_CUDA=ON" in call for call in ready.calls_of("cmake"))


def test_arguments_and_exit_code_pass_through_from_the_caller_s_folder(ready: Tree) -> None:
    ready.make_command("pwd; exit 3")
    elsewhere = ready.root / "tools"
    result = ready.run("tools/run", "run", "--out", "a file", cwd=elsewhere)
    assert result.returncode == 3
    assert result.stdout == f"{elsewhere}\n"
    assert ready.calls_of("stratagem") == ["stratagem run --out a file"]


def test_a_benchmark_program_is_built_and_run(ready: Tree) -> None:
    Tree.program(ready.root / "build/bin/bench_split_size", 'echo "bench $*"')
    result = ready.run("tools/run", "bench_split_size", "--benchmark_list_tests")
    assert result.stdout == "bench --benchmark_list_tests\n"
    assert any(call.endswith("--target bench_split_size") for call in ready.calls_of("cmake"))


def test_the_first_command_builds_only_what_it_runs(ready: Tree) -> None:
    ready.make_command("exit 0")
    ready.run("tools/run")
    (built,) = [call for call in ready.calls_of("cmake") if "--target" in call]
    assert built.partition("--target ")[2].split() == ["stratagem"]


MAIN_JOB_COMMAND = """
folder=results/split_size
case $1 in
  run) echo '{}' >"${@: -1}"; exit ${RUN_STATUS:-0} ;;
  report) touch "$folder/report.html"; exit ${REPORT_STATUS:-0} ;;
esac
"""


@pytest.mark.parametrize(("gpus", "preset"), [
    (0, "--preset cpu"), (1, "--preset cpu"), (2, "--preset tutorial --device cuda"),
])
def test_main_job_measures_then_reports(ready: Tree, gpus: int, preset: str) -> None:
    ready.stub("nvidia-smi", f"for i in {' '.join(map(str, range(gpus)))}; do echo GPU $i: x; done")
    ready.make_command(MAIN_JOB_COMMAND)
    result = ready.run("tools/run", cwd=ready.root / "tools")
    assert result.returncode == 0
    assert ready.calls_of("stratagem") == [
        f"stratagem run {preset} --out results/split_size/results.json",
        "stratagem report results/split_size/results.json --out-dir results/split_size",
    ]
    assert "Files in results/split_size:\n  report.html\n  results.json\n" in result.stdout


@pytest.mark.parametrize(("run", "report", "expected", "reported"), [
    (1, 0, 1, True), (4, 0, 4, True), (0, 2, 2, True), (2, 0, 2, False), (130, 0, 130, False),
])
def test_main_job_s_exit_code(ready: Tree, run: int, report: int, expected: int, reported: bool):
    ready.make_command(MAIN_JOB_COMMAND)
    result = ready.run("tools/run", RUN_STATUS=str(run), REPORT_STATUS=str(report))
    assert result.returncode == expected
    assert (len(ready.calls_of("stratagem")) == 2) == reported


def test_a_second_set_up_waits_for_the_first(ready: Tree) -> None:
    with open("/dev/null") as nothing, subprocess.Popen(
        ["flock", ready.root / "tools/setup", "sh", "-c", "echo held; read line"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=nothing, text=True,
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with subprocess.Popen(
            [ready.root / "tools/run", "list"], stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PATH": f"{ready.stubs}:{os.environ['PATH']}"},
        ) as second:
            assert "waiting for another set-up" in second.stderr.readline()
            holder.communicate("\n", timeout=30)
            assert second.wait(timeout=60) == 0


def test_gpu_check_refuses_a_machine_without_a_gpu(tree: Tree) -> None:
    result = tree.run("tools/gpu_check")
    assert result.returncode == 2
    assert result.stderr == (
        "tools/gpu_check: no GPU here: nvidia-smi lists none; --rehearse tries the script on CPU "
        "devices\n"
    )
