"""What charts of measured rows share: a row's place on an axis, its error bar and its samples."""

from ..analysis.labels import time_text
from ..analysis.selection import Selection
from ..analysis.statistics import describe_deviation, describe_interval
from ..results.load import Row
from .marks import Datum, lines, short

SHIFT = {"expr": "datum.shift"}


def reach(item: Row) -> tuple[float, float]:
    """The error bar in milliseconds; under the tutorial's protocol it is the standard deviation."""
    summary = item.summary
    if item.tutorial:
        return summary.mean - summary.deviation, summary.mean + summary.deviation
    return summary.interval.low, summary.interval.high


def values_ms(item: Row) -> list[float]:
    """Everything of the row that an axis must hold."""
    return [item.time_ms, *reach(item), *item.summary.samples]


def point(item: Row, divisor: float, name: str, error: str, *more: str) -> Datum:
    """The row's "value" with the ends of its error bar, and its words."""
    low, high = reach(item)
    bar = f"{time_text(low)} to {time_text(high)}: {error}"
    return {
        "value": short(item.time_ms / divisor),
        "low": short(low / divisor),
        "high": short(high / divisor),
        "words": lines(name, time_text(item.time_ms), bar, *more),
    }


def samples(item: Row, divisor: float, name: str, width: float = 0.0) -> list[Datum]:
    """Every sample's "value", with a "shift" in pixels that keeps equal ones apart."""
    values = item.summary.samples
    count = len(values)
    places = [(index * 7) % count if count % 7 else index for index in range(count)]
    step = width / max(1, count - 1)
    return [
        {
            "value": short(value / divisor),
            "shift": round(step * place - (width / 2.0 if count > 1 else 0.0), 2),
            "words": lines(name, f"sample: {time_text(value)}"),
        }
        for value, place in zip(values, places, strict=True)
    ]


def axis_title(selection: Selection) -> str:
    """What the charts' times are, with the statistic."""
    return "Mean time of one training call" if selection.tutorial else "Median step time"


def error_label(selection: Selection, rows: list[Row]) -> str:
    """What an error bar of these rows reaches over."""
    describe = describe_deviation if selection.tutorial else describe_interval
    return describe([item.summary.count for item in rows])


def color_key(selection: Selection, item: Row) -> str:
    """The strategy whose colour the row has; that with all cores has a name of its own."""
    return "single_all_cores" if item is selection.single_all_cores else item.strategy
