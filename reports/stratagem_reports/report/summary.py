"""The report's words: who wins, by how much, how sure, and how well it was predicted."""

from dataclasses import dataclass

from ..analysis.labels import counted, listing, percent, row_label, time_text
from ..analysis.selection import Selection, working_rows
from ..analysis.statistics import distinguishable, rivals, speed_up
from ..results.load import Results, Row
from ..results.row_summary import Ratio


@dataclass(frozen=True)
class Figure:
    """One headline number: what it is, the number, and what belongs beside it."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class PredictionError:
    """Relative errors of predicted step times over rows, and the split of the worst."""

    mean_absolute: float
    worst: float
    worst_split: int | None


def first_place(selection: Selection) -> str:
    """Return the verdict on the first row: it is the fastest only if it differs significantly from
    every other."""
    what = "mean" if selection.tutorial else "median"
    if len(selection.rows) == 1:
        return what
    return f"lowest {what}" if rivals(selection.rows[0], selection.rows) else "fastest"


def headlines(selection: Selection) -> list[Figure]:
    """The few numbers that stand at the top; none when no row worked."""
    if not selection.rows:
        return []
    fastest = selection.rows[0]
    found = [Figure(first_place(selection).capitalize(), time_text(fastest.time_ms), short_label(selection, fastest))]
    pipeline = selection.best_pipeline
    if pipeline and pipeline is not fastest:
        label = short_label(selection, pipeline)
        found.append(Figure("Best split", time_text(pipeline.time_ms), label))
    chosen = pipeline or fastest
    name = f"Split {chosen.split_size}" if pipeline else short_label(selection, chosen)
    for words, ratio in _over_baselines(selection, chosen).items():
        note = f"{name}; {ratio.low:.2f} to {ratio.high:.2f}"
        found.append(Figure(f"Over {words.removeprefix('the ')}", _times(ratio), note))
    error = error_of_predictions(selection)
    if error:
        note = f"mean; worst {error.worst:+.1%} at split {error.worst_split}"
        found.append(Figure("Prediction error", percent(error.mean_absolute), note))
    return found


def sentences(results: Results, selection: Selection) -> list[str]:
    """The summary as sentences, the most important first."""
    if not selection.rows:
        return [
            "No row gave a time that can be ranked; the table has what is known.",
            *_state(results),
        ]
    return [
        *_winner(selection),
        *_pipeline(selection),
        *_all_cores(selection),
        *_waits(selection),
        *_predictions(selection),
        *_state(results),
        *selection.notes,
    ]


def short_label(selection: Selection, item: Row) -> str:
    """The row's label, or its role's name for the all-cores baseline."""
    return "Single, all cores" if item is selection.single_all_cores else row_label(item)


def error_of_predictions(selection: Selection) -> PredictionError | None:
    """The simulator's error over all pipeline rows; None where no prediction can be compared."""
    errors = [
        (item.summary.prediction_error, item.split_size)
        for line in selection.pipelines
        for item in line
        if item.summary.prediction_error is not None
    ]
    if not errors:
        return None
    worst, split = max(errors, key=lambda item: abs(item[0]))
    return PredictionError(sum(abs(error) for error, _ in errors) / len(errors), worst, split)


def _waits(selection: Selection) -> list[str]:
    """Who waited for whom: devices that spent a good part of the step in another's absence."""
    worth_telling = 0.05
    found = []
    for item in selection.rows:
        waits = mean_waits(item)
        if len(waits) < 2:
            continue
        late, waiting = min(waits, key=waits.get), max(waits, key=waits.get)
        if waits[waiting] < worth_telling * item.summary.median:
            continue
        found.append(
            f"{short_label(selection, item)}: {waiting} waited {time_text(waits[waiting])} of each "
            f"step for {late}, which waited {time_text(waits[late])} itself."
        )
    return found


def mean_waits(item: Row) -> dict[str, float]:
    """Milliseconds a step that each device waited inside collectives, by device."""
    waits: dict[str, list[float]] = {}
    for repetition in item.calm:
        for device in repetition.devices:
            waits.setdefault(device.device, []).append(device.breakdown_ms.get("wait", 0.0))
    return {device: sum(values) / len(values) for device, values in waits.items()}


def _winner(selection: Selection) -> list[str]:
    fastest = selection.rows[0]
    summary, interval = fastest.summary, fastest.summary.interval
    what = "mean" if selection.tutorial else "median"
    unit = "training call" if selection.tutorial else "step"
    if summary.count < 2:
        sure = "from one sample, so that nothing can be said about its spread"
    else:
        sure = (
            f"the {percent(interval.coverage)} interval of its median, within this run, is "
            f"{time_text(interval.low)} to {time_text(interval.high)} "
            f"({summary.count} samples)"
        )
    found = [
        f"{first_place(selection).capitalize()} of {len(selection.rows)}: {short_label(selection, fastest)}, with a {what} of "
        f"{time_text(fastest.time_ms)} a {unit}; {sure}."
    ]
    others = rivals(fastest, selection.rows)
    close = [short_label(selection, item) for item in others]
    if close:
        disturbed = any(speed_up(summary, item.summary) is None for item in others)
        why = (
            "disturbed launches would decide it; a quiet machine may"
            if disturbed
            else "the launches' times overlap, or there are too few launches; more repetitions may "
            "decide"
        )
        found.append(f"It is not significantly different from {listing(close)}: {why}.")
    elif len(selection.rows) > 1:
        second = selection.rows[1]
        ratio = speed_up(second.summary, summary)
        if ratio is None:  # of a row that is not ranked
            return found
        found.append(
            f"It is {_times(ratio)} as fast as the next, {short_label(selection, second)} "
            f"({_extremes(ratio)}), and significantly different from every other row, at 95% for "
            "all pairs of rows together. The intervals are for this run only."
        )
    return found


def _pipeline(selection: Selection) -> list[str]:
    best = selection.best_pipeline
    if not best:
        return []
    parts = [
        f"{_times(ratio)} as fast as {words} ({_extremes(ratio)})"
        for words, ratio in _over_baselines(selection, best).items()
    ]
    found = []
    if parts:
        found.append(f"The best pipeline ({row_label(best)}) is {listing(parts)}.")
    close = [str(row.split_size) for row in rivals(best, selection.splits)]
    if close:
        word = "split" if len(close) == 1 else "splits"
        found.append(
            f"Best split {best.split_size}, but it is not significantly different from {word} "
            f"{listing(close)}."
        )
    elif len(selection.splits) > 1:
        found.append(f"Best split {best.split_size}: every other split differs significantly.")
    return found


def _over_baselines(selection: Selection, chosen: Row) -> dict[str, Ratio]:
    """How many times faster the row is than each baseline that it is not itself."""
    named = {"the single device": selection.single, "model parallel": selection.model_parallel}
    return {
        words: ratio
        for words, baseline in named.items()
        if baseline and baseline is not chosen
        if (ratio := speed_up(baseline.summary, chosen.summary))
    }


def _all_cores(selection: Selection) -> list[str]:
    single, best = selection.single_all_cores, selection.best_pipeline
    if not single or not best or single is best:
        return []
    ratio = speed_up(single.summary, best.summary)
    if not distinguishable(single.summary, best.summary):
        verdict = "is not significantly different from"
    else:
        verdict = "is slower than" if ratio and ratio.value < 1.0 else "is faster than"
    factor = f": {_times(ratio)} as fast ({_extremes(ratio)})" if ratio else ""
    return [
        f"Against one process that uses all cores ({time_text(single.time_ms)}), what a user would "
        f"do instead, the best pipeline {verdict} it{factor}."
    ]


def _predictions(selection: Selection) -> list[str]:
    error = error_of_predictions(selection)
    if error is None:
        return []
    return [
        f"The simulator's prediction is off by {percent(error.mean_absolute)} on average and by "
        f"{error.worst:+.1%} at worst (split {error.worst_split})."
    ]


def failures(results: Results) -> list[str]:
    """How many rows failed, as a sentence; none where all worked."""
    failed = sum(1 for row in results.rows if row.error)
    return [f"{counted(failed, 'row')} failed; the table gives the errors."] if failed else []


def _state(results: Results) -> list[str]:
    verdicts = {row.summary.verification for row in working_rows(results)}
    found = failures(results)
    if "not verified" in verdicts:
        found.append("Not every timed row was verified against its oracle.")
    elif verdicts == {"passed"}:
        found.append("Every timed row computed the same update as its oracle.")
    elif verdicts:
        found.append("Some timed rows did not match their oracle; the table says which.")
    return found


def _times(ratio: Ratio) -> str:
    return f"{ratio.value:.2f}\u00d7"


def _extremes(ratio: Ratio) -> str:
    return f"{ratio.low:.2f} to {ratio.high:.2f} by the intervals' ends"
