"""What tools/gpu_check plans for a machine, and what its page says, with stub programs."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from gpu_sections import figures, links, page, sections  # noqa: E402
from gpu_sections.machine import Machine  # noqa: E402

KEYS = ["conformance", "verify", "tutorial", "strategies", "collectives", "peers"]
TOPOLOGY = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \t{0}\tPIX\t0-15\t0\nGPU1\t{0}\t X \tSYS\t0-15\t0\n"
    "NIC0\tPIX\tSYS\t X \n\nLegend:\n\n  X    = Self\n"
)


def machine(device="cuda", gpus=2, out=Path("out")):
    link = links.Link("12 NVLinks of 25 GB/s", 300.0)
    facts = (("GPUs", "2 x NVIDIA Example"), ("driver", "550"))
    return Machine(device, gpus, Path("bin"), out, link, facts)


def planned(gpus):
    return {each.key: each for each in sections.sections_of(machine(gpus=gpus))}


def words(section):
    return [" ".join(command.words) for command in section.commands]


@pytest.mark.parametrize(("gpus", "devices"), [(1, 2), (2, 2), (3, 2), (7, 4), (8, 8), (16, 8)])
def test_rows_have_a_power_of_two_of_devices(gpus, devices):
    plan = planned(gpus)
    assert [*plan] == KEYS
    assert f"--devices {devices}" in words(plan["strategies"])[0]
    assert f"--devices {devices}" in words(plan["peers"])[0]
    assert "--devices 2" in words(plan["tutorial"])[0]
    left_out = any("ddp_model_parallel left out" in note for note in plan["strategies"].notes)
    assert left_out == (devices < 4)


def test_one_gpu_is_shared_over_gloo_and_what_needs_two_is_left_out_by_name():
    plan = planned(1)
    for key in ("tutorial", "strategies"):
        assert "--device-ids 0+0" in words(plan[key])[0]
    assert words(plan["strategies"])[0].endswith("--backend gloo")
    assert plan["collectives"].commands == () and plan["collectives"].left_out
    assert any("torch/pipelining left out" in note for note in plan["peers"].notes)
    assert not any("--device-ids" in word for key in KEYS for word in words(planned(2)[key]))


def test_collectives_are_of_the_first_two_gpus_and_of_all():
    assert len(planned(2)["collectives"].commands) == 1
    assert "--ranks 4" in words(planned(4)["collectives"])[1]


@pytest.mark.parametrize(("found", "status", "slot", "text", "rate"), [
    ("NV12", "\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n", "", "12 NVLinks of 25 GB/s", 300),
    ("NV4", "", "", "4 NVLinks of unknown rate", None),
    ("PHB", "", "4, 16\n", "PCIe 4 x16 (PHB)", 31.504),
    ("", "", "", "not told, its rate is not known", None),
])  # fmt: skip
def test_a_link_is_what_nvidia_smi_says(found, status, slot, text, rate):
    answers = {"topo": TOPOLOGY.format(found) if found else "", "nvlink": status}
    link = links.between_gpus((0, 1), lambda first, *_: answers.get(first, slot))
    assert (link.text, link.gb_per_s) == (text, pytest.approx(rate) if rate else None)


@pytest.mark.parametrize(("visible", "pair"), [
    (None, (0, 1)), ("2,3,5", (2, 3)), ("1", None), ("GPU-aa,GPU-bb", None),
])  # fmt: skip
def test_the_link_is_that_of_the_gpus_that_may_be_used(visible, pair, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert links.first_two_gpus() == pair


def test_a_bandwidth_above_the_links_own_is_a_failure(write_json):
    def row(size, rate):
        own = {"strategy": "send"}
        return {"run_type": "iteration", "stratagem": own, "bytes": size, "bus_gb_per_s": rate}

    link = links.Link("a cable", 10.0)
    # A short message may be in a buffer.
    good = write_json({"benchmarks": [row(1024, 90.0), row(4096, 9.0), row(4096, 8.0)]})
    found = figures.against(link, good)("the table\n")
    assert found.text == "the table\n\nlink: a cable\nsend of 4096 bytes: 8.5 of 10 GB/s, 85%"
    assert found.complaint is None
    fast = write_json({"benchmarks": [row(4096, 11.5)]}, "fast.json")
    assert figures.against(link, fast)("").complaint == "send: 11.5 GB/s over a link of 10 GB/s"
    assert "no readable results" in figures.against(link, Path("absent.json"))("").complaint


def test_of_a_test_program_the_counts_and_the_failures_are_shown():
    text = (
        "[ RUN      ] A.b\n[  FAILED  ] A.b (3 ms)\n[==========] 9 tests from 2 test suites ran.\n"
        "[  PASSED  ] 6 tests.\n[  SKIPPED ] 2 tests, listed below:\n[  SKIPPED ] A.c\n"
        "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.b\n"
    )
    assert figures.of_tests(text).text.splitlines() == [
        "[  FAILED  ] A.b (3 ms)", "[==========] 9 tests from 2 test suites ran.",
        "[  PASSED  ] 6 tests.", "[  SKIPPED ] 2 tests, listed below:",
        "[  FAILED  ] 1 test, listed below:", "[  FAILED  ] A.b",
    ]  # fmt: skip


def test_the_page_names_no_folder_of_the_machine(tmp_path):
    here = machine(out=tmp_path / "gpu_check")
    section = sections.sections_of(here)[2]
    printed = f"wrote {here.out}/tutorial.json"
    text = page.render(here, [page.Result(section, 3.4, (printed,))], "today")
    assert str(tmp_path) not in text
    assert "$ stratagem run --preset tutorial" in text and "wrote gpu_check/tutorial.json" in text
    assert "| GPUs | 2 x NVIDIA Example |" in text and "Nothing failed." in text


class Programs:
    """Stubs in place of what is built."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir()
        for name in ("stratagem", "device_test", "unit_tests_torch", "bench_collectives"):
            self.set(name, f"echo the figures of {name}")

    def set(self, name: str, body: str) -> None:
        (self.folder / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.folder / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path / "bin")


@pytest.fixture
def gpu_check(programs, tmp_path):
    """Rehearses with the stubs; returns how it ended, and the page."""

    def run(*options):
        done = subprocess.run(
            [ROOT / "tools/gpu_check", "--rehearse", "--programs", programs.folder,
             "--out-dir", tmp_path / "check", *options],
            env={**os.environ, "STRATAGEM_PYTHON": sys.executable},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        written = tmp_path / "check" / "page.md"
        return done, written.read_text(encoding="utf-8") if written.exists() else ""

    return run


def test_it_goes_on_after_a_section_that_failed_and_names_it(programs, gpu_check):
    fails = "echo a table; echo ddp: DIFFERS >&2; exit 1"
    programs.set("stratagem", f'if [ "$1" = verify ]; then {fails}; fi')
    row = {"run_type": "iteration", "stratagem": {"strategy": "send"}, "bytes": 8}
    rows = [{**row, "bus_gb_per_s": 1e-3}]
    programs.set("bench_collectives", f"""
        while [ "$1" != --out ]; do shift; done
        echo the figures of collectives; echo '{json.dumps({"benchmarks": rows})}' >"$2" """)
    done, text = gpu_check("--only", "verify|tutorial|collectives")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("tools/gpu_check: failed: verify; see ")
    assert "Failed: verify." in text
    verdict = "failed: stratagem: exit code 1: ddp: DIFFERS"
    assert f"| Every strategy against its oracle | {verdict} |" in text
    assert re.search(r"\n\$ stratagem verify --device cpu .*\na table\n", text)
    assert "| The tutorial's protocol | passed |" in text
    assert "| Collectives against the link | passed |" in text
    assert "the figures of collectives" in text


def test_a_section_that_hangs_is_ended_with_what_it_printed(programs, gpu_check):
    hangs = "trap '' TERM; echo '[  PASSED  ] 3 tests.'; sleep 100"
    programs.set("device_test", hangs)
    start = time.monotonic()
    done, text = gpu_check("--only", "conformance|verify", "--minutes", "0.05")
    assert time.monotonic() - start < 60, "asked to end, then ended"
    assert done.returncode == 1
    assert "failed: device_test: did not end within 1 s" in text
    assert "[  PASSED  ] 3 tests." in text
    assert "the figures of stratagem" in text


def test_a_program_that_is_not_there_is_named(programs, gpu_check):
    (programs.folder / "device_test").unlink()
    done, text = gpu_check("--only", "conformance")
    assert done.returncode == 1
    assert "failed: device_test: cannot start: No such file or directory" in text


def test_sections_that_there_are_not_are_one_line(gpu_check):
    done, _ = gpu_check("--only", "nothing")
    assert done.returncode == 3
    assert done.stderr == (
        f"tools/gpu_check: --only nothing: matches no section; sections: {', '.join(KEYS)}\n"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--only", "("], "( is not a regular expression"),
        (["--minutes", "-3"], "-3: expected a number above 0"),
        (["--minutes", "x"], "x: expected a number above 0"),
        (["--programs", "/nowhere"], "/nowhere: no such folder"),
        (["--out-dir", "/dev/null/x"], "--out-dir /dev/null/x: cannot be made: Not a directory"),
    ],
)
def test_wrong_options_are_one_line_and_exit_2(programs, gpu_check, options, words):
    done, _ = gpu_check(*options)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and words in done.stderr


def test_the_users_own_packages_stay_on_pythons_path(tmp_path):
    """Python is a script here that prints where it looks for packages."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$PYTHONPATH"\n')
    python.chmod(0o755)
    usual = ["tools", "reports"]
    for own, expected in ((str(tmp_path), [*usual, str(tmp_path)]), ("", usual)):
        done = subprocess.run(
            [ROOT / "tools" / "gpu_check", "--rehearse", "--programs", tmp_path],
            env={**os.environ, "STRATAGEM_PYTHON": str(python), "PYTHONPATH": own},
            capture_output=True,
            text=True,
            check=False,
        )
        places = done.stdout.strip().split(":")
        assert [place.removeprefix(f"{ROOT}/") for place in places] == expected, done.stderr
