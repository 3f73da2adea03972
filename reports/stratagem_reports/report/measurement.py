"""What the times mean, in words that follow from the rows' own options."""

from ..analysis.labels import counted, listing, percent, time_text
from ..analysis.selection import working_rows
from ..results.load import Results

_TUTORIAL = (
    "Under the tutorial's protocol a sample is one whole training call: three batches with their "
    "data made inside, on a new model, no warm-up; forward, backward and optimizer with the copies "
    "they need. Bars are means with the standard deviation over the repetitions; ranking still "
    "takes the interval of the median."
)


def how_it_was_measured(results: Results) -> list[str]:
    """What is inside the timed region, how launches and rounds went, and what the spread says."""
    protocols = _values(results, "protocol") or ["steady"]
    words = []
    if "steady" in protocols or "isolated" in protocols:
        words += _steps(results, protocols)
    if "tutorial" in protocols:
        words.append(_TUTORIAL)
    words += _kernels(results)
    words += _rounds(results)
    words += _noise(results)
    words.append(
        "Intervals come from this run alone: another run on another day may differ by more. Two "
        "rows are ranked where a test on their launches tells them apart, with 95% for all pairs."
    )
    words += _predictions(results)
    return words


def _kernels(results: Results) -> list[str]:
    """Whose kernels computed on CPUs, where not Stratagem's own in all rows."""
    words = []
    if "reference" in _values(results, "kernels"):
        words.append("Rows with kernels:reference computed with ATen's functions alone.")
    for row in results.rows:
        if row.left_to_aten:
            words.append(f"{row.name} computed with these kernels: {row.left_to_aten}.")
    return words


def _predictions(results: Results) -> list[str]:
    """What the predictions were made of, and which are not to be trusted, and why."""
    known = [
        (row.name, launch.predicted_from, row.summary.predicted_ms)
        for row in results.rows
        for launch in row.repetitions[:1]
        if launch.predicted_from
    ]
    bases = [(name, basis) for name, basis, _ in known]
    if not bases:
        return []
    oldest_s = max(basis.age_s for _, basis in bases)
    when = "in this run" if oldest_s == 0.0 else f"{time_text(1e3 * oldest_s)} before"
    words = [f"Predictions are made from stage costs that were measured {when}."]
    spreads = [
        (basis.low_ms / step - 1, basis.high_ms / step - 1)
        for _, basis, step in known
        if step and basis.low_ms and basis.high_ms
    ]
    if spreads:
        low, high = min(low for low, _ in spreads), max(high for _, high in spreads)
        words.append(
            f"With the quartiles of the costs they are {percent(abs(low))} shorter to "
            f"{percent(high)} longer."
        )
    doubts = [f"{name} ({basis.doubt})" for name, basis in bases if basis.doubt]
    if doubts:
        words.append(f"Unreliable predictions: {'; '.join(doubts)}.")
    return words


def _noise(results: Results) -> list[str]:
    """What disturbed the machine, and which rows scatter too much for a small claim."""
    others = [line for line in results.stratagem.disturbances if not line.startswith("launches: ")]
    words = [f"Disturbed by {line}." for line in others]
    launches = [launch for row in results.rows for launch in row.repetitions]
    disturbed = sum(launch.disturbed for launch in launches)
    if disturbed:
        words.append(
            f"{disturbed} of {counted(len(launches), 'launch')} were disturbed; intervals leave them "
            "out where a row has others."
        )
    measured = [row.summary for row in working_rows(results)]
    wide = [summary.spread for summary in measured if summary.wide]
    if wide:
        words.append(
            f"{len(wide)} of {len(measured)} rows scatter by {percent(min(wide), 0)} to "
            f"{percent(max(wide), 0)} (middle four fifths); smaller differences are not reliable."
        )
    outliers = sum(len(summary.outliers) for summary in measured)
    if outliers:
        noun = "sample lies" if outliers == 1 else "samples lie"
        words.append(
            f"{outliers} {noun} beyond Tukey's fences (1.5 interquartile ranges); marked, and "
            "counted like any other."
        )
    return words


def _steps(results: Results, protocols: list[str]) -> list[str]:
    inputs = _values(results, "inputs") or ["host"]
    copy = {
        "host": "the copy of the input from the host's memory to the device",
        "device": "no input copy, because the inputs already lie on the device",
    }
    inside = " or ".join(copy.get(item, item) for item in inputs)
    words = [
        f"A step's time holds {inside}; forward, backward and the optimizer's update; and every "
        "transfer and all waiting between devices. It is the maximum over ranks.",
        "Set-up, verification against the oracle and warm-up steps lie outside the timed region.",
    ]
    if "steady" in protocols:
        words.append("Steps follow each other without synchronisation in between (steady).")
    if "isolated" in protocols:
        words.append("Devices are synchronised around every step (isolated).")
    return words


def _rounds(results: Results) -> list[str]:
    orders = _values(results, "order") or ["random"]
    repetitions = sorted({len(row.repetitions) for row in results.rows if row.repetitions})
    samples = sorted({row.summary.count for row in working_rows(results)})
    if not repetitions:
        return []
    if _values(results, "protocol") == ["tutorial"]:
        return [f"{_span(repetitions)} repetitions of every row, all in one launch of the row."]
    order = "in random order, so that drift does not draw the curve"
    if orders == ["block"]:
        order = "row after row (block order), so that drift may look like a difference"
    return [
        f"Each launch is a fresh set of processes. A round launches every row once; "
        f"{_span(repetitions)} rounds, {order}; {_span(samples)} samples a row.",
    ]


def _values(results: Results, key: str) -> list[str]:
    """The option's values over all rows, each once."""
    found = (row.option(key) for row in results.rows)
    return list(dict.fromkeys(str(value) for value in found if value is not None))


def _span(counts: list[int]) -> str:
    return listing([str(count) for count in counts])
