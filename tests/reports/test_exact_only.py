"""stratagem compare --exact-only: what gates where times say nothing, on files and on builds."""

from xml.etree import ElementTree

import pytest
from compared_files import compare_files
from comparison_documents import HARDWARE, document, launch
from scripted_builds import compare_interleaved, write_build

ROW = "pipeline/mlp/devices:2/batch:8"
IGNORED = "times were not compared"
OTHER = HARDWARE | {"cpu_model": "Other"}


@pytest.fixture
def compare(tmp_path, capsys):
    """Runs the command on documents; gives the exit code, what it printed, and JSON."""

    def run(base, head, *options):
        return compare_files(tmp_path, capsys, base, head, "--exact-only", *options)

    return run


def one_launch(time_ms=100.0, hardware=None, **own):
    counters = {"aten_operators": 100.0, "live_micro_batches": 2.0}
    return document({ROW: [launch(time_ms, **({"counters": counters} | own))]}, hardware=hardware)


def test_a_time_that_doubled_is_ignored(compare):
    code, captured, found = compare(one_launch(), one_launch(200.0))
    assert code == 0
    (row,) = found["rows"]
    assert (row["verdict"], row["base_ms"], row["head_ms"], row["ratio"]) == ("same", [], [], None)
    assert found["summary"] == f"No regression found: 1 row, 1 same; {IGNORED}."
    assert "too few" not in captured.out and "busy neighbour" not in captured.out


@pytest.mark.parametrize(
    ("change", "metric"),
    [
        ({"calls": 3}, "communication.all_reduce.calls"),
        ({"calls": 3}, "communication.all_reduce.payload_bytes"),
        ({"calls": 3}, "communication.all_reduce.wire_bytes"),
        ({"flops_per_step": 1.1e9}, "flops_per_step"),
        ({"counters": {"aten_operators": 101.0}}, "aten_operators"),
        ({"counters": {"live_micro_batches": 3.0}}, "live_micro_batches"),
        ({"peak": 1_011_000}, "peak_memory_bytes"),
    ],
)
def test_one_more_of_anything_is_a_regression_and_one_less_is_not(compare, change, metric):
    code, captured, found = compare(one_launch(), one_launch(50.0, **change))
    assert (code, found["rows"][0]["verdict"]) == (1, "does more")
    assert metric in [item["metric"] for item in found["rows"][0]["exact"] if item["regression"]]
    assert metric in captured.out
    code, _, found = compare(one_launch(50.0, **change), one_launch())
    assert (code, found["rows"][0]["verdict"]) == (0, "does less")


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        (["communication.*=pipeline/*"], 0),
        ([f"communication.all_reduce.{what}={ROW}" for what in ("calls", "payload_bytes", "wire_bytes")], 0),
        (["communication.all_reduce.calls=*"], 1),
        (["communication.*=ddp/*"], 1),
        (["aten_operators=*"], 1),
    ],
)
def test_an_increase_that_is_accepted_is_shown_and_passes(compare, tmp_path, accepted, code):
    junit = tmp_path / "c.xml"
    options = [word for one in accepted for word in ("--accept", one)]
    exit_code, captured, found = compare(
        one_launch(), one_launch(calls=3), "--junit", junit, *options
    )
    assert (exit_code, found["regression"]) == (code, code == 1)
    assert found["rows"][0]["verdict"] == "does more"
    assert ElementTree.parse(junit).getroot().attrib["failures"] == str(code)
    assert ("2 \u2192 3 calls (+50.0%), accepted" in captured.out) is ("ddp" not in accepted[0] and "aten" not in accepted[0])
    assert ("no metric of this name grew" in captured.out) is ("ddp" in accepted[0] or "aten" in accepted[0])


def test_a_decrease_needs_no_acceptance_and_none_without_a_row(compare, capsys):
    code, captured, _ = compare(one_launch(calls=3), one_launch(), "--accept", "communication.*=*")
    assert code == 0 and "communication.*=*: no metric of this name grew" in captured.out
    with pytest.raises(SystemExit) as caught:
        compare(one_launch(), one_launch(), "--accept", "aten_operators")
    assert caught.value.code == 2 and "expected METRIC=ROW" in capsys.readouterr().err


def test_peak_memory_within_one_per_cent_is_the_same(compare):
    code, _, found = compare(one_launch(), one_launch(peak=1_009_000))
    assert (code, found["rows"][0]["verdict"]) == (0, "same")


def test_another_machine_is_no_refusal_and_peak_memory_is_left_out_in_one_line(compare):
    code, captured, found = compare(one_launch(), one_launch(hardware=OTHER, peak=2_000_000))
    assert code == 0
    assert found["rows"][0]["not_compared"] == ["peak_memory_bytes"]
    (note,) = [line for line in captured.out.splitlines() if "cpu_model" in line]
    assert note == (
        "- Hardware differs (cpu_model: Example and Other): what depends on it was not compared: "
        "peak_memory_bytes; --across-machines compares it all the same."
    )
    code, captured, _ = compare(one_launch(), one_launch(hardware=OTHER, calls=3))
    assert code == 1, captured.out


def test_across_machines_compares_peak_memory_too(compare):
    head = one_launch(hardware=OTHER, peak=2_000_000)
    code, captured, found = compare(one_launch(), head, "--across-machines")
    assert (code, found["rows"][0]["not_compared"]) == (1, [])
    assert "ACROSS MACHINES: cpu_model is Example in the base and Other" in captured.out


@pytest.mark.parametrize(
    ("config", "field", "left_out"),
    [
        ({"device": "cpu", "dtype": "float32"}, "cpu_model", False),
        ({"device": "cpu", "dtype": "bfloat16"}, "cpu_model", True),
        ({"device": "cpu", "dtype": "float16"}, "cpu_model", True),
        ({"device": "cpu", "dtype": "bfloat16"}, "nominal_mhz", False),
        ({"device": "cpu", "dtype": "float32"}, "gpu_models", False),
        ({"device": "cuda", "dtype": "float32"}, "gpu_models", True),
        ({"device": "cuda", "dtype": "bfloat16"}, "cpu_model", False),
    ],
)
def test_operators_are_left_out_where_kernels_follow_the_hardware(compare, config, field, left_out):
    more = {"config": config, "counters": {"aten_operators": 101.0}}
    head = one_launch(hardware=HARDWARE | {field: "Other"}, **more)
    code, _, found = compare(one_launch(config=config), head)
    assert code == (0 if left_out else 1)
    assert ("aten_operators" in found["rows"][0]["not_compared"]) is left_out


def test_rows_that_lose_a_metric_to_the_hardware_are_counted(compare):
    def side(hardware=None):
        plain, reduced = (launch(1.0, config={"dtype": name}) for name in ("float32", "bfloat16"))
        return document({ROW: [plain], f"{ROW}/dtype:bfloat16": [reduced]}, hardware=hardware)

    _, captured, _ = compare(side(), side(OTHER))
    assert "aten_operators (of 1 of 2 rows) and peak_memory_bytes" in captured.out


def test_every_output_says_that_times_were_not_compared(compare, tmp_path):
    files = ["--markdown", tmp_path / "c.md", "--junit", tmp_path / "c.xml"]
    _, captured, found = compare(one_launch(), one_launch(calls=3), *files)
    assert IGNORED in captured.out
    assert found["times_compared"] is False and IGNORED in found["summary"]
    assert (found["threshold"], found["confidence"]) == (None, None)
    text = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert IGNORED in text.splitlines()[0]
    assert "| Verdict | Row | Deterministic metrics |\n| :-- | :-- | :-- |\n" in text
    assert f"| **does more** | `{ROW}` | 3 changed, 3 worse |" in text
    assert "median step time" not in text and "confidence" not in text
    suite = ElementTree.parse(tmp_path / "c.xml").getroot()
    (note,) = suite.iter("property")
    assert note.attrib["name"] == "exact_only" and IGNORED in note.attrib["value"]
    (case,) = suite.iter("testcase")
    assert case.attrib["time"] == "0.000000"
    message = case.find("failure").attrib["message"]
    assert message == "does more: time not compared; deterministic metrics: 3 changed, 3 worse"


def test_without_a_metric_in_common_nothing_passes(compare):
    bare = {"counters": {}, "flops_per_step": None, "devices": [], "calls": 0}
    code, captured, found = compare(one_launch(**bare), one_launch(**bare))
    assert (code, found, captured.out) == (3, None, "")
    assert captured.err.count("\n") == 1 and "no row has a deterministic metric to compare" in captured.err
    other = f"{ROW}/split:4"
    mixed = document({ROW: [launch(1.0, **bare)], other: [launch(1.0)]})
    assert compare(mixed, mixed)[0] == 0
    code, captured, found = compare(mixed, mixed, "--fail-on-ambiguous")
    verdicts = {row["name"]: row["verdict"] for row in found["rows"]}
    assert (code, verdicts) == (5, {ROW: "cannot tell", other: "same"})
    assert "no deterministic metric to compare" in captured.out


def test_a_count_that_varies_between_launches_does_not_gate(compare):
    varying = [launch(1.0, operators=value) for value in (100.0, 101.0)]
    code, captured, found = compare(document({ROW: [launch(1.0)]}), document({ROW: varying}))
    assert (code, found["rows"][0]["verdict"]) == (0, "same")
    assert "aten_operators: differs between launches" in captured.out


def test_a_row_that_fails_in_the_head_only_is_a_regression(compare):
    failing = document({ROW: [launch(1.0, error={"rank": 0, "message": "out of memory"})]})
    code, _, found = compare(one_launch(), failing)
    assert (code, found["rows"][0]["verdict"], found["rows"][0]["base_ms"]) == (1, "failed", [])
    code, captured, _ = compare(failing, one_launch())
    assert code == 3, "nothing was compared, so nothing passes"
    assert "no row has a deterministic metric to compare on both sides" in captured.err


@pytest.mark.parametrize(
    "option", ["--threshold=0%", "--threshold=2%", "--confidence=99%", "--minutes=5", "--seed=2", "--whole-launches"]
)
def test_options_of_times_are_refused(compare, option):
    code, captured, _ = compare(one_launch(), one_launch(), option)
    assert code == 2 and captured.err.count("\n") == 1
    assert f"{option.split('=')[0]}: not with --exact-only" in captured.err


BUILD = """#!{python}
import json, sys
sys.path.insert(0, {tests!r})
from comparison_documents import HARDWARE, document, launch
if sys.argv[1:] == ["--version"]:
    print("stratagem 0.1.0 (test)")
    sys.exit(0)
if {broken}:
    sys.exit("error: no such model")
with open({log!r}, "a") as file:
    file.write({label!r} + " ")
rows = {{name: [launch({time}, **{own})] for name in ("single/mlp", "ddp/mlp")}}
with open(sys.argv[sys.argv.index("--out") + 1], "w") as file:
    json.dump(document(rows, hardware=HARDWARE | {hardware}), file)
"""


@pytest.fixture
def build(tmp_path):
    """Makes a build folder whose stratagem writes two rows."""

    def make(label, time=100.0, own=None, hardware=None, broken=False):
        return write_build(
            tmp_path / label, BUILD, label=label, time=time, own=own or {}, broken=broken,
            hardware=hardware or {}, log=str(tmp_path / "log"),
        )  # fmt: skip

    return make


@pytest.fixture
def compare_builds(tmp_path, capsys):
    out = tmp_path / "comparison.json"

    def run(*words, **named):
        code, found = compare_interleaved(out, "--exact-only", *words, **named)
        return code, capsys.readouterr(), found

    return run


def test_each_build_is_launched_once_and_gates(build, compare_builds, tmp_path):
    code, captured, found = compare_builds(build("base"), build("head", 300.0, {"operators": 101}))
    assert code == 1
    assert (tmp_path / "log").read_text().split() == ["base", "head"]
    assert {row["verdict"] for row in found["rows"]} == {"does more"}
    assert found["interleaved"]["rounds"] == 1
    assert "1 launch of each build" in captured.out and IGNORED in captured.out


def test_rounds_repeat_it_and_a_control_finds_nothing(build, compare_builds, tmp_path):
    code, captured, found = compare_builds(build("base"), "--control", "--rounds", 3)
    assert (code, {row["verdict"] for row in found["rows"]}) == (0, {"same"})
    assert (tmp_path / "log").read_text().split() == ["base"] * 6
    assert "both sides are one build" in captured.out


def test_a_build_with_another_allocator_is_compared_but_for_its_memory(build, compare_builds):
    head = build("head", own={"peak": 2_000_000}, hardware={"allocator": "glibc"})
    code, captured, found = compare_builds(build("base"), head)
    assert code == 0
    assert {tuple(row["not_compared"]) for row in found["rows"]} == {("peak_memory_bytes",)}
    assert "Hardware differs (allocator: not recorded and glibc)" in captured.out
    assert "--across-machines" not in captured.out, "it cannot be had with --interleave"


def test_a_build_that_fails_is_4(build, compare_builds):
    code, captured, found = compare_builds(build("base"), build("head", broken=True))
    assert (code, found) == (4, None)
    assert "no such model" in captured.err and captured.err.count("\n") == 1
    failing = build("lost", own={"error": {"rank": 1, "message": "lost"}})
    assert compare_builds(build("other"), failing)[0] == 4


def test_a_recording_of_rounds_has_no_place(build, compare_builds, tmp_path):
    base = build("base")
    code, captured, _ = compare_builds(base, base, "--record", tmp_path / "rounds.jsonl")
    assert code == 2 and "--record: not with --exact-only" in captured.err
