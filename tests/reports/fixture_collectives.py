"""Builds a results file as bench_collectives writes it: rows are collectives at message sizes."""

from __future__ import annotations

from fixture_launch import google_benchmark_context, unmeasured

NAMES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "send")
SIZES = (1024, 8192, 65536, 524288, 4194304)
LATENCY_MS = 0.04
GB_PER_S = 3.0


def collectives(names: tuple[str, ...] = NAMES, failed: bool = False) -> dict:
    """A results file; the numbers are the same on every call. `failed`: also a row that did."""
    benchmarks = [
        _entry(name, size, index) for name in names for size in SIZES for index in range(3)
    ]
    if failed:
        benchmarks.append(_failed(names[0], 4 * SIZES[-1]))
    calibration = {f"{name}_latency_ms": LATENCY_MS for name in names}
    calibration |= {f"{name}_gb_per_s": GB_PER_S for name in names if name != "send"}
    return {
        "context": google_benchmark_context() | {
            "stratagem": {
                "schema": "stratagem/1",
                "version": "0.1.0",
                "git_commit": "0123456789abcdef",
                "command_line": "bench_collectives",
                "fingerprint": {"hardware": {"cpu_model": "Example EPYC 2-core"}, "software": {}},
                "calibration": calibration,
                "noise": {},
                "disturbances": [],
                "metrics": {},
            },
        },
        "benchmarks": benchmarks,
    }


def _entry(name: str, size: int, index: int) -> dict:
    time_ms = (LATENCY_MS + size / GB_PER_S / 1e6) * (1.0 + 0.03 * index)
    times = [time_ms * factor for factor in (0.98, 1.0, 1.0, 1.01, 1.05)]
    rate = size / time_ms / 1e6
    factor = 0.5 if name in ("reduce_scatter", "all_gather") else 1.0
    counters = {"bytes": size, "algorithm_gb_per_s": rate, "bus_gb_per_s": factor * rate}
    return _named(name, size, index) | {
        "iterations": len(times),
        "real_time": sum(times) / len(times),
        "items_per_second": 0.0,
        "stratagem": _own(name, size) | {"step_ms": times, "counters": counters},
    }


def _failed(name: str, size: int) -> dict:
    error = {"rank": 1, "host": "", "last_action": "", "message": "no answer"}
    return _named(name, size, 0) | {
        "error_occurred": True,
        "error_message": "no answer",
        "stratagem": _own(name, size) | {"error": error},
    }


def _named(name: str, size: int, index: int) -> dict:
    row = f"{name}/gloo/ranks:2/bytes:{size}"
    return {
        "name": row,
        "family_index": NAMES.index(name),
        "per_family_instance_index": 0,
        "run_name": row,
        "run_type": "iteration",
        "repetitions": 3,
        "repetition_index": index,
        "threads": 1,
        "iterations": 0,
        "real_time": 0.0,
        "cpu_time": 0.0,
        "time_unit": "ms",
    }


def _own(name: str, size: int) -> dict:
    config = {"collective": name, "bytes": size, "device": "cpu", "devices": 2, "backend": "gloo"}
    return unmeasured() | {"strategy": name, "model": "gloo", "config": config}
