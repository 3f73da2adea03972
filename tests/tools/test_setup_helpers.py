"""The Python pieces of the set-up scripts, on texts as the tools write them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "setup"))

import durations  # noqa: E402
import lean_requirements  # noqa: E402
import quick_tests  # noqa: E402
import skipped_tests  # noqa: E402
import torch_free_sources  # noqa: E402


def test_lean_requirements_of_wheels_old_new_and_without_cuda() -> None:
    pick = lean_requirements.lean_requirements
    assert pick([
        "filelock",
        'cuda-toolkit[cublas,cudart,cufft,cupti]==13.0.2; platform_system == "Linux"',
        'nvidia-cudnn-cu13==9.19.0.56; platform_system == "Linux"',
    ]) == ["cuda-toolkit[cudart,cupti]==13.0.2"]
    assert pick([
        'nvidia-cuda-nvrtc-cu12==12.8.93; platform_system == "Linux"',
        'nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"',
        'nvidia-cuda-cupti-cu12==12.8.90; platform_system == "Linux"',
    ]) == ["nvidia-cuda-runtime-cu12==12.8.90", "nvidia-cuda-cupti-cu12==12.8.90"]
    assert pick(["filelock", "sympy>=1.13.3"]) == []


def test_torch_free_sources_leave_out_what_any_target_compiles_with_torch(tmp_path: Path) -> None:
    def entry(file: str, command: str) -> dict[str, str]:
        return {"directory": str(tmp_path), "file": file, "command": command}

    torch = "g++ -isystem /x/torch/include/torch/csrc/api/include -c"
    assert torch_free_sources.torch_free_sources(tmp_path, [
        entry("strategies/schedules/schedule.cpp", "g++ -c"),
        entry("strategies/stages/stage.cpp", torch),
        entry("reports/json_writer.cpp", "g++ -c"),
        entry("reports/both.cpp", "g++ -c"),
        entry("reports/both.cpp", torch),
        entry("tests/strategies/schedules/schedule_test.cpp", "g++ -c"),
        entry("build-tidy/bench/config/CMakeFiles/config.dir/Unity/unity_0_cxx.cxx", "g++ -c"),
        entry("build-tidy/generated/embedded.cpp", "g++ -c"),
        entry("/elsewhere/x.cpp", "g++ -c"),
    ]) == [
        "build-tidy/bench/config/CMakeFiles/config.dir/Unity/unity_0_cxx.cxx",
        "reports/json_writer.cpp",
        "strategies/schedules/schedule.cpp",
    ]


GOOGLETEST_SKIP = """<testsuites><testsuite>
<testcase name="Cuda" classname="Device" status="run" result="skipped" time="0.5">
<skipped message="a_test.cpp:5&#x0A;{reason}&#x0A;"><![CDATA[...]]></skipped></testcase>
{rest}</testsuite></testsuites>"""
ONE_PASSED = '<testcase name="Cpu" classname="Device" status="run" result="completed" time="2"/>'
PYTEST = """<testsuites><testsuite><testcase classname="tests.test_a" name="test_x">
<skipped type="pytest.skip" message="{reason}">tests/test_a.py:4: {reason}</skipped></testcase>
<testcase classname="tests.test_a" name="test_y" time="1.25"/></testsuite></testsuites>"""


def skip_status(tmp_path: Path, *files: str) -> int:
    paths = []
    for index, text in enumerate(files):
        path = tmp_path / f"{index}.xml"
        path.write_text(text)
        paths.append(str(path))
    return skipped_tests.main(paths)


def test_skip_report_names_tests_and_reasons(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    googletest = GOOGLETEST_SKIP.format(reason="needs a GPU: none here", rest=ONE_PASSED)
    assert skip_status(tmp_path, googletest, PYTEST.format(reason="no launcher")) == 0
    assert capsys.readouterr().out == (
        "\nSkipped tests: 2\n"
        "  Device.Cuda: needs a GPU: none here\n"
        "  tests.test_a::test_x: no launcher\n"
    )


@pytest.mark.parametrize(("reason", "allow", "status"), [
    ("needs a GPU: none here", "", 0),
    ("needs network namespaces", "", 0),
    ("no launcher", "", 1),
    ("no launcher", "no network;no launcher", 0),
])
def test_ci_refuses_other_skips(tmp_path: Path, monkeypatch, reason, allow, status) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("STRATAGEM_ALLOW_SKIP", allow)
    assert skip_status(tmp_path, PYTEST.format(reason=reason)) == status


def test_no_test_that_ran_is_a_failure(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("CI", raising=False)
    assert skip_status(tmp_path, "<testsuite/>") == 1
    assert skipped_tests.main([str(tmp_path / "absent.xml")]) == 1
    assert "no test ran" in capsys.readouterr().out


def test_durations_are_those_of_the_last_build_and_test_run(tmp_path: Path) -> None:
    (tmp_path / ".ninja_log").write_text(
        "# ninja log v5\n"
        "0\t9000\t1\tmodels/a.o\thash1\n"
        "0\t4000\t1\tmodels/a.o\thash1\n"
        "4000\t7000\t1\ttests/b_test.o\thash2\n"
        "7000\t7500\t1\tbin/one\thash3\n"
        "7000\t7500\t1\tbin/one.map\thash3\n"
    )
    results = tmp_path / "test-results"
    results.mkdir()
    (results / "unit_tests.0.xml").write_text(GOOGLETEST_SKIP.format(reason="", rest=ONE_PASSED))
    (results / "pytest.xml").write_text(PYTEST.format(reason="no launcher"))
    assert durations.build_steps(tmp_path / ".ninja_log") == {
        "models/a.o": 4, "tests/b_test.o": 3, "bin/one": 0.5,
    }  # fmt: skip
    text = durations.report(tmp_path, most=1, markdown=False)
    assert "4.0 s  compiling the product" in text and "compiling tests" not in text
    assert "2.5 s  unit_tests" in text and "2.0 s  unit_tests: Device.Cpu" in text
    everything = durations.report(tmp_path, most=9, markdown=True)
    assert "| pytest: test_a | 1.2 |" in everything and "| linking | 0.5 |" in everything
    assert durations.report(tmp_path / "nowhere", most=9, markdown=False) == ""


def test_quick_tests_are_those_that_took_little_time_in_the_last_whole_run(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    def run(action: str) -> str:
        monkeypatch.setattr(sys, "argv", ["quick_tests.py", str(tmp_path), action])
        quick_tests.main()
        return capsys.readouterr().out

    assert run("googletest") == "\n" and run("pytest") == "", "without a note every test is run"
    results = tmp_path / "test-results"
    results.mkdir()
    suite = '<testsuites><testsuite>{}</testsuite></testsuites>'
    case = '<testcase classname="{}" name="{}" time="{}"/>'
    (results / "unit_tests.0.xml").write_text(suite.format(
        case.format("Sizes/Zero", "EqualsOneDevice/2", 3) + case.format("Zero", "Refuses", 0.1)
    ))
    (results / "pytest.xml").write_text(suite.format(
        case.format("tests.tools.test_one", "test_a[x.y-1]", 0.9)
        + case.format("tests.tools.test_one", "test_b", 0.1)
    ))
    run("keep")
    assert run("googletest") == "-Sizes/Zero.EqualsOneDevice/2\n"
    assert run("pytest") == "--deselect=tests/tools/test_one.py::test_a[x.y-1]\n"
