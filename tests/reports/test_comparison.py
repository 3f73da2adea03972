"""stratagem compare on two files: verdicts, deterministic metrics, refusals, and the four outputs."""

import functools
import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from compared_files import compare_files
from comparison_documents import METRICS, document, launch, launches
from stratagem_reports import __main__ as command
from stratagem_reports.comparison.mann_whitney import (
    compare_launches,
    launches_needed,
    smallest_p_value,
)
from stratagem_reports.comparison.verdicts import holm

APPROVED = Path(__file__).parents[1] / "approved"
ROW = "single/mlp/devices:1/batch:8"
STEADY = [100.0, 100.3, 99.8, 100.1, 99.9, 100.2]


@pytest.fixture
def compare(tmp_path, capsys):
    """Runs the command on documents; gives the exit code, what it printed, and JSON."""
    return functools.partial(compare_files, tmp_path, capsys)


def scaled(factor, times=STEADY, **own):
    return document({ROW: launches([factor * time for time in times], **own)})


@pytest.mark.parametrize(
    ("factor", "verdict", "code"),
    [(1.05, "slower", 1), (0.95, "faster", 0), (1.0, "same", 0), (1.006, "same", 0)],
)
def test_the_verdict_follows_the_launches(compare, factor, verdict, code):
    exit_code, captured, found = compare(scaled(1.0), scaled(factor))
    assert found["rows"][0]["verdict"] == verdict
    assert exit_code == code
    assert captured.out.splitlines()[2].startswith(verdict)
    ratio = found["rows"][0]["ratio"]
    assert ratio["low"] <= factor <= ratio["high"]


def test_noise_gives_cannot_tell_and_5_only_when_asked_for(compare):
    noisy = [90.0, 112.0, 97.0, 105.0, 88.0, 109.0]
    base, head = scaled(1.0, noisy), scaled(1.02, noisy[::-1])
    assert compare(base, head)[0] == 0
    code, _, found = compare(base, head, "--fail-on-ambiguous")
    assert found["rows"][0]["verdict"] == "cannot tell"
    assert found["summary"] == "Undecided: 1 row, 1 cannot tell."
    assert code == 5


@pytest.mark.parametrize(("rows", "verdict"), [(1, "same"), (5, "cannot tell")])
def test_same_holds_for_all_rows_together(compare, rows, verdict):
    """The interval of one row lies inside of 1%; at a fifth of the level it does not."""
    times = [100 + 0.3 * index for index in range(8)]
    side = document({f"{ROW}/split:{index}": launches(times) for index in range(rows)})
    _, _, found = compare(side, side)
    assert {row["verdict"] for row in found["rows"]} == {verdict}


@pytest.mark.parametrize(("factor", "beyond"), [(1.005, "slower"), (1 / 1.005, "faster")])
def test_a_significant_change_below_the_threshold_is_none(compare, factor, beyond):
    times = [100 + i / 1000 for i in range(8)]
    base, head = scaled(1.0, times), scaled(factor, times)
    _, _, found = compare(base, head)
    assert found["rows"][0]["verdict"] == "same"
    _, _, found = compare(base, head, "--threshold", "0.1%")
    assert found["rows"][0]["verdict"] == beyond


def test_too_few_launches_say_how_many_would_do(compare):
    code, captured, found = compare(scaled(1, STEADY[:3]), scaled(2, STEADY[:3]))
    assert found["rows"][0]["verdict"] == "too few launches"
    assert "3 and 3 launches; 4 a side would be enough" in captured.out
    assert code == 0


def test_several_files_of_a_side_are_joined(compare):
    base = [scaled(1, STEADY[:3]), scaled(1, STEADY[3:])]
    _, _, found = compare(base, scaled(1.05))
    assert len(found["rows"][0]["base_ms"]) == 6
    assert found["rows"][0]["verdict"] == "slower"


def test_a_comma_in_the_name_of_a_file_belongs_to_it(write_json, tmp_path):
    folder = tmp_path / "a,b"
    folder.mkdir()
    base, head = (write_json(scaled(factor)).rename(folder / f"{factor},.json") for factor in (1, 2))
    assert command.main(["compare", str(base), str(head)]) == 1
    halves = [write_json(scaled(1, half)).rename(folder / f"{half[0]},.json")
              for half in (STEADY[:3], STEADY[3:])]  # fmt: skip
    assert command.main(["compare", ",".join(map(str, halves)), str(head)]) == 1


def test_steps_of_one_launch_are_one_value(compare):
    one = document({ROW: [launch(1.0, step_ms=[100.0, 101.0, 250.0])]})
    _, _, found = compare(one, one)
    assert found["rows"][0]["base_ms"] == [101.0]


def test_the_tutorials_repeats_are_one_launch(compare):
    config = {"protocol": "tutorial"}
    own = [launch(time, config=config, step_ms=[time] * 3) for time in (10.0, 11.0, 12.0)]
    _, _, found = compare(document({ROW: own}), document({ROW: own}))
    assert found["rows"][0]["base_ms"] == [33.0]


@pytest.mark.parametrize(
    ("change", "metric", "code"),
    [
        ({"calls": 3}, "communication.all_reduce.calls", 1),
        ({"calls": 1}, "communication.all_reduce.calls", 0),
        ({"operators": 101.0}, "aten_operators", 1),
        ({"flops_per_step": 1.1e9}, "flops_per_step", 1),
        ({"peak": 1_011_000}, "peak_memory_bytes", 1),
        ({"peak": 900_000}, "peak_memory_bytes", 0),
    ],
)
def test_deterministic_metrics_gate_with_one_launch(compare, change, metric, code):
    exit_code, captured, found = compare(scaled(1, [100.0]), scaled(1, [100.0], **change))
    assert exit_code == code
    assert metric in [item["metric"] for item in found["rows"][0]["exact"]]
    assert metric in captured.out


def test_peak_memory_within_one_per_cent_and_equal_counts_pass(compare):
    code, captured, found = compare(scaled(1, [100.0]), scaled(1, [100.0], peak=1_009_000))
    assert (code, found["rows"][0]["exact"]) == (0, [])
    assert "5 equal" in captured.out


def test_a_collective_that_was_not_there_is_an_increase(compare):
    code, captured, _ = compare(scaled(1, [100.0], calls=0), scaled(1, [100.0], calls=1))
    assert code == 1
    assert "communication.all_reduce.calls: 0 \u2192 1 calls" in captured.out


def test_a_count_that_varies_or_is_new_is_reported_and_does_not_gate(compare):
    head = document({ROW: [launch(100.0, operators=100.0), launch(100.0, operators=101.0)]})
    code, captured, _ = compare(scaled(1, [100.0]), head)
    assert code == 0
    assert "aten_operators: differs between launches" in captured.out
    assert "1 not compared" in captured.out
    code, captured, _ = compare(scaled(1, [100.0], counters={}), scaled(1, [100.0]))
    assert code == 0
    assert "aten_operators: only in head" in captured.out


def test_another_machine_is_refused_or_marked(compare):
    other = document({ROW: launches(STEADY)}, hardware={"cpu_model": "Other", "physical_cores": 2})
    code, captured, _ = compare(scaled(1), other)
    assert code == 2
    assert captured.err.count("\n") == 1
    assert "cpu_model is Example" in captured.err and "--across-machines" in captured.err
    code, captured, found = compare(scaled(1), other, "--across-machines")
    assert code == 0
    assert "ACROSS MACHINES: cpu_model is Example in the base and Other in the head" in captured.out
    assert found["hardware_differences"] == {"cpu_model": {"base": "Example", "head": "Other"}}


def test_across_machines_stands_where_nobody_misses_it(compare, tmp_path):
    other = document({ROW: launches(STEADY)}, hardware={"cpu_model": "Other", "physical_cores": 2})
    files = ["--markdown", str(tmp_path / "c.md"), "--junit", str(tmp_path / "c.xml")]
    _, _, found = compare(scaled(1), other, "--across-machines", *files)
    words = "ACROSS MACHINES: cpu_model is Example in the base and Other in the head."
    assert found["summary"].endswith("1 same (across machines).")
    shown = (tmp_path / "c.md").read_text(encoding="utf-8").split("<details>")[0]
    assert f"\n**{words}**\n" in shown
    assert properties(tmp_path / "c.xml")["across_machines"] == words
    _, _, found = compare(scaled(1), scaled(1), *files)
    assert found["summary"].endswith("1 same.")
    assert "ACROSS" not in (tmp_path / "c.md").read_text(encoding="utf-8")
    assert list(properties(tmp_path / "c.xml")) == ["separate_files"]


def properties(path):
    suite = ElementTree.parse(path).getroot()
    return {item.attrib["name"]: item.attrib["value"] for item in suite.iter("property")}


def test_junit_says_what_two_files_cannot_tell(compare, tmp_path):
    compare(scaled(1), scaled(1), "--junit", str(tmp_path / "c.xml"))
    text = properties(tmp_path / "c.xml")["separate_files"]
    assert "cannot distinguish a regression from a busy neighbour" in text
    assert ElementTree.parse(tmp_path / "c.xml").getroot()[0].tag == "properties"


def with_unit(name, **said):
    return document({ROW: launches(STEADY)}, metrics=METRICS | {name: METRICS[name] | said})


@pytest.mark.parametrize("name", ["aten_operators", "real_time"])
@pytest.mark.parametrize("several", [False, True])
def test_a_metric_in_two_units_is_refused(compare, name, several):
    other = with_unit(name, unit="fortnights")
    sides = ([scaled(1), other], scaled(1)) if several else (scaled(1), other)
    code, captured, found = compare(*sides)
    assert (code, found) == (2, None)
    assert captured.err.count("\n") == 1
    assert f"context.stratagem.metrics.{name}: its unit is 'fortnights'" in captured.err
    assert f"it is {METRICS[name]['unit']!r}" in captured.err


@pytest.mark.parametrize("metrics", [{}, {"real_time": {}}, {"aten_operators": {"unit": ""}}])
def test_metrics_without_units_contradict_nothing(compare, metrics):
    bare = document({ROW: launches(STEADY)}, metrics=metrics)
    assert compare(scaled(1), bare)[0] == compare(bare, [scaled(1), bare])[0] == 0


@pytest.mark.parametrize(("metrics", "words"), [
    (None, "metrics: expected `object`, got `null`"),
    ([], "metrics: expected `object`, got `array`"),
    ({"aten_operators": 7}, "metrics[...]: expected `object`, got `int`"),
    ({"real_time": {"better": "faster"}}, "metrics[...].better: expected `str` matching regex"),
])
def test_metrics_of_another_kind_are_refused(compare, metrics, words):
    code, captured, _ = compare(scaled(1), document({ROW: launches(STEADY)}, metrics=metrics))
    assert code == 2 and captured.err.count("\n") == 1
    assert f".json: context.stratagem.{words}" in captured.err


def test_files_of_one_side_from_two_machines_are_refused(compare):
    other = document({ROW: launches(STEADY)}, hardware={"cpu_model": "Other", "physical_cores": 2})
    code, captured, _ = compare([scaled(1), other], scaled(1), "--across-machines")
    assert code == 2 and "one kind of machine" in captured.err


def test_other_software_is_reported(compare):
    other = document({ROW: launches(STEADY)}, software={"torch": "2.12.0"})
    code, captured, found = compare(scaled(1), other)
    assert code == 0
    assert "Software differs: torch is 2.11.0 in the base and 2.12.0 in the head" in captured.out
    assert found["software_differences"]["torch"]["head"] == "2.12.0"
    _, captured, _ = compare(scaled(1), document({ROW: launches(STEADY)}, software={"torch": ""}))
    assert "torch is 2.11.0 in the base and none in the head" in captured.out
    _, captured, _ = compare(scaled(1), document({ROW: launches(STEADY)}, software={"nccl": "2"}))
    assert "nccl is not recorded in the base and 2 in the head" in captured.out


def test_software_that_differs_within_a_side_is_reported(compare):
    times = {ROW: launches(STEADY)}
    old, new = {"torch": "2.11.0", "mpi": "5"}, {"torch": "2.12.0", "mpi": "5"}
    head = [document(times, software=one) for one in (old, new, new | {"torch": None})]
    code, captured, _ = compare(document(times, software=old), head)
    assert code == 0
    (note,) = (line for line in captured.out.splitlines() if "Software differs" in line)
    assert note.startswith("- Software differs within the head: torch is 2.11.0 in ")
    for words in ("head0.json, 2.12.0 in ", "head1.json and not recorded in ", "head2.json."):
        assert words in note


def test_rows_of_one_side_only_are_named_and_no_common_row_is_3(compare):
    both = document({ROW: launches(STEADY), "ddp/mlp": launches(STEADY)})
    code, captured, found = compare(both, scaled(1))
    assert code == 0 and found["only_base"] == ["ddp/mlp"]
    assert "Only in the base, not compared: ddp/mlp" in captured.out
    code, captured, _ = compare(document({"ddp/mlp": launches(STEADY)}), scaled(1))
    assert code == 3 and captured.err.count("\n") == 1


def failing(message="out of memory"):
    entry = launch(1.0, error={"rank": 0, "message": message, "last_action": "F0 s0"})
    return document({ROW: [entry]})


def test_a_row_that_fails_in_the_head_only_is_a_regression(compare):
    code, captured, found = compare(scaled(1), failing())
    assert code == 1 and found["rows"][0]["verdict"] == "failed"
    assert "failed in the head: out of memory" in captured.out
    assert compare(failing(), failing())[0] == 0
    assert compare(failing(), scaled(1))[0] == 0


def test_markdown_and_junit_say_the_same(compare, tmp_path):
    files = ["--markdown", str(tmp_path / "c.md"), "--junit", str(tmp_path / "c.xml")]
    compare(scaled(1), scaled(1.05, calls=3), *files)
    text = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert text.startswith("### Regression: 1 row, 1 slower and 1 with an increased deterministic metric.")
    assert f"| **slower** | `{ROW}` | 100 ms (6) | 105 ms (6) | +5.0% |" in text
    suite = ElementTree.parse(tmp_path / "c.xml").getroot()
    assert suite.attrib["failures"] == "1"
    assert suite.find("testcase/failure").attrib["message"].startswith("slower: +5.0%")
    compare(scaled(1, STEADY[:2]), scaled(1, STEADY[:2]), *files)
    suite = ElementTree.parse(tmp_path / "c.xml").getroot()
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("0", "1")


def test_nothing_of_a_name_becomes_markdown(compare, tmp_path):
    name = "single/`x`|[a](https://a.example)<img src=x>*b*@someone"
    error = {"rank": 0, "message": "[a](https://a.example) <b> *c* ~d~ &lt; @someone | \\ e"}
    head = document({name: [launch(1.0, error=error)]}, software={"torch": "<i>@someone"})
    compare(document({name: [launch(1.0)]}), head, "--markdown", tmp_path / "c.md")
    text = (tmp_path / "c.md").read_text(encoding="utf-8")
    shown = "single/'x'|[a](https://a.example)<img src=x>*b*@someone"
    assert f"| `{shown}` |".replace("x'|", "x'\\|") in text and f"\n`{shown}`\n" in text
    assert "\\[a\\](https:\\//a.example) \\<b\\> \\*c\\* \\~d\\~ \\&lt; @\u200bsomeone \\| \\\\ e" in text
    assert "torch is 2.11.0 in the base and \\<i\\>@\u200bsomeone in the head" in text
    assert len({line.replace("\\|", "").count("|") for line in text.splitlines() if line[:1] == "|"}) == 1


def test_one_format_alone_on_standard_output(write_json, capsys):
    path = str(write_json(scaled(1)))
    head = str(write_json(scaled(1), "head.json"))
    assert command.main(["compare", path, head, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["regression"] is False
    assert command.main(["compare", path, head, "--json", "-", "--junit", "-"]) == 2
    assert "only one" in capsys.readouterr().err


def test_two_formats_need_two_files(write_json, tmp_path, capsys):
    path = str(write_json(scaled(1)))
    both = str(tmp_path / "both")
    assert command.main(["compare", path, path, "--json", both, "--html", both]) == 2
    assert f"two outputs share {both}" in capsys.readouterr().err
    assert not (tmp_path / "both").exists()


ENTRY = document({ROW: [launch(1.0)]})["benchmarks"][0]
BAD = {
    "duplicate": (
        [ENTRY, ENTRY],
        "repetition_index 0 of single/mlp/devices:1/batch:8 stands there twice",
    ),
    "no_index": (
        [ENTRY, ENTRY | {"repetition_index": None}],
        f"benchmarks[1]: has no repetition_index, and {ROW} is there 2 times",
    ),
    "aggregates": (
        [ENTRY, ENTRY | {"run_name": "ddp/mlp", "run_type": "aggregate"}],
        "benchmarks[1]: ddp/mlp has only aggregates; its repetitions are needed",
    ),
    "none": ([], "no rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_one_line_and_nothing_is_written(compare, case):
    broken = scaled(1)
    broken["benchmarks"], words = BAD[case]
    code, captured, found = compare(scaled(1), broken)
    assert (code, found) == (2, None)
    assert captured.err.count("\n") == 1 and words in captured.err


def test_a_file_without_a_fingerprint_and_one_named_twice_are_refused(compare, write_json, capsys):
    nameless = scaled(1)
    del nameless["context"]["stratagem"]["fingerprint"]
    code, captured, _ = compare(nameless, scaled(1))
    assert code == 2 and "fingerprint.hardware: missing" in captured.err
    path = str(write_json(scaled(1)))
    assert command.main(["compare", f"{path},{path}", path]) == 2
    assert "named twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [["--threshold", "x"], ["--confidence", "120%"], ["--rounds", "0"], ["--minutes", "-1"]],
)
def test_wrong_options_are_refused(write_json, capsys, options):
    path = str(write_json(scaled(1)))
    with pytest.raises(SystemExit) as caught:
        command.main(["compare", path, path, *options])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_options_of_rounds_need_interleave(write_json, capsys):
    path = str(write_json(scaled(1)))
    for options in (["--control"], ["--rounds", "3"], ["--", "--model", "mlp"]):
        assert command.main(["compare", path, path, *options]) == 2
        assert "only with --interleave" in capsys.readouterr().err


def test_holm_is_the_step_down_of_the_textbook():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_smallest_p_value_decides_how_many_launches_do():
    assert smallest_p_value(4, 4) == pytest.approx(2 / 70)
    assert launches_needed(0.05) == 4
    assert launches_needed(0.005) == 6


def test_the_interval_is_that_of_a_tables_pair():
    """What the program wrote of the approved results' rows, by the same launches."""
    document = json.loads((APPROVED / "results.json").read_text())
    samples, told = {}, {}
    for entry in document["benchmarks"]:
        if summary := entry.get("stratagem", {}).get("summary"):
            samples[entry["run_name"]] = summary.get("samples_ms")
            told[entry["run_name"]] = summary.get("ratios", {})
    compared = 0
    for name, ratios in told.items():
        for other, ratio in ratios.items():
            change = compare_launches(samples[name], samples[other], ratio["coverage"] - 1e-6)
            assert change.ratio == pytest.approx(ratio["value"])
            assert (change.low, change.high) == pytest.approx((ratio["low"], ratio["high"]))
            compared += 1
    assert compared > 1


def test_the_interval_is_what_the_test_does_not_refuse():
    base, head = [1.0, 2.0, 3.0, 4.0, 5.0], [2.2, 4.4, 6.6, 8.8, 11.1]
    change = compare_launches(base, head, 0.95)
    assert change.low <= change.ratio <= change.high
    ratios = sorted(two / one for one in base for two in head)
    assert change.low == pytest.approx(ratios[2])  # P(U <= 2) = 4 / 252, twice that below 5%
    assert change.high == pytest.approx(ratios[-3])
    assert compare_launches([1.0], [2.0], 0.95).ratio == pytest.approx(2.0)
    assert math.isfinite(compare_launches([1.0, 1.0], [1.0, 1.0], 0.95).p_value)
