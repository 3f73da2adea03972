"""A disk that is full, over a quota or read-only, and a limit on file sizes, in each written file.

Whatever a command writes: one line reports it, no file is half-written, and nothing that was
measured is lost. tests/full_disk.c makes a folder behave so, without a mount.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
ROW = ["--model", "toy", "--global-batch-size", 20, "--no-verify", "--no-predict"]
TRAINING = ["--no-verify", "--model", "linear", "--features", 200, "--outputs", 10, "--targets",
            "real", "--loss", "mse", "--optimizer", "adamw", "--global-batch-size", 8, "--samples",
            80]  # fmt: skip
FAULTS = ("ENOSPC", "EDQUOT", "EROFS", "EFBIG")  # EFBIG by RLIMIT_FSIZE


@pytest.fixture(scope="session")
def shim(tmp_path_factory) -> Path:
    compiler = shutil.which("cc")
    assert compiler, "no C compiler: apt install gcc"
    library = tmp_path_factory.mktemp("shim") / "full_disk.so"
    source = TESTS / "full_disk.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture(params=FAULTS)
def full(request, commands, shim, tmp_path):
    """Runs a command where files of the folder `full` take so many bytes; the reason follows."""
    folder = tmp_path / "full"
    folder.mkdir()
    number = getattr(errno, request.param)

    def run(*arguments, room=0, **variables):
        command = [commands.programs / "stratagem", *arguments]
        if request.param == "EFBIG":
            command = ["prlimit", f"--fsize={max(room, SMALLEST_LIMIT)}", *command]
        else:
            variables |= {"LD_PRELOAD": str(shim), "FULL_DISK_FOLDER": str(folder),
                          "FULL_DISK_ERROR": str(number), "FULL_DISK_ROOM": str(room)}  # fmt: skip
        done = commands.finish(commands.start_command(command, **variables))
        assert "Traceback" not in done.stderr
        expect_whole(folder)
        return done

    run.folder = folder
    run.fault = request.param
    run.reason = os.strerror(number)
    return run


# Files in memory, which hand jobs to workers, count as well.
SMALLEST_LIMIT = 8000


def expect_whole(folder: Path) -> None:
    """Nothing that was written aside is left, and each file that is there can be read to its end."""
    for path in folder.rglob("*"):
        name = path.name
        assert not (name.startswith(".") and name.endswith((".tmp", ".partial"))), name
        if path.suffix in (".partial", ".log", ".jsonl"):
            text = path.read_text(encoding="utf-8")
            assert text.endswith("\n") or not text
            for line in text.splitlines():
                json.loads(line)
        elif path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))


def expect_one_line(done, reason: str, *words: str) -> None:
    told = [line for line in done.stderr.splitlines() if reason in line]
    assert told, done.stderr
    assert all(word in told[-1] for word in words), done.stderr


def test_results_and_the_partial_file(full):
    out = full.folder / "results.json"
    done = full("run", *ROW, "--strategy", "single", "--repetitions", 2, "--out", out)
    assert not out.exists()
    if full.fault == "EROFS":
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        expect_one_line(done, full.reason, str(out))
        return
    assert done.returncode == 4
    expect_one_line(done, full.reason, f"cannot write {out}")
    assert "toy/devices:1/batch:20" in done.stdout, "the table is what is left"


def test_launches_that_the_partial_file_has_are_written_later(full, commands):
    """The results are larger than their launches in the partial file."""
    if full.fault == "EROFS":
        return  # a read-only folder keeps no launches
    out = full.folder / "results.json"
    options = ["run", *ROW, "--strategy", "single", "--repetitions", 1, "--out", out]
    commands.stratagem(*options)
    size = out.stat().st_size
    out.unlink()
    done = full(*options, room=size - 100)
    if full.fault != "EFBIG":  # where each file has that room
        assert "next launch tries again" in done.stderr or "FILE" not in done.stderr
    assert done.returncode == 4
    expect_one_line(done, full.reason, str(out))
    assert not out.exists()


def test_a_trace(full, tmp_path):
    trace = full.folder / "trace.json"
    out = tmp_path / "results.json"
    done = full("run", *ROW, "--strategy", "single", "--repetitions", 1, "--out", out,
                "--trace", trace)  # fmt: skip
    if full.fault == "EFBIG":
        return  # the limit holds for the results as well
    assert done.returncode == (2 if full.fault == "EROFS" else 4)
    expect_one_line(done, full.reason, f"cannot write {trace}")
    assert out.exists() == (full.fault != "EROFS"), "the results are written all the same"


def test_the_cache(full, tmp_path):
    variables = {} if full.fault == "EFBIG" else {"XDG_CACHE_HOME": str(full.folder)}
    done = full("run", *ROW[:-2], "--strategy", "single", "--repetitions", 1, **variables)
    assert done.returncode == 0, done.stderr
    assert "toy/devices:1/batch:20" in done.stdout
    if full.fault != "EFBIG":
        expect_one_line(done, full.reason, "the next run verifies and calibrates again")


def test_the_log_of_a_training(full, tmp_path):
    log, out = full.folder / "training.log", tmp_path / "out.json"
    if full.fault == "EFBIG":
        done = full("train", *TRAINING, "--epochs", 5, "--log", log)
    else:
        done = full("train", *TRAINING, "--epochs", 3, "--log", log, "--out", out, room=2000)
    if full.fault == "EROFS":
        assert done.returncode == 2
        expect_one_line(done, full.reason, str(log))
        return
    assert done.returncode == 4
    expect_one_line(done, full.reason, f"cannot write {log}", "lines are missing")
    assert "step 10, the last of" in done.stdout, "the training went on, and is printed whole"
    if full.fault != "EFBIG":
        (training,) = json.loads(out.read_text())["trainings"]
        steps = [line["step"] for line in training["events"] if line["event"] == "step"]
        assert steps == list(range(1, 31)), "the document has the lines that the log lacks"


def test_the_document_of_a_training(full):
    out = full.folder / "out.json"
    done = full("train", *TRAINING, "--epochs", 5, "--out", out)
    assert done.returncode == (2 if full.fault == "EROFS" else 4)
    expect_one_line(done, full.reason, f"cannot write {out}")
    assert not out.exists()


@pytest.mark.parametrize("strategy", ["single", "ddp"])
def test_checkpoints(full, strategy):
    """The training goes on; the third in a row that is lost ends it."""
    kept = full.folder / "kept"
    options = ["train", *TRAINING, "--strategy", strategy, "--checkpoint-dir", kept]
    done = full(*options, "--epochs", 2)
    if full.fault == "EROFS":
        assert done.returncode == 2
        expect_one_line(done, full.reason)
        return
    assert done.returncode == 0, done.stderr
    lost = [line for line in done.stdout.splitlines() if full.reason in line]
    assert [line.split(":")[0] for line in lost] == [
        "no checkpoint of step 10",
        "no checkpoint of step 20",
    ]
    assert not list(kept.glob("*step*"))
    done = full(*options, "--epochs", 9)
    assert done.returncode == 4
    expect_one_line(done, full.reason, "3 checkpoints in a row could not be written")
    assert not list(kept.glob("*step*"))


def test_a_checkpoint_that_fits_stays_the_one_to_go_on_from(full, commands, tmp_path):
    kept = full.folder / "kept"
    options = ["train", *TRAINING, "--epochs", 2, "--checkpoint-dir", kept]
    commands.stratagem(*options[:-1], tmp_path / "measured")
    size = (tmp_path / "measured" / "step-00000010.pt").stat().st_size
    if full.fault == "EROFS":
        return  # nothing fits
    room = size - 100 if full.fault == "EFBIG" else size + 100
    done = full(*options, room=room)
    assert done.returncode == 0, done.stderr
    assert "no checkpoint of step 20" in done.stdout
    assert len(list(kept.glob("step-*.pt"))) == (0 if full.fault == "EFBIG" else 1)
    done = commands.stratagem(*options, "--resume", "auto")
    assert done.returncode == 0, done.stderr
    assert (kept / "step-00000020.pt").stat().st_size == size


def slow_checkpoint(commands, shim, folder, seconds, *options):
    """A training of two ranks whose checkpoint takes so many seconds to be written."""
    return commands.stratagem(
        "train", *TRAINING, "--strategy", "ddp", "--epochs", 1, "--checkpoint-dir", folder,
        *options, LD_PRELOAD=str(shim), FULL_DISK_FOLDER=str(folder), FULL_DISK_ERROR="28",
        FULL_DISK_ROOM=str(10**9), FULL_DISK_SLEEP=str(seconds),
    )  # fmt: skip


def test_a_checkpoint_that_hangs_is_one_line(commands, shim, tmp_path):
    done = slow_checkpoint(commands, shim, tmp_path / "kept", 20, "--checkpoint-timeout", 1)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    expect_one_line(done, "the checkpoint of step 10 is not written within 1 s",
                    "--checkpoint-timeout")  # fmt: skip


@pytest.mark.night
def test_a_checkpoint_may_take_longer_than_a_collective(commands, shim, tmp_path):
    done = slow_checkpoint(commands, shim, tmp_path / "kept", 8, "--timeout", 5)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kept" / "step-00000010.pt").exists()


@pytest.mark.parametrize(
    "arguments", [["list"], ["bogus"], ["schema"], ["history", "show", "--dir", "nowhere"]], ids=str
)
def test_streams_that_take_nothing(commands, arguments):
    """Neither a signal nor a report of a report's failure."""
    for stream in ("stdout", "stderr"):
        with open("/dev/full", "w") as device:
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {stream: device}
            done = subprocess.run(
                [commands.programs / "stratagem", *arguments], env=commands.environment, text=True,
                timeout=60, **streams,
            )  # fmt: skip
        assert done.returncode in (0, 2, 4), stream
        if stream == "stdout" and arguments[0] in ("list", "schema"):
            assert done.returncode == 4
            assert done.stderr.count("\n") == 1
            assert "cannot write the standard output" in done.stderr
