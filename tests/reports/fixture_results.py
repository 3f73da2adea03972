"""Builds plausible results files: ResNet-50 on two CPU devices, as a dictionary of the schema."""

from __future__ import annotations

import random

from fixture_launch import google_benchmark_context, unmeasured
from fixture_timelines import (
    BATCH,
    INPUT_MS,
    OPTIMIZER_MS,
    model_parallel_timeline,
    pipeline_timeline,
    single_timeline,
)

_METRICS = (
    ("real_time", "ms", "lower", False),
    ("items_per_second", "samples/s", "higher", False),
    ("mfu", "fraction", "higher", False),
    ("bubble_measured", "fraction", "lower", False),
    ("peak_memory_bytes", "bytes", "lower", False),
    ("prediction_error", "fraction", "lower", False),
    ("flops_per_step", "FLOP", "lower", True),
    ("bubble_ideal", "fraction", "lower", True),
    ("communication", "calls or bytes", "lower", True),
)
SPLITS = (1, 2, 4, 6, 8, 12, 16, 24)


def simulation(micro_batches: int = 4) -> dict:
    """A simulation file for `stratagem gantt`."""
    timeline, makespan = pipeline_timeline(BATCH // micro_batches)
    return {
        "schema": "stratagem/1",
        "simulation": {
            "title": "1F1B, 2 stages, 4 micro-batches",
            "makespan_ms": makespan,
            "bubble": 0.2,
            "timeline": timeline,
        },
    }


def results(
    protocol: str = "steady",
    splits: tuple[int, ...] = SPLITS,
    failed: bool = True,
    repetitions: int = 7,
) -> dict:
    """A whole results file; the numbers are the same on every call."""
    noise = random.Random(7)
    rows = [
        _row("single", None, step, protocol, repetitions, noise, single_timeline(step), cores)
        for step, cores in ((2160.0, 1), (1335.0, 2))
    ]
    whole = model_parallel_timeline(2195.0)
    rows.append(_row("model_parallel", None, 2195.0, protocol, repetitions, noise, whole))
    for split in splits:
        timeline, makespan = pipeline_timeline(split)
        rows.append(_row("pipeline", split, makespan, protocol, repetitions, noise, timeline))
    benchmarks = [entry for row in rows for entry in row]
    if failed:
        benchmarks.append(_failed_row(protocol))
    return {"context": _context(protocol), "benchmarks": benchmarks}


def plain_launches() -> list[dict]:
    """The launches of model parallelism, of which other fixtures make rows by row_like()."""
    return [
        entry
        for entry in results(failed=False)["benchmarks"]
        if entry["run_type"] == "iteration" and entry["run_name"].startswith("model_parallel")
    ]


def row_like(launches: list[dict], name: str, step_ms: float, config: dict, **own) -> list[dict]:
    """The same launches as another row, whose steps take about `step_ms`."""
    entries = []
    for index, entry in enumerate(launches):
        of = entry["stratagem"]
        own = own | {
            "strategy": name.partition("/")[0],
            "step_ms": [step_ms * (1 + 0.001 * (index - 3))] * len(of["step_ms"]),
            "config": of["config"] | {"strategy": name.partition("/")[0]} | config,
            "timeline": [],
        }
        entries.append(entry | {"name": name, "run_name": name, "stratagem": of | own})
    return entries


def _row(strategy, split, step_ms, protocol, repetitions, noise, timeline=None, cores=1) -> list:
    tutorial = protocol == "tutorial"
    name = f"{strategy}/resnet50/devices:2/batch:{BATCH}/image:128"
    if split:
        name += f"/split:{split}/schedule:1f1b"
    if cores > 1:
        name += f"/cores:{cores}"
    entries = []
    for index in range(repetitions):
        scale = 3.0 if tutorial else 1.0
        count = 1 if tutorial else 2
        steps = [scale * step_ms * (1.0 + noise.gauss(0.0, 0.008)) for _ in range(count)]
        entries.append(
            {
                "name": name,
                "family_index": _family(strategy),
                "per_family_instance_index": 0,
                "run_name": name,
                "run_type": "iteration",
                "repetitions": repetitions,
                "repetition_index": index,
                "threads": 1,
                "iterations": count,
                "real_time": sum(steps) / count,
                "cpu_time": sum(steps) / count,
                "time_unit": "ms",
                "items_per_second": scale * BATCH * 1000.0 * count / sum(steps),
                "stratagem": _own(
                    strategy, split, step_ms, steps, protocol, timeline, cores, index
                ),
            }
        )
    for aggregate in ("mean", "median", "stddev", "cv"):
        entries.append(
            {
                "name": f"{name}_{aggregate}",
                "family_index": _family(strategy),
                "per_family_instance_index": 0,
                "run_name": name,
                "run_type": "aggregate",
                "repetitions": repetitions,
                "threads": 1,
                "aggregate_name": aggregate,
                "aggregate_unit": "percentage" if aggregate == "cv" else "time",
                "iterations": repetitions,
                "real_time": 1.0,
                "cpu_time": 1.0,
                "time_unit": "ms",
                "items_per_second": 1.0,
            }
        )
    return entries


def _family(strategy) -> int:
    return ("single", "model_parallel", "pipeline").index(strategy)


def _own(strategy, split, step_ms, steps, protocol, timeline, cores, index) -> dict:
    pipelined = strategy == "pipeline"
    ideal = 1.0 / (-(-BATCH // split) + 1) if pipelined else 0.0
    if strategy == "model_parallel":
        ideal = 0.5
    return unmeasured() | {
        "strategy": strategy,
        "model": "resnet50",
        "mesh": "pipeline=2" if strategy != "single" else "",
        "samples_per_step": BATCH,
        "config": _config(strategy, split, protocol, cores),
        "step_ms": steps,
        "per_rank_ms": [steps],
        "cpu_ms": sum(steps) / len(steps),
        "devices": _devices(strategy, step_ms, ideal, timeline),
        "timeline": timeline or [],
        "predicted_ms": step_ms * (1.03 if split != 1 else 0.94) if pipelined else None,
        "flops_per_step": 4.1e9 * 3 * BATCH,
        "mfu": 0.62 * 1080.0 / step_ms,
        "loss": [0.0012],
        "marks": ["waited"] if split == 16 and index == 1 else [],
        "verification": {
            "oracle": "single",
            "scope": "batch 8, image 32",
            "max_relative_error": 3.1e-13,
            "tolerance": 1e-9,
            "passed": True,
            "message": "",
            "own_arithmetic": {
                "oracle": "reference kernels in float32 and float64",
                "scope": "layers full size; step full size",
                "max_relative_error": 2.4e-7,
                "tolerance": 3.8e-6,
                "passed": True,
                "message": "",
            },
        },
    }


def _config(strategy, split, protocol, cores) -> dict:
    config = {
        "strategy": strategy,
        "model": "resnet50",
        "device": "cpu",
        "devices": 2,
        "global_batch_size": BATCH,
        "image_size": 128,
        "cores_per_device": cores,
        "dtype": "float32",
        "loss": "mse",
        "optimizer": "sgd",
        "learning_rate": 0.001,
        "momentum": 0.0,
        "seed": 0,
        "steps": 2,
        "repetitions": 7,
        "order": "random",
        "protocol": protocol,
        "inputs": "host",
        "memory_format": "channels_last",
    }
    pipelined = split is not None
    config |= {
        "split_size": split,
        "schedule": "1f1b" if pipelined else None,
        "cut": "layer3" if pipelined else None,
    }
    return config


def _devices(strategy, step_ms, ideal, timeline) -> list[dict]:
    devices = []
    for index in range(1 if strategy == "single" else 2):
        bubble = ideal * step_ms
        if timeline:
            own = [item for item in timeline if item["device"] == index]
            bubble = step_ms - sum(item["end_ms"] - item["start_ms"] for item in own)
        parts = {
            "compute": 0.0,
            "communication_exposed": 9.0 if strategy != "single" else 0.0,
            "communication_hidden": 0.0,
            "wait": 0.0,
            "bubble": bubble,
            "optimizer": OPTIMIZER_MS,
            "input_copy": INPUT_MS if index == 0 else 0.0,
            "other": 0.008 * step_ms,
        }
        parts["compute"] = step_ms - sum(parts.values())
        devices.append(
            {
                "rank": 0,
                "device": index,
                "breakdown_ms": parts,
                "bubble": {"measured": bubble / step_ms, "ideal": ideal},
                "peak_memory_bytes": 3_400_000_000 - 900_000_000 * index,
                "memory_bytes": _memory(3_400_000_000 - 900_000_000 * index),
            }
        )
    return devices


def _memory(peak: int) -> dict:
    """At the peak a tenth of the gradients have yet to be made."""
    state = {"parameters": 100_000_000, "gradients": 100_000_000, "optimizer": 200_000_000}
    at_peak = state | {"gradients": 90_000_000, "communication": 0, "staging": 50_000_000}
    at_peak["other"] = 4_000_000
    at_peak["activations"] = peak - sum(at_peak.values())
    return {
        name: {"peak": state.get(name, held), "at_peak": held, "formula": state.get(name)}
        for name, held in at_peak.items()
    }


def _failed_row(protocol) -> dict:
    name = f"pipeline/resnet50/devices:2/batch:{BATCH}/image:128/split:48/schedule:1f1b"
    return {
        "name": name,
        "family_index": _family("pipeline"),
        "per_family_instance_index": 0,
        "run_name": name,
        "run_type": "iteration",
        "repetitions": 1,
        "repetition_index": 0,
        "threads": 1,
        "iterations": 0,
        "real_time": 0.0,
        "cpu_time": 0.0,
        "time_unit": "ms",
        "error_occurred": True,
        "error_message": "out of memory",
        "stratagem": unmeasured() | {
            "strategy": "pipeline",
            "model": "resnet50",
            "mesh": "pipeline=2",
            "samples_per_step": BATCH,
            "config": _config("pipeline", 48, protocol, 1),
            "error": {
                "rank": 0,
                "host": "localhost",
                "last_action": "0F0",
                "message": "out of memory <allocating 4 GiB>",
            },
        },
    }


def _context(protocol) -> dict:
    return google_benchmark_context() | {
        "stratagem": {
            "schema": "stratagem/1",
            "version": "0.1.0",
            "git_commit": "0123456789abcdef",
            "command_line": f"stratagem run --strategy single,model_parallel,pipeline "
            f"--protocol {protocol}",
            "fingerprint": {
                "hardware": {
                    "cpu_model": "Example EPYC 2-core",
                    "physical_cores": 2,
                    "cores_per_device": 1,
                    "nominal_mhz": 2600,
                    "huge_pages": "always",
                    "allocator": "jemalloc",
                    "numa_nodes": 1,
                },
                "software": {"torch": "2.11.0", "compiler": "g++ 12.2.0", "cuda": ""},
            },
            "calibration": {
                "gemm_gflops": 243.1,
                "convolution_gflops": 231.0,
                "memory_gb_per_s": 18.2,
            },
            "noise": {"governor": "none", "stolen_fraction": 0.0},
            "disturbances": [],
            "metrics": {
                name: {"unit": unit, "better": better, "deterministic": deterministic}
                for name, unit, better, deterministic in _METRICS
            },
        },
    }
