"""The fields that every launch of a results file has, as of one that measured nothing."""

from __future__ import annotations


def unmeasured() -> dict:
    return {
        "mesh": "",
        "samples_per_step": 0,
        "step_ms": [],
        "per_rank_ms": [],
        "cpu_ms": 0.0,
        "devices": [],
        "timeline": [],
        "predicted_ms": None,
        "predicted_peak_memory_bytes": None,
        "predicted_from": None,
        "communication": {},
        "kernels": None,
        "flops_per_step": 0.0,
        "mfu": None,
        "loss": [],
        "verification": None,
        "proof": None,
        "error": None,
        "conditions": {
            "started": "2026-01-15T10:20:30+00:00", "place": 1,
            "canary_before_ms": [], "canary_after_ms": [], "other_processes_cores": None,
            "own_cores": None,
        },
        "marks": [],
    }  # fmt: skip


def google_benchmark_context() -> dict:
    return {
        "date": "2026-01-15T10:20:30+00:00",
        "host_name": "bench",
        "executable": "stratagem",
        "num_cpus": 2,
        "mhz_per_cpu": 2600,
        "cpu_scaling_enabled": False,
        "caches": [],
        "load_avg": [0.5, 0.25, 0.125],
        "library_build_type": "release",
    }
