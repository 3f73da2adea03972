"""A disk that is full, over a quota or read-only, in each file that the Python commands write.

tests/full_disk.c makes a folder behave so. One line reports it, and no file is half-written.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stratagem_reports.comparison.builds import write_round
from stratagem_reports.results.errors import InputError

TESTS = Path(__file__).resolve().parents[1]
RESULTS = TESTS / "approved" / "measured_results.json"


@pytest.fixture(scope="session")
def shim(tmp_path_factory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: apt install gcc")
    library = tmp_path_factory.mktemp("shim") / "full_disk.so"
    source = TESTS / "full_disk.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def stratagem(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **variables):
    return subprocess.run(
        [sys.executable, "-m", "stratagem_reports", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(TESTS.parent / "reports"), **variables},
        stdout=stdout, stderr=stderr, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("fault", ["ENOSPC", "EDQUOT", "EROFS"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["report", RESULTS, "--format", "csv", "--out-dir"],
        ["compare", RESULTS, RESULTS, "--json"],
        ["history", "add", RESULTS, "--dir"],
        pytest.param(["report", RESULTS, "--out-dir"], marks=pytest.mark.night),
        pytest.param(["compare", RESULTS, RESULTS, "--html"], marks=pytest.mark.night),
    ],
    ids=["csv", "compare", "history", "report", "page"],
)
def test_a_file_that_does_not_fit_is_one_line(shim, tmp_path, fault, arguments):
    full = tmp_path / "full"
    full.mkdir()
    number = getattr(errno, fault)
    target = full / "comparison" if arguments[0] == "compare" else full
    done = stratagem(
        *arguments, target, LD_PRELOAD=str(shim), FULL_DISK_FOLDER=str(full),
        FULL_DISK_ERROR=str(number), FULL_DISK_ROOM="100",
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"{full}: cannot be written: {os.strerror(number)}" in done.stderr
    assert all(not path.stat().st_size for path in full.iterdir()), "only a lock is there"
    if arguments[0] == "compare":
        assert "Method:" in done.stdout, "what was compared is printed all the same"


def test_a_round_that_does_not_fit_leaves_no_part_of_a_line(tmp_path):
    path = tmp_path / "rounds.jsonl"
    write_round(path, {"round": 1})
    whole = path.read_bytes()
    program = f"""
import resource
from pathlib import Path
from stratagem_reports.comparison.builds import write_round
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(whole) + 4}, -1))
write_round(Path({str(path)!r}), {{"round": 2}})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent / "reports")},
    )  # fmt: skip
    assert "cannot be written" in done.stderr
    assert path.read_bytes() == whole


def test_a_round_that_cannot_be_kept_does_not_end_the_comparison(tmp_path, capsys):
    from stratagem_reports.comparison.interleave import _record

    with pytest.raises(InputError):
        write_round(tmp_path, {"round": 3})
    _record(tmp_path, {"round": 3})
    told = capsys.readouterr().err
    assert told.startswith(f"stratagem compare: round 3: --record {tmp_path}: cannot be written")
    assert told.count("\n") == 1


@pytest.mark.parametrize("arguments", [["schema"], ["compare", RESULTS, RESULTS]], ids=str)
def test_an_output_that_takes_nothing_is_one_line(arguments):
    with Path("/dev/full").open("w") as device:
        done = stratagem(*arguments, stdout=device)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "cannot write the standard output: No space left on device" in done.stderr


def test_an_error_that_cannot_be_printed_is_its_exit_code():
    with Path("/dev/full").open("w") as device:
        done = stratagem("history", "show", "--dir", "nowhere", stderr=device)
    assert done.returncode == 2
