"""Builds a results file of hundreds of rows: splits, schedules and cuts of one pipeline."""

from __future__ import annotations

import fixture_results


def many_rows(count: int = 1000) -> dict:
    """A results file with so many rows of one workload."""
    document = fixture_results.results(failed=False)
    kept = [entry for entry in document["benchmarks"] if entry["run_type"] == "iteration"]
    names = dict.fromkeys(entry["name"] for entry in kept)
    splits = fixture_results.SPLITS
    for index in range(count - len(names)):
        split = splits[index % len(splits)]
        schedule = ("gpipe", "1f1b", "zb_h1")[index // len(splits) % 3]
        cut = index // (3 * len(splits))
        for entry in [item for item in kept if f"/split:{split}/schedule:1f1b" in item["name"]][:3]:
            own = entry["stratagem"]
            name = entry["name"].replace("schedule:1f1b", f"schedule:{schedule}/cut:layer{cut}")
            slower = 1.01 + 0.0003 * index
            extra = {
                "step_ms": [value * slower for value in own["step_ms"]],
                "config": own["config"] | {"schedule": schedule, "cut": f"layer{cut}"},
                "timeline": [],
            }
            document["benchmarks"].append(
                entry | {"name": name, "run_name": name, "stratagem": own | extra}
            )
    return document
