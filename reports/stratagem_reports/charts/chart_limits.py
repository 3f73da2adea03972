"""Keeps charts readable when a file has hundreds of rows: the fastest are drawn, and it is said."""

from ..analysis.labels import row_label, strategy_label
from ..analysis.selection import Selection
from ..results.load import Row

MOST_BARS = 30
MOST_SERIES = 6


def fastest_bars(selection: Selection) -> tuple[list[tuple[str, Row]], str]:
    """The baselines and the fastest rows, labelled, in the order of roles, and words for a caption.

    Baselines come first, then other strategies by time, then each pipeline by split.
    """
    baselines, rows = selection.baselines, labelled(selection)
    if len(rows) <= MOST_BARS:
        return rows, ""
    ranked = [item for item in selection.rows if item not in baselines]
    kept = baselines + ranked[: MOST_BARS - len(baselines)]
    words = f" Shown: the baselines and the fastest of {len(rows):,} rows."
    return [(label, item) for label, item in rows if item in kept], words


def labelled(selection: Selection) -> list[tuple[str, Row]]:
    """Every row with its name beside the others, in the same order."""
    baselines = selection.baselines
    pipelines = [item for line in selection.pipelines for item in line]
    others = [item for item in selection.rows if item not in baselines and item not in pipelines]
    return [(_label(selection, item), item) for item in baselines + others + pipelines]


def without_shared(names: list[str]) -> tuple[list[str], str]:
    """Names without the parts that all of them have, and words for a caption.

    The first part of a name stays.
    """
    parts = [name.split(", ") for name in names]
    shared = [part for part in parts[0][1:] if all(part in own[1:] for own in parts)]
    short = [", ".join(part for part in own if part not in shared) for own in parts]
    return short, f" All rows: {', '.join(shared)}." if shared else ""


def fastest_series(lines: list[list[Row]]) -> tuple[list[list[Row]], str]:
    """The series with the fastest rows in the order given, and words for a caption."""
    if len(lines) <= MOST_SERIES:
        return lines, ""
    ranked = sorted(lines, key=lambda line: min(item.time_ms for item in line))
    kept = ranked[:MOST_SERIES]
    words = f" Shown: the {MOST_SERIES} of {len(lines)} series that hold the fastest rows."
    return [line for line in lines if line in kept], words


def _label(selection: Selection, item: Row) -> str:
    """The row's name beside the others."""
    if item is selection.single_all_cores:
        return "Single, all cores"
    if item.strategy == "pipeline" and len(selection.pipelines) == 1:
        return f"Pipeline, split {item.split_size}"
    return strategy_label("single") if item is selection.single else row_label(item)
