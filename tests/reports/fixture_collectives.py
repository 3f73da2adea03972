"""Builds a results file as bench_collectives writes it: rows are collectives at message sizes."""

from __future__ import annotations

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
        "context": {
            "date": "2026-01-15T10:20:30+00:00",
            "host_name": "bench",
            "stratagem": {
                "schema": "stratagem/1",
                "version": "0.1.0",
                "command_line": "bench_collectives",
                "fingerprint": {"hardware": {"cpu_model": "Example EPYC 2-core"}},
                "calibration": calibration,
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
        "real_time": sum(times) / len(times),
        "time_unit": "ms",
        "stratagem": _own(name, size) | {"step_ms": times, "counters": counters},
    }


def _failed(name: str, size: int) -> dict:
    return _named(name, size, 0) | {
        "error_occurred": True,
        "error_message": "rank 1 was lost",
        "stratagem": _own(name, size) | {"step_ms": [], "error": {"message": "rank 1 was lost"}},
    }


def _named(name: str, size: int, index: int) -> dict:
    row = f"{name}/gloo/ranks:2/bytes:{size}"
    return {"name": row, "run_name": row, "run_type": "iteration", "repetition_index": index}


def _own(name: str, size: int) -> dict:
    config = {"collective": name, "bytes": size, "device": "cpu", "devices": 2, "backend": "gloo"}
    return {"strategy": name, "model": "gloo", "config": config}
