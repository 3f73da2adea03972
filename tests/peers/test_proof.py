"""Which row of Stratagem a peer's launch is compared with, and what the comparison's answer means."""

import sys

import pytest
from peer_comparison.contender import Contender, Launchable, WrongSteps
from peer_comparison.contenders import Settings, row_of_peer
from peer_comparison.proof import Prover, prepare
from peer_comparison.scenarios import SCENARIOS
from stratagem_reports.comparison.launch import LaunchError, Output

# Answers by what the evidence is.
FAKE_STRATAGEM = f"""#!{sys.executable}
import sys
if sys.argv[1] == "export":
    with open(sys.argv[2], "a") as file:
        print(*sys.argv[3:], file=file)
    sys.exit()
with open(sys.argv[2]) as file:
    evidence = file.read()
if evidence == "right":
    print("one device, like", *sys.argv[3:])
elif evidence == "wrong":
    print(sys.argv[2] + ": the loss of step 0 is 1", file=sys.stderr)
    sys.exit(1)
else:
    sys.exit("out of memory") if evidence == "large" else sys.exit(4)
"""


@pytest.fixture
def stratagem(tmp_path):
    path = tmp_path / "stratagem"
    path.write_text(FAKE_STRATAGEM)
    path.chmod(0o755)
    return path


def contender(row=("--strategy", "single"), **changes):
    return Contender("peer", Launchable((), {}, lambda _: None), row=row, **changes)


def evidence(text):
    return Output("", text, 1.0)


def test_a_right_launch_is_proven_by_its_row(stratagem, tmp_path):
    prove = Prover(stratagem, tmp_path)
    assert prove(contender(), evidence("right")) == "one device, like --strategy single"
    assert prove(contender(row=None), evidence("never read")) == ""


def test_a_launch_that_took_other_steps_is_wrong(stratagem, tmp_path):
    with pytest.raises(WrongSteps, match="did not take the steps of the work: the loss of step 0"):
        Prover(stratagem, tmp_path)(contender(), evidence("wrong"))


@pytest.mark.parametrize("text", ["large", "lost"])
def test_a_launch_that_nobody_can_judge_is_not_wrong(text, stratagem, tmp_path):
    with pytest.raises(LaunchError, match="cannot be proven: exit code") as raised:
        Prover(stratagem, tmp_path)(contender(), evidence(text))
    assert not isinstance(raised.value, WrongSteps)


def test_the_work_is_exported_once_for_each_row(stratagem, tmp_path):
    rows = [("--strategy", "single"), ("--strategy", "ddp"), ("--strategy", "single"), None]
    contenders = [contender(row) for row in rows]
    contenders.append(contender(("--strategy", "zero1"), unavailable="not installed"))
    workload = tmp_path / "work.pt"
    prepare(stratagem, contenders, workload)
    assert workload.read_text().splitlines() == [
        "--strategy single --reference-steps 8", "--strategy ddp --reference-steps 8",
    ]  # fmt: skip


@pytest.mark.parametrize(("options", "row"), [
    ("single --memory-format nchw", "--strategy single"),
    ("tensor_parallel", "--strategy single"),
    ("data_parallel", "--strategy single"),
    ("ddp --static-graph", "--strategy ddp --devices 2"),
    ("zero1", "--strategy ddp --devices 2"),
    ("fsdp", "--strategy ddp --devices 2"),
    ("pipelining --schedule zb_v --split-size 12", "--strategy single --accumulation-steps 4"),
    ("autocast --format float16", "--strategy single --mixed-precision float16"),
])  # fmt: skip
def test_a_peer_normalises_what_its_row_does(options, row):
    words = " ".join(row_of_peer("resnet50", options, Settings()))
    assert words.startswith("--model resnet50 --global-batch-size 48 --image-size 128 ")
    assert words.endswith(row)


def test_replicas_of_one_process_on_gpus_normalise_their_own_samples():
    words = row_of_peer("resnet50", "data_parallel", Settings(device="cuda", devices=4))
    assert words[-4:] == ("--strategy", "ddp", "--devices", "4")


@pytest.mark.parametrize("name", sorted(set(SCENARIOS) - {"train"}))
def test_every_peer_of_a_training_has_a_row_and_leaves_evidence(name):
    entry = SCENARIOS[name]
    for each in entry.build(Settings(batch=entry.batch, splits=entry.splits)).contenders:
        assert (each.row is not None) == each.name.startswith("torch/")
        assert ("--evidence" in each.timed.command) == (each.row is not None)
