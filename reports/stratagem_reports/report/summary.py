"""The report's words: who wins, by how much, how sure, and how well it was predicted."""

from dataclasses import dataclass

from ..analysis.labels import counted, listing, percent, row_label, time_text
from ..analysis.selection import Selection, working_rows
from ..analysis.statistics import CONFIDENCE, distinguishable, rivals, speed_up
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
    """Return "fastest" where the first row differs significantly from every other."""
    what = "mean" if selection.tutorial else "median"
    if len(selection.rows) == 1:
        return what
    return f"lowest {what}" if rivals(selection.rows[0], selection.rows) else "fastest"


def headlines(selection: Selection) -> list[Figure]:
    """The few numbers that stand at the top; none when no row worked."""
    if not selection.rows:
        return []
    fastest, time = selection.rows[0], _time_of(selection)
    place = f"Fastest row: {time}" if first_place(selection) == "fastest" else f"Lowest {time}"
    found = [Figure(place, time_text(fastest.time_ms), short_label(selection, fastest))]
    pipeline = selection.best_pipeline
    if pipeline and pipeline is not fastest:
        label = short_label(selection, pipeline)
        found.append(Figure(f"Best split: {time}", time_text(pipeline.time_ms), label))
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


def verdict(selection: Selection) -> str:
    """Which row is the fastest, by how much, and with what confidence, in at most two sentences."""
    if not selection.rows:
        return "No row gave a time that can be ranked. The table has what is known."
    fastest, time = selection.rows[0], _time_of(selection)
    name, value = _in_words(selection, fastest), time_text(fastest.time_ms)
    if len(selection.rows) == 1:
        return f"Only {name} can be ranked. Its {time} is {value}."
    close, sure = rivals(fastest, selection.rows), percent(CONFIDENCE, 0)
    if close:
        more = f"and {counted(len(close) - 1, 'other row')} are" if len(close) > 1 else "is"
        return (
            f"No row is clearly the fastest at {sure} confidence. {name} has the lowest {time}, "
            f"{value}, but {_in_words(selection, close[0])}, with {time_text(close[0].time_ms)}, "
            f"{more} not significantly slower."
        )
    second = selection.rows[1]
    ratio = speed_up(second.summary, fastest.summary)
    faster = f"{_times(ratio)} as fast as" if ratio else "faster than"
    return (
        f"{name} is the fastest of {len(selection.rows)} rows at {sure} confidence. With a {time} "
        f"of {value}, it is {faster} the next row, {_in_words(selection, second)}."
    )


def sentences(results: Results, selection: Selection) -> list[str]:
    """What the summary adds to the verdict, the most important first."""
    if not selection.rows:
        return _state(results)
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


def _in_words(selection: Selection, item: Row) -> str:
    """The row's label as it stands in a sentence: Pipeline (split 6, 1F1B)."""
    name, _, rest = short_label(selection, item).partition(", ")
    return f"{name} ({rest})" if rest else name


def _time_of(selection: Selection) -> str:
    """What the times of the rows are."""
    return "mean time of a training call" if selection.tutorial else "median step time"


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
            f"{_in_words(selection, item)}: {waiting} waited {time_text(waits[waiting])} of each "
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
    name, summary = _in_words(selection, fastest), fastest.summary
    interval = summary.interval
    found = [
        f"{name}: the {percent(interval.coverage)} interval of the median is "
        f"{time_text(interval.low)} to {time_text(interval.high)} within this run "
        f"({summary.count} samples)."
        if summary.count > 1
        else f"{name} has one sample, so its spread is not known."
    ]
    others = rivals(fastest, selection.rows)
    if others:
        disturbed = any(speed_up(summary, item.summary) is None for item in others)
        why = (
            "disturbed launches would decide it; a quiet machine may"
            if disturbed
            else "the launches' times overlap, or there are too few launches; more repetitions may "
            "decide"
        )
        close = listing([_in_words(selection, item) for item in others])
        found.append(f"{name} is not significantly different from {close}: {why}.")
    elif len(selection.rows) > 1 and (ratio := speed_up(selection.rows[1].summary, summary)):
        found.append(
            f"{name} is {_times(ratio)} as fast as the next row ({_extremes(ratio)}). The "
            "confidence is for all pairs of rows together, and for this run only."
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
        name = row_label(best).removeprefix("Pipeline, ")
        found.append(f"The best pipeline ({name}) is {listing(parts)}.")
    close = [str(row.split_size) for row in rivals(best, selection.splits)]
    if close:
        word = "split" if len(close) == 1 else "splits"
        found.append(
            f"The best split is {best.split_size}, but it is not significantly different from "
            f"{word} {listing(close)}."
        )
    elif len(selection.splits) > 1:
        found.append(f"The best split is {best.split_size}: every other split is slower.")
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
        outcome = "is not significantly different from"
    else:
        outcome = "is slower than" if ratio and ratio.value < 1.0 else "is faster than"
    factor = f": {_times(ratio)} as fast ({_extremes(ratio)})" if ratio else ""
    return [
        f"One process that uses all cores, the simplest alternative, has a {_time_of(selection)} "
        f"of {time_text(single.time_ms)}. The best pipeline {outcome} it{factor}."
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
