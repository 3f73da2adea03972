"""Row summaries worked out the plain way, for results files that no program wrote.

An implementation of its own, by the definitions of docs/explanation/statistics.md and nothing of the package.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
import statistics
from collections import Counter
from itertools import groupby

ROW_OPTIONS = (
    "dtype", "device", "image_size", "sequence_length", "data", "loss", "optimizer", "protocol",
    "inputs", "memory_format", "tf32",
)  # fmt: skip


def summarised(document: dict) -> dict:
    """A copy of a results file in which every row has its summary, whatever it had before."""
    document = copy.deepcopy(document)
    entries = [
        entry for entry in document["benchmarks"] if entry.get("run_type") != "aggregate"
    ]
    for entry in entries:
        entry.setdefault("stratagem", {}).pop("summary", None)
    rows = {}
    for entry in entries:
        rows.setdefault(entry["run_name"], []).append(entry)
    found = {name: _alone(name, launches) for name, launches in rows.items()}
    confidence = 1 - 0.05 / max(1, _pairs(found))
    for name, summary in found.items():
        if summary["error"] is None:
            _beside(name, summary, found, rows, confidence)
    for name, launches in rows.items():
        first = min(launches, key=lambda entry: entry.get("repetition_index", 0))
        first["stratagem"]["summary"] = found[name]
    return document


def _alone(name: str, entries: list[dict]) -> dict:
    launches = [entry["stratagem"] for entry in entries]
    summary = {
        "workload": _workload(name, launches[0]),
        "verification": _verification(launches),
        "marks": list(dict.fromkeys(mark for own in launches for mark in own.get("marks", []))),
        "error": next((text for entry in entries if (text := _error(entry))), None),
    }
    return summary if summary["error"] else summary | _measured(entries, summary["marks"])


def _measured(entries: list[dict], marks: list[str]) -> dict:
    whole = [entry["stratagem"] for entry in entries]
    calm = [one for one in entries if "disturbed" not in one["stratagem"].get("marks", [])]
    entries, disturbed = calm or entries, not calm
    launches = [entry["stratagem"] for entry in entries]
    tutorial = launches[0].get("config", {}).get("protocol") == "tutorial"
    steps = [own.get("step_ms") or [entry["real_time"]] for own, entry in zip(launches, entries)]
    samples = [sum(own) if tutorial else statistics.median(own) for own in steps]
    median = statistics.median(samples)
    spread = (_quantile(samples, 0.9) - _quantile(samples, 0.1)) / median
    predicted = _median([own.get("predicted_ms") for own in launches])
    comparable = not tutorial and not disturbed and "oversubscribed" not in marks
    parts = _breakdown(launches)
    batch = launches[0].get("samples_per_step")
    step_ms = median / len(steps[0]) if tutorial else median
    return _proven(whole) | {
        "samples_ms": samples,
        "mean_ms": statistics.fmean(samples),
        "median_ms": median,
        "deviation_ms": statistics.pstdev(samples),
        "interval_ms": interval_of(samples),
        "spread": spread,
        "wide": len(samples) > 1 and spread > 0.05,
        "outliers": _outliers(samples),
        "bubble": {
            key: _median([_mean_over_devices(own, key) for own in launches])
            for key in ("measured", "ideal")
        },
        "breakdown_ms": parts,
        "communication_share": _shares(parts),
        "samples_per_second": None if batch is None else 1e3 * batch / step_ms,
        "tokens_per_second": _median(
            [own.get("counters", {}).get("tokens_per_second") for own in launches]
        ),
        "mfu": _median([own.get("mfu") for own in launches]),
        "hfu": _median([own.get("counters", {}).get("hfu") for own in launches]),
        "peak_memory_bytes": max(
            (use.get("peak_memory_bytes") or 0 for own in whole for use in _devices(own)),
            default=0,
        ) or None,
        "predicted_ms": predicted,
        "prediction_error": predicted / median - 1 if predicted and comparable else None,
    }


def _pairs(found: dict[str, dict]) -> int:
    """How many pairs of rows there are to tell apart: those of one workload that are ranked."""
    ranked = Counter(summary["workload"] for summary in found.values() if _ranked(summary))
    return sum(math.comb(rows, 2) for rows in ranked.values())


def _beside(
    name: str, summary: dict, found: dict[str, dict], rows: dict[str, list], confidence: float
) -> None:
    """What a row is among the others of its workload."""
    others = {
        other: theirs
        for other, theirs in found.items()
        if theirs["error"] is None and theirs["workload"] == summary["workload"]
    }
    baseline = next((other for other in others if _one_core(other, rows[other][0])), None)
    summary["baseline"] = baseline
    disturbed = {other for other in others if _all_disturbed(rows[other])}
    ratios = {
        other: _ratio(theirs["samples_ms"], summary["samples_ms"], confidence)
        for other, theirs in others.items()
        if other != name
    }
    summary["ratios"] = {
        other: ratio for other, ratio in ratios.items() if not disturbed & {name, other}
    }
    summary["cannot_tell"] = [
        other
        for other, ratio in ratios.items()
        if _ranked(summary) and _ranked(others[other])
        and (other not in summary["ratios"] or "/protocol:tutorial" in summary["workload"]
             or ratio["coverage"] < confidence or ratio["low"] <= 1 <= ratio["high"])
    ]  # fmt: skip


def _all_disturbed(entries: list[dict]) -> bool:
    return all("disturbed" in entry["stratagem"].get("marks", []) for entry in entries)


def _ranked(summary: dict) -> bool:
    return summary["error"] is None and "oversubscribed" not in summary["marks"]


def _ratio(above: list[float], below: list[float], confidence: float) -> dict:
    """The median of all ratios; the ends by counting every way to deal the ranks into two."""
    ratios = sorted(one / two for one in above for two in below)
    tail = _tail(len(above), len(below))
    rank = 1
    while 2 * (rank + 1) <= len(ratios) and 1 - 2 * tail[rank] >= confidence:
        rank += 1
    return {
        "value": statistics.median(ratios),
        "low": ratios[rank - 1],
        "high": ratios[-rank],
        "coverage": max(0.0, 1 - 2 * tail[rank - 1]),
    }


@functools.cache
def _tail(n: int, m: int) -> list[float]:
    """P(U <= 0), P(U <= 1), ... of Mann and Whitney's U."""
    dealt = list(itertools.combinations(range(n + m), n))
    counts = Counter(sum(hand) - n * (n - 1) // 2 for hand in dealt)
    return list(itertools.accumulate(counts[u] / len(dealt) for u in range(n * m + 1)))


def _one_core(name: str, entry: dict) -> bool:
    cores = entry["stratagem"].get("config", {}).get("cores_per_device")
    named = "/cores:" in name
    return name.startswith("single/") and (cores == 1 if cores is not None else not named)


def _workload(name: str, own: dict) -> str:
    config = own.get("config", {})
    tokens = dict(part.split(":", 1) for part in name.split("/") if ":" in part)
    model = own.get("model") or name.split("/")[1]
    parts = [model, f"batch:{config.get('global_batch_size') or tokens.get('batch')}"]
    parts += [f"{key}:{config[key]}" for key in ROW_OPTIONS if config.get(key) is not None]
    return "/".join(parts)


def _error(entry: dict) -> str | None:
    error = entry["stratagem"].get("error")
    if not error and not entry.get("error_occurred"):
        return None
    error = error if isinstance(error, dict) else {"message": error}
    message = str(error.get("message") or entry.get("error_message") or "failed")
    message = " ".join(message.split())
    if "rank" in error:
        message = f"rank {error['rank']}: {message}"
    places = [f"host {error['host']}"] if error.get("host") else []
    places += [f"last action: {error['last_action']}"] if error.get("last_action") else []
    return f"{message} ({', '.join(places)})" if places else message


def _verification(launches: list[dict]) -> str:
    checked = [own["verification"] for own in launches if own.get("verification")]
    if not checked:
        return "not verified"
    return "passed" if all(check["passed"] for check in checked) else "failed"


def _proven(launches: list[dict]) -> dict:
    """Nothing in a file of a program that proved no launch."""
    if not any("proof" in own for own in launches):
        return {}
    proofs = [own.get("proof") or {"passed": False} for own in launches]
    return {"proven": all(one["passed"] and 2 * one["shown"] >= one["entries"] for one in proofs)}


def interval_of(samples: list[float]) -> dict:
    """The narrowest pair of order statistics that holds the median with 95%, else the extremes."""
    ordered, n = sorted(samples), len(samples)

    def coverage(rank: int) -> float:
        return max(0.0, 1 - 2 * sum(math.comb(n, k) for k in range(rank)) / 2**n)

    reaching = [rank for rank in range(2, n // 2 + 1) if coverage(rank) >= 0.95]
    rank = max(reaching, default=1)
    return {"low": ordered[rank - 1], "high": ordered[-rank], "coverage": coverage(rank)}


def _quantile(samples: list[float], fraction: float) -> float:
    ordered = sorted(samples)
    place = fraction * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _outliers(samples: list[float]) -> list[int]:
    first, third = _quantile(samples, 0.25), _quantile(samples, 0.75)
    reach = 1.5 * (third - first)
    return [
        index for index, value in enumerate(samples) if abs(value - (first + third) / 2)
        > (third - first) / 2 + reach
    ]  # fmt: skip


def _devices(own: dict) -> list[dict]:
    return own.get("devices") or []


def _mean_over_devices(own: dict, key: str) -> float | None:
    values = [(use.get("bubble") or {}).get(key) for use in _devices(own)]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _breakdown(launches: list[dict]) -> dict:
    parts = [
        item
        for own in launches
        for use in _devices(own)
        for item in (use.get("breakdown_ms") or {}).items()
    ]
    grouped = groupby(sorted(parts, key=lambda item: item[0]), key=lambda item: item[0])
    means = {key: statistics.fmean(value for _, value in items) for key, items in grouped}
    return {key: means[key] for key in dict.fromkeys(key for key, _ in parts)}


def _shares(parts: dict) -> dict | None:
    hidden = parts.get("communication_hidden", 0.0)
    exposed = parts.get("communication_exposed", 0.0) + parts.get("wait", 0.0)
    whole = sum(parts.values()) - hidden
    if whole <= 0 or exposed + hidden <= 0:
        return None
    return {"exposed": exposed / whole, "hidden": hidden / whole}


def _median(values: list) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
