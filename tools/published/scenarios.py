"""The scenarios of the published figures: commands, as data."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "docs" / "figures"
GPT = "--model gpt-small --devices 2 --global-batch-size 8 --split-size 1 --optimizer adamw"
RESNET = "--model resnet50 --devices 2 --global-batch-size 24 --image-size 128"
SCHEDULES = "gpipe,1f1b,interleaved_1f1b,zb_h1,zb_h2,zb_v,dual_pipe_v,v_half,v_min"
LAUNCHES = "--steps 2 --repetitions 6"
ZERO = "ddp,zero1,zero2,zero3"


@dataclass(frozen=True)
class Scenario:
    """A command that writes one results file. `minutes` is its rough duration on two cores.

    The program takes --out FILE. All but bench_collectives continue an interrupted run with
    --resume.
    """

    name: str
    command: str
    minutes: int

    @property
    def file(self) -> Path:
        """Return the path of the recorded results."""
        return RECORDED / f"{self.name}.json"


def _run(name: str, options: str, minutes: int) -> Scenario:
    return Scenario(name, f"build/bin/stratagem run {options}", minutes)


def _peers(name: str, options: str, minutes: int) -> Scenario:
    return Scenario(name, f"tools/peers/compare --scenario {options}", minutes)


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        _run("main_job", "--preset cpu", 8),
        _run(
            "strategies_resnet50",
            f"--strategy single,model_parallel,pipeline,data_parallel,{ZERO} {RESNET}"
            f" --split-size 4 {LAUNCHES}",
            10,
        ),
        _run(
            "strategies_gpt",
            "--strategy single,model_parallel,pipeline,tensor_parallel,sequence_parallel,"
            f"data_parallel,{ZERO} {GPT} {LAUNCHES}",
            10,
        ),
        _run("schedules", f"--strategy pipeline --schedule {SCHEDULES} {GPT} {LAUNCHES}", 10),
        _run(
            "recomputation",
            f"--strategy single,pipeline,zero3 --recompute none,selective,full {GPT} {LAUNCHES}",
            15,
        ),
        _run(
            "context_length",
            "--strategy single,context_parallel --model gpt-long --devices 2 --global-batch-size 1"
            " --optimizer adamw --sequence-length 512,1024,2048,4096"
            f" --context-exchange heads,ring,gather {LAUNCHES}",
            25,
        ),
        _run(
            "kernels",
            f"--strategy single,pipeline --kernels own,reference {RESNET} --split-size 2,4,6,12"
            f" {LAUNCHES}",
            20,
        ),
        _run("tutorial", "--preset tutorial", 60),
        Scenario("collectives", "build/bin/bench_collectives --max-bytes 64M --repetitions 6", 5),
        _peers("peers_resnet50", "resnet_single_and_pipeline", 400),
        _peers("peers_resnet50_ddp", "resnet_ddp", 60),
        _peers("peers_gpt", "gpt", 90),
        _peers(
            "peers_pipelines_gpt",
            "gpt --splits 1 --only 'stratagem/(single|pipeline/(1f1b|zb_h2|zb_v))|"
            "torch/(1f1b|zb_v|dualpipe_v)/split|torch/single/(installed|onednn)'",
            20,
        ),
        _peers("peers_zero", "zero", 60),
        _peers("peers_zero_resnet50", "zero_resnet", 60),
        _peers("peers_mixed_precision", "mixed_precision --only 'single|bfloat16'", 20),
        _peers("peers_data_parallel", "data_parallel", 60),
        _peers("peers_data_parallel_gpt", "data_parallel_gpt", 40),
        _peers("peers_train", "train", 15),
    )
}
