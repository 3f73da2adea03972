"""The command as a user meets it, with a fake Stratagem and no PyTorch."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import epochs
import pytest
import train
from peer_comparison.contenders import Settings
from peer_comparison.progress import ProgressLine, describe_seconds
from peer_comparison.ratios import Ratio
from peer_comparison.rounds import Result, Sample
from peer_comparison.scenarios import SCENARIOS
from peer_comparison.table import answers_as_json, contender_table, ratio_table

COMPARE = Path(__file__).resolve().parents[2] / "tools" / "peers" / "compare"

# Answers as `stratagem run` does; a step takes 100 ms, 50 ms pipelined, 60 ms at split 8.
FAKE_STRATAGEM = f"""#!{sys.executable}
import json, os, sys, time
arguments = sys.argv[2:]
options = dict(zip(arguments[::2], arguments[1::2]))
if sys.argv[1] == "train":
    steps = [dict(event="step", epoch=epoch, step=4 * epoch + 4, seconds=seconds, loss=0.5)
             for epoch, seconds in enumerate((0.25, 0.375))]
    options = dict(zip(arguments[1::2], arguments[2::2]))  # after --quiet
    with open(options["--out"], "w") as file:
        json.dump(dict(trainings=[dict(name="toy", events=steps)]), file)
    sys.exit()
strategy = options["--strategy"]
if os.environ.get("FAKE_FAILS") == strategy:
    sys.exit("stratagem: rank 1 was lost in 2F0")
time.sleep(float(os.environ.get("FAKE_SLEEP", "0")))
step = 100.0 if strategy != "pipeline" else 50.0 if options["--split-size"] == "12" else 60.0
row = dict(name="n", run_type="iteration", stratagem=dict(
    strategy=strategy, config=dict(cores_per_device=1), loss=[0.5],
    step_ms=[step] * int(options["--steps"]), verification=dict(passed=True), proof=dict(passed=True)))
with open(options["--out"], "w") as file:
    json.dump(dict(context=dict(), benchmarks=[row]), file)
"""


@pytest.fixture
def stratagem(tmp_path):
    path = tmp_path / "stratagem"
    path.write_text(FAKE_STRATAGEM)
    path.chmod(0o755)
    return path


def compare(*arguments, **environment):
    return subprocess.run(
        [sys.executable, str(COMPARE), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def test_fake_stratagem_end_to_end(stratagem, tmp_path):
    out = tmp_path / "peers.json"
    run = compare(
        "--stratagem", stratagem, "--only", "^stratagem/(s|m|pipeline/1f1b/split:(12|8)$)",
        "--rounds", 12, "--out", out,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    content = json.loads(out.read_text())
    # The slower split size is measured in the rounds that choose, and not in those that judge.
    assert len(content["samples"]) == 4 * 2 + 3 * 10
    split_8 = [s for s in content["samples"] if s["contender"] == "stratagem/pipeline/1f1b/split:8"]
    assert [sample["round"] for sample in split_8] == [1, 2]
    assert {tuple(sample["step_ms"]) for sample in content["samples"]} == {
        (100.0, 100.0), (50.0, 50.0), (60.0, 60.0),
    }  # fmt: skip
    ratios = {ratio["name"]: ratio for ratio in content["ratios"]}
    assert ratios["single over model_parallel"]["verdict"] == "at least"
    assert len(ratios["single over model_parallel"]["per_round"]) == 12
    assert ratios["pipeline: over model_parallel"]["faster"] == "stratagem/pipeline/1f1b/split:12"
    assert ratios["pipeline: over model_parallel"]["per_round"] == [2.0] * 9
    assert "2.000  [2.000, 2.000]       9  1.40  at least" in run.stdout
    assert "3 rounds to choose the best, 9 to judge it" in run.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"stratagem", "peers.json"}


def test_an_interrupted_comparison_goes_on(stratagem, tmp_path):
    out = tmp_path / "peers.json"
    options = ("--stratagem", stratagem, "--only", "^stratagem/[sm]", "--rounds", 4, "--out", out)
    assert compare(*options).returncode == 0
    content = json.loads(out.read_text())
    first = [sample for sample in content["samples"] if sample["round"] <= 2]
    for sample in first:
        sample["step_ms"] = [1000.0, 1000.0]
    interrupted = {**content, "samples": first, "finished_rounds": 2, "interrupted": True}
    out.write_text(json.dumps({**interrupted, "failures": {"stratagem/single": "timed out"}}))
    run = compare(*options, "--resume")
    assert run.returncode == 0, run.stderr
    content = json.loads(out.read_text())
    assert [sample["round"] for sample in content["samples"]] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert content["samples"][:4] == first
    assert not content["interrupted"] and not content["failures"]
    for other, why in (
        (("--seed", 2), "its settings is "),
        (("--rounds", 12), "it has another number of --rounds"),
        (("--only", "single$"), "its contenders is "),
    ):
        run = compare(*options, *other, "--resume")
        assert run.returncode == 2
        assert f"cannot resume {out}: {why}" in run.stderr


def test_resuming_needs_a_file(stratagem):
    run = compare("--stratagem", stratagem, "--resume")
    assert run.returncode == 2
    assert "--resume: needs --out" in run.stderr


def test_a_failed_contender_is_named_and_exits_4(stratagem):
    run = compare(
        "--stratagem", stratagem, "--only", "^stratagem/[sm]", "--rounds", 1,
        FAKE_FAILS="model_parallel",
    )  # fmt: skip
    assert run.returncode == 4
    assert (
        "failed: stratagem/model_parallel: before the rounds: exit code 1: "
        "stratagem: rank 1 was lost in 2F0" in run.stdout
    )
    assert "stratagem/single      100.0       -         1" in run.stdout


def test_interrupt_keeps_finished_rounds(stratagem, tmp_path):
    out = tmp_path / "peers.json"
    arguments = ["--stratagem", stratagem, "--only", "single$", "--rounds", "500", "--out", out]
    process = subprocess.Popen(
        [sys.executable, str(COMPARE), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FAKE_SLEEP": "0.05"},
        # Whoever starts the tests in the background has them ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not out.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    content = json.loads(out.read_text())
    assert content["interrupted"]
    assert len(content["samples"]) == content["finished_rounds"] >= 1
    assert "stratagem/single" in stdout
    assert f"interrupted after {content['finished_rounds']} rounds" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--only", "nobody"], 3, "nothing matches --only nobody"),
        (["--only", "("], 2, "not a regular expression"),
        (["--rounds", "0"], 2, "0 is not a whole number of 1 or more"),
        (["--scenario", "train", "--steps", "3"], 2, "--steps: scenario train has none"),
        (["--scenario", "data_parallel", "--splits", "8"], 2, "--splits: scenario data_parallel"),
        (["--scenario", "gpt", "--image", "64"], 2, "--image: scenario gpt has none"),
        (["--scenario", "resnet_ddp", "--splits", "8"], 2, "--splits: scenario resnet_ddp has"),
        (["--splits", "7"], 2, "split 7 does not cut batch 48"),
        (["--cuts", "layer3,layer5"], 2, "no block 'layer5': layer1.1 to layer4.2"),
        (["--scenario", "gpt", "--cuts", "layer3"], 2, "--cuts: scenario gpt has none"),
        (["--splits", "12,"], 2, "not a list of whole numbers"),
        (["--batch", "4", "--splits", "4"], 2, "split 4 does not cut batch 4"),
        (["--out", "no_such_folder/peers.json"], 2, "cannot write no_such_folder"),
        (["--out", "."], 2, ". is a folder"),
        (["--timeout", "0"], 2, "not a number of seconds above 0"),
        (["--scenario", "gpt", "--splits", "3"], 2, "split 3 does not cut batch 8"),
        (["--scenario", "none"], 2, "resnet_single_and_pipeline"),
        (["--devices", "4"], 2, "--devices: scenario resnet_single_and_pipeline has none"),
        (["--scenario", "every_way", "--devices", "1"], 2, "--devices: 1 is not from 2 to 16"),
        (["--scenario", "train", "--device", "cuda"], 2, "--device: scenario train has none"),
    ],
)
def test_bad_usage_is_one_line(arguments, code, message):
    run = compare(*arguments)
    assert run.returncode == code
    assert message in run.stderr
    assert run.stderr.count("\n") == 1
    assert run.stdout == ""


def test_list_names_contenders_commands_and_targets():
    run = compare("--list", "--quick")
    assert run.returncode == 0
    assert "  stratagem/pipeline/1f1b/split:8" in run.stdout
    assert "split:12" not in run.stdout
    assert "LD_PRELOAD=libjemalloc" in run.stdout or "libjemalloc was not found" in run.stdout
    assert "pipeline: over model_parallel: at least 1.40" in run.stdout


def test_both_sides_are_cut_alike():
    run = compare("--list", "--quick", "--cuts", "layer3,layer3.1")
    assert run.returncode == 0
    ours = ("stratagem/pipeline/1f1b", "stratagem/pipeline/ranks:2/zb_h1")
    for name in (*ours, "torch/pipelining/nchw/1f1b", "torch/pipelining/channels_last/1f1b"):
        assert f"  {name}/split:8" in run.stdout
        assert f"  {name}/split:8/cut:layer3.1" in run.stdout
    for program in ("stratagem run", "train.py pipelining"):
        lines = [line for line in run.stdout.splitlines() if program in line]
        assert any("--cut layer3.1 --split-size 8" in line for line in lines)
    # A schedule of four stages has cuts of its own.
    assert "  torch/pipelining/nchw/dualpipe_v/split:8" in run.stdout
    assert "dualpipe_v/split:8/cut:layer3.1" not in run.stdout


def test_the_rows_of_data_parallel_say_what_runs_on_one_device():
    for scenario in ("data_parallel", "data_parallel_gpt"):
        run = compare("--list", "--scenario", scenario)
        assert run.returncode == 0, run.stderr
        assert "  torch/data_parallel_on_one_device/" in run.stdout
        assert "train.py data_parallel --m" in run.stdout
    assert "over our single: no aim" in run.stdout
    assert "our ddp over it: at least 0.87" in run.stdout


def test_a_stage_of_zero_may_cost_so_much_more_than_ddp():
    run = compare("--list", "--scenario", "zero")
    assert run.returncode == 0, run.stderr
    for aim in (
        "zero1: over our ddp: at most 1.00",
        "zero3/no_reshard: over our ddp: at most 1.04",
        "zero3: torch's fsdp as installed: at least 1.40",
        "zero3: torch's fsdp with allocator, oneDNN: at least 1.10",
        "ddp: torch's ddp as installed: no aim",
    ):
        assert f"  {aim}\n" in run.stdout + "\n"
    for command in (
        "--strategy zero3 --no-reshard-after-forward --devices 2",
        "train.py fsdp --no-reshard-after-forward --matmul onednn",
        "train.py zero1 --matmul installed",
    ):
        assert command in run.stdout
    assert "  torch/zero1/onednn/allocator\n" in run.stdout


def test_half_formats_are_to_be_no_slower_than_autocast():
    run = compare("--list", "--scenario", "mixed_precision")
    assert run.returncode == 0, run.stderr
    for line in (
        "bfloat16: PyTorch's autocast as installed over ours: at least 1.00",
        "float16: PyTorch's autocast with allocator over ours: at least 1.00",
        "bfloat16: our float32 over it: at least 1.80",
        "float16: our float32 over it: no aim",
        "torch/autocast/float16/allocator",
    ):
        assert f"  {line}\n" in run.stdout + "\n"
    assert "--strategy single --devices 1 --mixed-precision float16" in run.stdout
    assert "train.py autocast --format float16 --model gpt-small" in run.stdout
    tiny = compare("--list", "--scenario", "mixed_precision_tiny")
    assert "autocast --format bfloat16 --model gpt-tiny" in tiny.stdout
    assert "at least" not in tiny.stdout


def test_a_training_is_no_work_of_a_batch(stratagem, tmp_path):
    out = tmp_path / "peers.json"
    run = compare(
        "--scenario", "train", "--stratagem", stratagem, "--only", "toy_sgd/single", "--rounds", 1,
        "--out", out,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    (sample,) = json.loads(out.read_text())["samples"]
    assert sample["step_ms"] == [62.5, 31.25]
    assert "5 epochs; loader: batch 64 of 3x32x32" in run.stdout
    assert "toy_sgd: batch 32 a rank" in json.loads(out.read_text())["work"]


def test_a_batch_need_not_suit_splits_that_are_not_used():
    assert compare("--scenario", "resnet_ddp", "--batch", "8", "--list").returncode == 0


@pytest.mark.parametrize("name", SCENARIOS)
def test_ratios_of_a_scenario_name_contenders_that_exist(name):
    scenario = SCENARIOS[name].build(Settings())
    names = [contender.name for contender in scenario.contenders]
    assert len(set(names)) == len(names)
    asked = {side for ratio in scenario.ratios for side in (*ratio.slower, *ratio.faster)}
    assert asked == set(names)
    assert all(ratio.slower and ratio.faster for ratio in scenario.ratios)


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_program_takes_the_options_of_its_contenders(name, monkeypatch, tmp_path):
    entry = SCENARIOS[name]
    programs = {"train.py": train, "epochs.py": epochs}
    settings = Settings(batch=entry.batch, splits=entry.splits, workload=tmp_path / "work.pt")
    settings.workload.touch()
    for contender in entry.build(settings).contenders:
        command = contender.timed.command
        (index,) = [at for at, word in enumerate(command) if Path(word).name in programs] or [None]
        if index is not None:
            monkeypatch.setattr(sys, "argv", [*command[index:]])
            programs[Path(command[index]).name].parse_arguments()


def test_only_the_allocator_contenders_preload_it():
    for contender in SCENARIOS["resnet_single_and_pipeline"].build(Settings()).contenders:
        preloads = contender.timed.environment["MALLOC_CONF"] is not None
        assert preloads == contender.name.endswith("/allocator")


def test_the_best_of_both_memory_formats_speaks_for_torch_pipelining():
    scenario = SCENARIOS["resnet_single_and_pipeline"].build(Settings())
    ratios = {ratio.name: ratio for ratio in scenario.ratios}
    candidates = ratios["pipeline: over torch's best with allocator"].slower
    assert {name.split("/")[2] for name in candidates} == {"nchw", "channels_last"}
    assert all(name.endswith("/allocator") for name in candidates)
    schedules = {name.split("/")[3 + ("compiled" in name)] for name in candidates}
    assert schedules == {"gpipe", "1f1b", "interleaved", "interleaved_zero_bubble", "zb_v", "dualpipe_v"}
    # A schedule of four stages takes four micro-batches, and a compiled stage no split backward pass.
    splits = len(Settings.splits)
    assert len(candidates) == 2 * (6 * splits - 2) + 2 * splits


def test_a_compiled_peer_compiles_before_the_rounds():
    contenders = SCENARIOS["gpt"].build(Settings()).contenders
    compiled = [c for c in contenders if "--compile" in c.timed.command]
    assert compiled
    for contender in contenders:
        if contender.name.startswith("torch/"):
            assert (contender.preflight is not None) == (contender in compiled)


def test_tables_show_spread_choice_and_short_coverage():
    samples = [
        Sample(index, 0, name, 1.0, (value,), None, {})
        for index in (1, 2, 3, 4)
        for name, value in (("slow", 30.0), ("first", 40.0), ("second", 10.0 * ((index + 1) // 2)))
    ]
    result = Result(samples, {"gone": "not built"}, finished_rounds=4, selection_rounds=2)
    ratios = [Ratio("r", ("slow",), ("first", "second"), 1.25), Ratio("s", ("slow",), ("first",))]
    lines = contender_table(["slow", "first", "second", "gone"], result).splitlines()
    assert lines[3].split() == ["second", "15", "66.7%", "4", "-"]
    assert lines[4] == "failed: gone: not built"
    text = ratio_table(ratios, result)
    assert "1.500  [1.500, 1.500]       2  1.25  cannot tell" in text
    assert "0.750  [0.750, 0.750]       4     -            -" in text
    assert "covers 50.0% or more; 95% takes six rounds" in text
    assert "r: best is second" in text
    assert answers_as_json(ratios, result)[0]["per_round"] == (1.5, 1.5)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_shows_an_estimate_on_a_terminal_and_nothing_elsewhere():
    contender = SCENARIOS["resnet_single_and_pipeline"].build(Settings()).contenders[0]
    for stream in (Terminal(), io.StringIO()):
        line = ProgressLine(contenders=1, rounds=3, stream=stream)
        line(contender, 1, [contender.name])
        line(contender, 2, [contender.name])
        line.clear()
        assert ("round 2/3  stratagem/single" in stream.getvalue()) == stream.isatty()
        assert ("about 0 s left" in stream.getvalue()) == stream.isatty()
    assert [describe_seconds(s) for s in (40, 700, 6000)] == ["40 s", "12 min", "1 h 40 min"]
