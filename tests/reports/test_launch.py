import os
import resource
import sys
import time

import pytest
from stratagem_reports.comparison import launch as launch_module
from stratagem_reports.comparison.launch import LaunchError, launch


def python(code, *arguments):
    return (sys.executable, "-c", code, *arguments)


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(process, limit_s=5.0):
    deadline = time.monotonic() + limit_s
    while is_running(process) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_running(process)


def test_output_and_file_are_returned():
    code = "import sys; print('hello'); open(sys.argv[1], 'w').write('file')"
    output = launch(python(code, "{out}"), {}, 30)
    assert output.stdout == "hello\n"
    assert output.out_file == "file"


def test_the_memory_is_that_of_the_largest_process():
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # a child begins with it
    mebibytes = own + 200
    hold = f"held = bytearray(b'x' * ({mebibytes} << 20))"
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    small, large = (launch(python(parent, code), {}, 30).peak_resident_bytes for code in ("", hold))
    assert 0 < small < mebibytes << 20 <= large < small + (4 * mebibytes << 20)


def test_environment_is_changed_and_none_removes(monkeypatch):
    monkeypatch.setenv("PEERS_REMOVED", "1")
    monkeypatch.setenv("PEERS_KEPT", "2")
    code = "import os; print(*(os.environ.get('PEERS_' + n) for n in ('REMOVED', 'KEPT', 'SET')))"
    output = launch(python(code), {"PEERS_REMOVED": None, "PEERS_SET": "3"}, 30)
    assert output.stdout.split() == ["None", "2", "3"]


def test_failure_is_one_line_with_exit_code_and_last_error():
    code = "import sys; print('first\\nValueError: bad\\n', file=sys.stderr); sys.exit(3)"
    with pytest.raises(LaunchError, match=r"^exit code 3: ValueError: bad$"):
        launch(python(code), {}, 30)


def test_a_command_that_does_not_exist_is_named():
    with pytest.raises(LaunchError, match="cannot start no_such_command: No such file"):
        launch(("no_such_command",), {}, 30)


PARENT_AND_CHILD = """
import os, signal, subprocess, sys, time
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", stubborn])
with open(sys.argv[1] + ".part", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize(("sleep_s", "limit_s"), [("60", 1.5), ("0", 30.0)])
def test_no_process_of_the_group_survives(tmp_path, monkeypatch, sleep_s, limit_s):
    """Neither after a timeout, nor behind a command that ends and leaves a child."""
    monkeypatch.setattr(launch_module, "GRACE_S", 0.2)
    file = tmp_path / "processes"
    command = python(PARENT_AND_CHILD, str(file), sleep_s)
    if sleep_s == "60":
        with pytest.raises(LaunchError, match=r"no result within 1\.5 s"):
            launch(command, {}, limit_s)
    else:
        launch(command, {}, limit_s)
    parent, child = map(int, file.read_text().split())
    assert wait_until_gone(parent)
    assert wait_until_gone(child)
    assert os.getpid() not in (parent, child)
