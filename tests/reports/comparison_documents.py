"""Small results files for the tests of comparisons: rows of launches with chosen step times."""

METRICS = {
    "real_time": {"unit": "ms", "better": "lower", "deterministic": False},
    "flops_per_step": {"unit": "FLOP", "better": "lower", "deterministic": True},
    "communication": {"unit": "calls or bytes", "better": "lower", "deterministic": True},
    "aten_operators": {"unit": "calls", "better": "lower", "deterministic": True},
    "live_micro_batches": {"unit": "count", "better": "lower", "deterministic": True},
}
HARDWARE = {"cpu_model": "Example", "physical_cores": 2}


def document(rows, hardware=None, software=None, commit="abc123", metrics=METRICS):
    """A results file; `rows` maps a name to its launches: lists of `launch(...)`."""
    return {
        "context": {
            "stratagem": {
                "schema": "stratagem/1",
                "git_commit": commit,
                "fingerprint": {
                    "hardware": hardware or HARDWARE,
                    "software": software or {"torch": "2.11.0"},
                },
                "metrics": metrics,
            }
        },
        "benchmarks": [
            _entry(name, index, own)
            for name, launches in rows.items()
            for index, own in enumerate(launches)
        ],
    }


def launch(time_ms, calls=2, operators=100.0, peak=1_000_000, **own):
    """One launch; `calls` of all_reduce, none where 0."""
    communication = {
        "all_reduce": {"calls": calls, "payload_bytes": 8 * calls, "wire_bytes": 8 * calls}
    }
    return {
        "step_ms": [time_ms],
        "counters": {"aten_operators": operators},
        "flops_per_step": 1e9,
        "communication": communication if calls else {},
        "devices": [{"device": 0, "peak_memory_bytes": peak}],
    } | own


def launches(times, **own):
    return [launch(time, **own) for time in times]


def _entry(name, index, own):
    return {
        "name": name,
        "run_name": name,
        "run_type": "iteration",
        "repetition_index": index,
        "real_time": own["step_ms"][0],
        "time_unit": "ms",
        "stratagem": own,
    }
