"""A row's derived numbers, computed once for the page's table, the CSV and the comparisons."""

from __future__ import annotations

from typing import Any

from .chart_data import mean_breakdown
from .load import Row
from .selection import Measured
from .statistics import median_or_none


def bubble(row: Row) -> tuple[float | None, float | None]:
    """The bubble's share of the step, measured and ideal: means over devices and repetitions."""
    devices = [device for repetition in row.repetitions for device in repetition.devices]
    return (
        _mean([device.bubble_measured for device in devices]),
        _mean([device.bubble_ideal for device in devices]),
    )


def communication(item: Measured) -> tuple[float | None, float | None]:
    """Shares of the step that devices stood still for transfers and peers, and that lay hidden."""
    parts = mean_breakdown(item)
    hidden = parts.get("communication_hidden", 0.0)
    whole = sum(parts.values()) - hidden
    exposed = parts.get("communication_exposed", 0.0) + parts.get("wait", 0.0)
    if whole <= 0.0 or exposed + hidden <= 0.0:
        return None, None
    return exposed / whole, hidden / whole


def samples_per_second(row: Row) -> float | None:
    """Training samples a second, the median over repetitions."""
    return median_or_none([repetition.items_per_second for repetition in row.repetitions])


def tokens_per_second(row: Row) -> float | None:
    """Tokens a second where the samples are sequences."""
    return counter(row, "tokens_per_second")


def counter(row: Row, name: str) -> float | None:
    """A counter of the row, the median over repetitions."""
    return median_or_none([item.counters.get(name) for item in row.repetitions])


def model_flops_utilisation(row: Row) -> float | None:
    """Model FLOP/s over the calibrated peak, the median over repetitions."""
    return median_or_none([repetition.mfu for repetition in row.repetitions])


def peak_memory_bytes(row: Row) -> float | None:
    """The most memory over the devices and repetitions."""
    peaks = [
        device.peak_memory_bytes
        for repetition in row.repetitions
        for device in repetition.devices
        if device.peak_memory_bytes
    ]
    return max(peaks, default=None)


def verification(row: Row) -> tuple[str, dict[str, Any]]:
    """The verdict "passed", "failed" or "not verified", and the record it rests on."""
    checked = [item.verification for item in row.repetitions if item.verification is not None]
    bad = [item for item in checked if not item.get("passed")]
    if bad:
        return "failed", bad[0]
    return ("passed", checked[0]) if checked else ("not verified", {})


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
