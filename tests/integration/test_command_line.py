"""What wrong input is answered with: one line, the contract's exit code, and nothing written."""

from __future__ import annotations

import json
import os
import re

import pytest

# Small enough for a second: two linear layers.
TOY = ["--model", "toy", "--global-batch-size", "20"]

def one_line(text: str) -> str:
    assert text.endswith("\n") and text.count("\n") == 1, text
    return text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["subcommand is missing"]),
        (["rnu"], ['unknown subcommand "rnu"', 'did you mean "run"']),
        (["--verion"], ["unknown option --verion", 'did you mean "--version"']),
        (["list", "modles"], ['did you mean "models"']),
        (["run", "--strategy", "pipelin"], ["--strategy", 'did you mean "pipeline"']),
        (["run", "--model", "resnet51"], ["--model", 'did you mean "resnet50"']),
        (["run", "--strategy", "pipeline", "--schedule", "1f2b"], ["--schedule", "1f1b"]),
        (["run", "--devces", "2"], ["--devces", "--devices"]),
        (["verify", "--steps", "3"], ["unknown option --steps"]),
        (["verify", "--out", "x.json"], ["unknown option --out"]),
        (["calibrate", "--model", "toy"], ["unknown option --model"]),
        (["calibrate", "--devices", "1,2"], ["make 2 rows", "one is expected"]),
        (["export", "nowhere/x.pt", "--strategy", "single,ddp"], ["make 2 rows", "one is expected"]),
        (["export", "nowhere/x.pt", "--model", "toy"], ["cannot write nowhere/x.pt"]),
        (["prove", "nowhere.json", "--model", "toy"], ["cannot read nowhere.json"]),
        (["run", "--device", "tpu"], ["--device", "cpu"]),
        (["run", "--strategy", "pipeline", "--split-size", "0"], ["--split-size", "0"]),
        (["run", "--strategy", "pipeline", "--split-size", "-3"], ["--split-size", "-3"]),
        (["run", "--strategy", "pipeline", "--split-size", "many"], ["--split-size", "many"]),
        (
            ["run", "--strategy", "pipeline", "--global-batch-size", "8", "--split-size", "9"],
            ["--split-size", "9", "8"],
        ),
        (["run", "--split-size", "4"], ["--split-size", "pipeline"]),
        (
            ["run", *TOY, "--strategy", "pipeline", "--split-size", "5", "--cut", "layer9"],
            ["--cut", "layer9"],
        ),
        (
            ["run", "--strategy", "pipeline", "--image-size", "2"],
            ["--image-size", "2", "too small"],
        ),
        (
            ["run", *TOY, "--strategy", "model_parallel", "--devices", "9", "--oversubscribe"],
            ["9 stages", "toy"],
        ),
        (
            ["run", *TOY, "--strategy", "model_parallel", "--devices", "1000"],
            ["--devices 1000", "--oversubscribe"],
        ),
        (["run", "--resume"], ["--resume", "--out"]),
        (["run", "--devices=", "--quiet"], ["--devices: the value is empty"]),
        (["run", "--model", "script:"], ['--model "script:": expected script:FILE']),
        (["run", *TOY, "--strategy", "ddp", "--device-ids", "0+999"], ["--device-ids 0+999 with 1 core each"]),
        (["train", "--model", "toy", "--resume", "/"], ["--resume /: is a folder"]),
        (
            ["run", *TOY, "--rank", "0", "--world-size", "2", "--init-method", "file:///nowhere/x"],
            ["--init-method file:///nowhere/x: the folder /nowhere does not exist"],
        ),
        (["run", "--config", "/nonexistent.json"], ["/nonexistent.json"]),
        (["simulate", "--schedule", "zigzag"], ["--schedule: ", "zigzag", "1f1b"]),
        (["simulate", "--stages", "0"], ["--stages 0: expected 1 or more"]),
        (["simulate", "--forward-ms", "1+2+3"], ["--forward-ms", "3 values for 2 stages"]),
        (["simulate", "--micro-batches", "0"], ["micro-batch"]),
        (["simulate", "--schedule", "zb_v", "--virtual-stages", "3"], ["--virtual-stages 3: zb_v always has 2"]),
        (["simulate", "--live-micro-batches", "3"], ["has no effect on 1f1b; it applies to --schedule zb_auto"]),
        (["simulate", "--schedule", "zb_auto", "--live-micro-batches", "-1"], ["-1 is out of range; expected 0 or more"]),
        (
            ["run", "--strategy", "pipeline", "--schedule", "zb_h1", "--live-micro-batches", "2"],
            ["--live-micro-batches", "zb_auto"],
        ),
        (
            ["run", "--strategy", "pipeline", "--schedule", "zb_auto", "--pass-times", "2,1"],
            ["--pass-times 2: expected the times"],
        ),
        (
            ["run", "--strategy", "pipeline", "--schedule", "zb_v", "--virtual-stages", "2"],
            ["--virtual-stages", "interleaved_1f1b"],
        ),
        (["simulate", "--stages", "1000000000", "--micro-batches", "1000000000"], ["GiB", "smaller"]),
        (["simulate", "--stages", "99999999999"], ['--stages: "99999999999" is not a valid number']),
        (["simulate", "--schedule", "1f1b", "--schedule-file", "x.csv"], ["give one of them"]),
        (["simulate", "--schedule-file", "nowhere.csv"], ["cannot read nowhere.csv"]),
        (["simulate", "--link-ms", "1e400"], ["--link-ms: inf is out of range; expected 0 to 1e+12"]),
        (["simulate", "--forward-ms", "1e308"], ['--forward-ms: "1e308"', "0 to 1e+12"]),
        (["run", *TOY, "--model", "linear"], ["--model: given 2 times; give it once"]),
        (["run", *TOY, "--out", "r.json", "--trace", "./r.json"], ["two outputs share ./r.json"]),
        (["train", "--model", "toy", "--checkpoint-dir", "/dev/null"], ["--checkpoint-dir /dev/null"]),
        (
            ["run", *TOY, "--strategy", "pipeline", "--mesh", "data=2", "--partition", "flops"],
            ["--partition flops: the row has one stage"],
        ),
        (["run", *TOY, "--timeout", "1e300"], ["--timeout: 1e300 is out of range"]),
        (["doctor", "--device", "gpu"], ["unknown option --device"]),
        (["list", "models", "mlp"], ['unexpected argument "mlp"']),
        (["run", "--strategy"], ["--strategy: the value is missing; expected --strategy NAME"]),
        (["export", "--reference-steps", "-1", "x.pt"], ["--reference-steps: -1 is out of range; expected 0 to 1000"]),
        (
            ["run", "--model", "resnet18", "--image-size", "65536", "--global-batch-size", "9"],
            ["--global-batch-size 9: needs 432.0 GiB of memory"],
        ),
        (
            ["run", "--model", "linear", "--features", "1000000000", "--outputs", "1000000000"],
            ["--model linear: needs 3725290302.2 GiB of memory"],
        ),
        (["simulate", "--chart", "chart.gif"], ["--chart", ".png or .svg"]),
        (["simulate", "--calibrated=3"], ['--calibrated: unknown value "3"; a switch takes no value']),
        (["run", "--quiet=3"], ['--quiet: unknown value "3"', "true or false"]),
        (["run", "--no-predict=maybe"], ['--no-predict: unknown value "maybe"', "true or false"]),
        (["list", "--json=on"], ['--json: unknown value "on"', "true or false"]),
        (["report", "/nonexistent.json"], ["/nonexistent.json"]),
        (["schema", "resluts"], ["resluts", "results", "history"]),
        (["worker"], ["worker"]),
    ],
    ids=lambda value: " ".join(value) if value and value[0] in {"run", "simulate"} else None,
)
def test_wrong_input_is_one_line_and_exit_2(commands, arguments, words):
    done = commands.stratagem(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    line = one_line(done.stderr)
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"spilt_size": 4}', ["spilt_size", "split_size"]),
        ('{"split_size": "four"}', ["split_size"]),
        ('{"split_size": [4', ["grid.json"]),
        ('{"steps": 2, "steps": 3}', ["grid.json", 'the key "steps" occurs twice; keep one']),
        ("[]", ["grid.json"]),
    ],
)
def test_wrong_config_file(commands, tmp_path, text, words):
    path = tmp_path / "grid.json"
    path.write_text(text)
    done = commands.stratagem("run", "--strategy", "pipeline", "--config", path)
    assert done.returncode == 2
    line = one_line(done.stderr)
    for word in words:
        assert word in line


def test_evidence_with_an_entry_twice_is_one_line(commands, tmp_path):
    path = tmp_path / "evidence.json"
    path.write_text('{"loss": [0.5], "state": {"net1.bias": {}, "net1.bias": {}}}')
    done = commands.stratagem("prove", path, *TOY, "--strategy", "single")
    assert done.returncode == 2
    assert f'{path}: the key "net1.bias" occurs twice' in one_line(done.stderr)


def test_a_loss_that_is_not_finite_names_its_step(commands):
    done = commands.stratagem("run", *TOY, "--strategy", "single", "--learning-rate", "1e30",
                              "--no-verify", "--no-predict")  # fmt: skip
    assert done.returncode == 4
    assert "the loss of timed step 0 is" in done.stderr
    assert "a smaller --learning-rate may help" in done.stderr


def test_a_schedule_file_of_another_size_is_refused_before_measuring(commands, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("0F0,0B0\n")
    done = commands.stratagem("run", *TOY, "--strategy", "pipeline", "--split-size", 10,
                              "--schedule", f"csv:{path}")  # fmt: skip
    assert done.returncode == 2
    assert "are 1 and 1; expected 2 and at least 2" in one_line(done.stderr)


@pytest.mark.parametrize("out", ["missing/results.json", "."])
def test_an_output_that_cannot_be_written_is_said_before_measuring(commands, tmp_path, out):
    path = tmp_path / out
    before = sorted(tmp_path.rglob("*"))
    done = commands.stratagem("run", *TOY, "--out", path)
    assert done.returncode == 2
    assert str(path) in one_line(done.stderr)
    assert sorted(tmp_path.rglob("*")) == before


def test_help_and_version(commands):
    helped = ("run", "simulate", "schema")
    for arguments in (["--help"], *([name, "--help"] for name in helped), ["--version"]):
        done = commands.stratagem(*arguments)
        assert done.returncode == 0, arguments
        assert done.stdout and not done.stderr
    help_text = commands.stratagem("run", "--help").stdout
    for option in ("--split-size", "--strategy", "--resume", "--out", "--preset"):
        assert option in help_text


@pytest.mark.parametrize("name", ["list", "doctor", "simulate", "export", "run", "train"])
def test_help_uses_one_notation_and_hides_what_only_compare_gives(commands, name):
    text = commands.stratagem(name, "--help").stdout
    assert "print this page" in text and "--turns" not in text
    assert not re.search(r"^ +--\S+ (INT|TEXT:|\w+:(NONNEGATIVE|POSITIVE))", text, re.MULTILINE)
    bare = re.findall(r"^ +(--\S+)  +\w.*\[\d", text, re.MULTILINE)
    assert not bare, "an option with a default has a value"


def test_list(commands):
    listing = json.loads(commands.stratagem("list", "--json").stdout)
    assert set(listing) == {"strategies", "models", "datasets", "schedules", "devices", "benchmarks"}
    names = {what: {entry["name"] for entry in entries} for what, entries in listing.items()}
    assert {"single", "model_parallel", "pipeline"} <= names["strategies"]
    assert {"resnet50", "resnet18", "mlp", "toy"} <= names["models"]
    assert {"images", "tokens", "mnist"} <= names["datasets"]
    assert {"naive", "gpipe", "1f1b"} <= names["schedules"]
    assert "cpu:0" in names["devices"]
    assert all(entry["summary"] for entry in listing["strategies"] + listing["models"])


def test_doctor_gives_every_warning_a_remedy(commands):
    done = commands.stratagem("doctor")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) >= 10
    for line in lines:
        assert line.startswith(("ok ", "warn ")), line
        assert line.startswith("ok ") or ": " in line


def test_turns_need_one_row_and_somebody_who_gives_them(commands, tmp_path):
    done = commands.stratagem(
        "run", *TOY, "--strategy", "single,ddp", "--repetitions", "1", "--turns", "absent"
    )
    assert done.returncode == 2
    assert "--turns" in one_line(done.stderr) and "--only" in done.stderr
    absent = tmp_path / "absent"
    done = commands.stratagem(
        "run", *TOY, "--strategy", "ddp", "--repetitions", "1", "--turns", absent, "--quiet"
    )
    assert done.returncode == 4
    assert f"--turns {absent}: cannot connect" in done.stderr


def test_simulate(commands, tmp_path):
    path = tmp_path / "simulation.json"
    done = commands.stratagem(
        "simulate", "--stages", 3, "--micro-batches", 6, "--schedule", "gpipe", "--out", path
    )
    assert done.returncode == 0
    assert "makespan" in done.stdout and "device 2" in done.stdout
    document = json.loads(path.read_text())
    assert document["schema"] == "stratagem/1"
    simulation = document["simulation"]
    # Two ramps of two stages around six micro-batches of 1 + 2 ms.
    assert simulation["makespan_ms"] == pytest.approx((6 + 3 - 1) * 3)
    assert simulation["bubble"] == pytest.approx(2 / 8)
    kinds = [event["kind"] for event in simulation["timeline"]]
    assert kinds.count("forward") == kinds.count("backward") == 18


@pytest.mark.parametrize(("limit", "backward"), [("1", "2"), ("4", "2"), ("8", "5")])
def test_a_searched_order_has_the_bubble_that_is_called_ideal(commands, limit, backward):
    """The order is searched for the given times and room, and so is its ideal bubble."""
    run = commands.stratagem(
        "simulate", "--schedule", "zb_auto", "--stages", "4", "--micro-batches", "12",
        "--live-micro-batches", limit, "--backward-ms", backward,
    )  # fmt: skip
    measured, ideal = re.search(r"bubble +([\d.]+)% .* ideal ([\d.]+)%", run.stdout).groups()
    assert measured == ideal
    assert float(ideal) > 0 or limit == "8"


def test_simulate_writes_a_trace(commands, tmp_path):
    path = tmp_path / "trace.json"
    done = commands.stratagem("simulate", "--schedule", "zb_v", "--stages", 4, "--trace", path)
    assert done.returncode == 0, done.stderr
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["name"] for event in events if event["ph"] == "X"}
    assert {"F0 s0", "I3 s3", "W0 s2"} <= names
    processes = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert processes == ["zb_v: 4 stages, 4 micro-batches"]


def test_an_order_from_a_file_is_simulated_and_run(commands, tmp_path):
    order = tmp_path / "order.csv"
    order.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    row = ["--schedule", f"csv:{order}"]
    done = commands.stratagem("simulate", *row, "--stages", 2, "--micro-batches", 2)
    assert done.returncode == 0, done.stderr
    assert "makespan  9 ms" in done.stdout  # as 1f1b
    out = tmp_path / "r.json"
    done = commands.stratagem(
        "run", *TOY, *row, "--strategy", "pipeline", "--split-size", "10", "--no-predict",
        "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    runs = [entry["stratagem"] for entry in json.loads(out.read_text())["benchmarks"]
            if entry["run_type"] == "iteration"]
    assert any(run["config"]["schedule"] == f"csv:{order}" for run in runs if "config" in run)
    order.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,1Q1\n")
    done = commands.stratagem("simulate", *row, "--stages", 2)
    assert done.returncode == 2
    assert 'line 2, cell 5: "1Q1" is not an action' in one_line(done.stderr)


def test_an_order_that_is_not_valid_is_drawn(commands, tmp_path):
    """The picture is on standard output; the error stays one line."""
    order = tmp_path / "order.csv"
    order.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    done = commands.stratagem("simulate", "--schedule-file", order)
    assert done.returncode == 0, done.stderr
    assert f"csv:{order}: 2 stages, 2 micro-batches\nmakespan  9 ms\n" in done.stdout
    order.write_text("0F0,0F1,0B0,0B1\n1F0,1F1,1B1\n")
    for row in (["--schedule-file", order], ["--schedule", f"csv:{order}"]):
        done = commands.stratagem("simulate", *row)
        assert done.returncode == 2
        assert "is not valid: 1B0 is missing" in one_line(done.stderr)
        assert done.stdout.splitlines() == [
            "device 0 | 0F0  0F1 [0B0] 0B1",
            "device 1 | 1F0  1F1  1B1",
            "device 1: 1B0 is missing",
            "device 0 waits at 0B0 for 1B0 on device 1, which is not in the order",
        ]
    done = commands.stratagem("simulate", "--schedule-file", order, "--out", "-")
    assert done.returncode == 2 and not done.stdout


@pytest.mark.parametrize(("option", "value", "makespan"), [
    ("--link-latency-ms", 0.25, 6.5),
    ("--link-ms", 0.5, 7),
    ("--optimizer-ms", 0.75, 6.75),
])
def test_simulate_counts_transfers_and_the_optimizer(commands, option, value, makespan):
    """One micro-batch goes forward and back: two stages of 1 + 2 ms, two transfers, an optimizer."""
    row = ["--schedule", "gpipe", "--stages", 2, "--micro-batches", 1]
    done = commands.stratagem("simulate", *row, option, value, "--out", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["simulation"]["makespan_ms"] == pytest.approx(makespan)


def test_simulate_a_million_actions(commands):
    """A step of 128 stages and 2048 micro-batches fits in 100 MB: 64 bytes an action or so."""
    row = ["--stages", 128, "--micro-batches", 2048, "--forward-ms", 10, "--backward-ms", 20]
    limited = ["bash", "-c", 'ulimit -v 200000; exec "$@"', "-", commands.programs / "stratagem"]
    done = commands.finish(commands.start_command([*limited, "simulate", *row]))
    assert done.returncode == 0, done.stderr
    assert "makespan  65250 ms" in done.stdout


def test_simulate_draws_a_chart(commands, tmp_path):
    pytest.importorskip("vl_convert", reason="the charts need vl-convert-python")
    chart = tmp_path / "chart.svg"
    done = commands.stratagem("simulate", "--chart", chart)
    assert done.returncode == 0, done.stderr
    assert "<svg" in chart.read_text()[:2000]


def test_simulate_from_calibrated_costs(commands, tmp_path):
    path = tmp_path / "simulation.json"
    done = commands.stratagem(
        "simulate", "--calibrated", *TOY, "--split-size", "5", "--out", path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["simulation"]["makespan_ms"] > 0


def test_simulate_one_replica_of_one_process(commands):
    row = [*TOY, "--strategy", "data_parallel", "--devices", "1"]
    done = commands.stratagem("simulate", "--calibrated", *row)
    assert done.returncode == 0, done.stderr


def test_simulate_replicas_with_their_transfers(commands, tmp_path):
    path = tmp_path / "simulation.json"
    options = ["simulate", "--calibrated", *TOY, "--strategy", "ddp", "--out", path]
    done = commands.stratagem(*options)
    assert done.returncode == 0, done.stderr
    assert "exposed" in done.stdout and "link |" in done.stdout
    simulation = json.loads(path.read_text())["simulation"]
    events = simulation["timeline"]
    for device in (0, 1):
        own = [event for event in events if event["device"] == device]
        transfers = [event for event in own if event["kind"] == "all_reduce"]
        assert transfers and transfers[-1]["end_ms"] > transfers[0]["start_ms"]
    exposed, hidden = (simulation[f"communication_{kind}_ms"] for kind in ("exposed", "hidden"))
    assert exposed + hidden > 0


def test_simulate_names_what_it_has_no_model_of(commands):
    done = commands.stratagem("simulate", "--calibrated", *TOY, "--strategy", "tensor_parallel")
    assert done.returncode == 2
    assert "tensor_parallel" in one_line(done.stderr)


def test_the_chart_of_a_large_schedule_shows_what_fills_each_character(commands):
    done = commands.stratagem(
        "simulate", "--stages", 128, "--micro-batches", 512, "--forward-ms", 10,
        "--backward-ms", 20,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("device ")]
    assert len(lines) == 40
    assert {len(line) for line in lines} == {100}
    assert lines[0].startswith("device   0 |") and lines[-1].startswith("device 127 |")
    assert all(line.count("#") > line.count("=") for line in lines), "most of the time is backward"
    assert "40 of 128 devices" in done.stdout


def test_too_few_open_files_are_named(commands):
    program = commands.programs / "stratagem"
    script = f"ulimit -n 16; exec {program} run --strategy single --model toy"
    done = commands.finish(commands.start_command(["bash", "-c", script]))
    assert done.returncode != 0
    assert "too many open files; raise the limit: ulimit -n" in one_line(done.stderr)


def test_anonymous_results_name_neither_host_nor_folder_nor_variable(commands, tmp_path):
    out = tmp_path / "r.json"
    config = tmp_path / "row.json"
    config.write_text(json.dumps({"model": "toy", "global_batch_size": 20, "strategy": "single"}))
    options = ["--config", config, "--repetitions", 1, "--no-predict", "--out", out]
    done = commands.stratagem("run", *options, "--anonymous", OMP_EXAMPLE="secret")
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    for word in (str(tmp_path), str(commands.programs), "OMP_EXAMPLE"):
        assert word not in text
    context = json.loads(text)["context"]
    assert context["host_name"] == ""
    assert "--config row.json" in context["stratagem"]["command_line"]
    assert context["caches"] or not os.path.exists("/sys/devices/system/cpu/cpu0/cache/index0")
    software = context["stratagem"]["fingerprint"]["software"]
    assert software["torch_build_id"] and software["compiler_flags"]
