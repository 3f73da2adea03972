"""Timelines, measured or simulated: one lane a device, time to the right; striped where it is idle.

Charts of the pipeline's best and worst split and of each other strategy's fastest row. A timeline
comes from the repetition that is nearest to the row's median.
"""

import re
from functools import partial

from msgspec.structs import replace

from ..analysis.labels import STRATEGIES, percent, row_label, sentence, significant, time_text
from ..analysis.selection import Selection
from ..analysis.statistics import median_or_none
from ..results.launch import Repetition
from ..results.load import Results, Row, Simulation
from ..results.timeline import Action
from . import marks
from .chart import Chart
from .downsampling import readable
from .lanes import COMPUTE, LETTERS, STRIP, gaps, is_moving, kinds, lanes
from .registry import Drawn, Registered
from .theme import ACTIONS, BACKGROUND, IDLE, action_color, ink_on

MOST_STRATEGIES = 6
_WIDTH, _LANE = 880, 56
_STRIPED = "Striped: the device had nothing to do."
# The pixels of a box, and what of its label fits into them.
_ROOM = "(scale('x', datum.end) - scale('x', datum.start))"
_LABEL = (
    f"{_ROOM} > 6.4 * length(datum.label) + 2 ? datum.label : "
    f"{_ROOM} > 5 * length(datum.number) + 1 ? datum.number : ''"
)
_SIZE = f"{_ROOM} > 6.4 * max(2, length(datum.number)) + 2 ? 11 : 8.5"
_EDGE = f"{_ROOM} > 3 ? '{BACKGROUND}' : datum.color"


def timeline(title: str, subtitle: str, actions: list[Action], caption: str = "") -> Chart:
    """The chart of some actions; its clock starts at the first of them."""
    start = min(action.start_ms for action in actions)
    end = max(action.end_ms for action in actions)
    devices = lanes(actions)
    rows = _rows(actions, devices, start, end)
    fills = {_named(kind): action_color(kind) for kind in kinds(actions, ACTIONS)}
    fills["Idle (bubble)"] = IDLE
    count = sum(action.count for action in actions)
    label = {"type": "text", "text": {"expr": _LABEL}, "fontSize": {"expr": _SIZE}}
    labels = marks.layer(rows, label, x="middle", y="centre", fill="ink", tooltip="words")
    layers = [
        marks.boxes(rows, stroke={"expr": _EDGE}, strokeWidth=0.7),
        labels | {"transform": [{"filter": "datum.label"}]},
    ]
    reach = max(end - start, 1e-9)
    x = marks.quantity("Time (ms)", 0.0, reach, grid=True, tickCount=marks.TICKS)
    y = marks.named(devices, -0.08, len(devices), 0.46, downwards=True)
    return Chart(
        title,
        subtitle,
        caption,
        f"Timeline of {count} actions on {', '.join(devices)} over {time_text(end - start)}.",
        marks.view(_WIDTH, _LANE * len(devices) + 6, x, y, layers),
        [marks.Entry(name, marks.BOX, fill) for name, fill in fills.items()],
        zooms=True,
    )


def simulated(simulation: Simulation) -> Chart:
    """The chart of a simulation file."""
    facts = []
    if simulation.makespan_ms is not None:
        facts.append(f"makespan {significant(simulation.makespan_ms, 4)} ms")
    if simulation.exposed_ms is not None:
        facts.append(f"{significant(simulation.exposed_ms)} ms of communication exposed")
    elif simulation.bubble is not None:
        facts.append(f"bubble {percent(simulation.bubble)}")
    return timeline(simulation.title, ", ".join(facts), simulation.timeline)


def _rows(actions: list[Action], devices: list[str], start: float, end: float) -> list[marks.Datum]:
    """What the devices did and when they were idle, lane by lane in the order of time."""
    several, found = _several_stages(actions), []
    for lane, device in enumerate(devices):
        own = [action for action in actions if action.device == device]
        rows = [_row(action, lane, start, several) for action in own]
        for low, high in gaps(own, start, end):
            words = marks.lines("Idle", device, _when(low - start, high - start))
            span = _box(low - start, high - start, lane, (0.0, sum(STRIP)))
            rows.append(span | {"color": IDLE, "label": "", "words": words})
        found += sorted(rows, key=lambda row: row["start"])
    return found


def _row(action: Action, lane: int, start: float, several: bool) -> marks.Datum:
    place, color = STRIP if is_moving(action.kind) else COMPUTE, action_color(action.kind)
    low, high = action.start_ms - start, action.end_ms - start
    label, number = ("", "") if is_moving(action.kind) else _label(action, several)
    whole = action.micro_batch is None or action.kind == "optimizer"
    stage = "" if action.stage is None else f"stage {action.stage}"
    batch = "" if whole else f"micro-batch {action.micro_batch}"
    times = f" \u00d7 {action.count}, drawn together" if action.count > 1 else ""
    row = _box(low, high, lane, place) | {"color": color, "label": label}
    if label:
        centre = lane + sum(place) / 2.0 + 0.01
        row |= {"middle": marks.short((low + high) / 2.0), "centre": centre}
        row |= {"number": number, "ink": ink_on(color)}
    where = ", ".join(word for word in (action.device, stage, batch) if word)
    return row | {"words": marks.lines(f"{sentence(action.kind)}{times}", where, _when(low, high))}


def _box(low: float, high: float, lane: int, place: tuple[float, float]) -> marks.Datum:
    offset, height = place
    ends = {"top": lane + offset, "bottom": round(lane + offset + height, 3)}
    return {"start": marks.short(low), "end": marks.short(high)} | ends


def _when(low: float, high: float) -> str:
    return f"{time_text(high - low)}, from {time_text(low)} to {time_text(high)}"


def _label(action: Action, several: bool) -> tuple[str, str]:
    """What stands in a box: "F3", or "1F3" where devices hold several stages, and the number."""
    letter = LETTERS.get(action.kind, sentence(action.kind))
    if action.micro_batch is None or action.kind == "optimizer":
        return letter, letter
    stage = action.stage if several and action.stage is not None else ""
    return f"{stage}{letter}{action.micro_batch}", str(action.micro_batch)


def _several_stages(actions: list[Action]) -> bool:
    """True when some device holds more than one stage, so that a box must name its own."""
    stages: dict[str, set] = {}
    for action in actions:
        if action.stage is not None and not is_moving(action.kind):
            stages.setdefault(action.device, set()).add(action.stage)
    return any(len(held) > 1 for held in stages.values())


def _named(kind: str) -> str:
    letter = LETTERS.get(kind)
    return sentence(kind) + (f" ({letter})" if letter and letter != "opt" else "")


def _split(_: Results, selection: Selection, best: bool) -> Drawn:
    """The pipeline at its best or its worst split, or why there is no chart of it."""
    splits = selection.splits
    if not splits:
        return "no working pipeline row"
    if not best and len(splits) < 2:
        return "the pipeline was measured at one split only, so the worst is the best"
    pick = min if best else max
    row = pick(splits, key=lambda item: item.time_ms)
    word, split = "Best" if best else "Worst", row.split_size
    title, where = f"{word} split: {row_label(row)}", f"at the {word.lower()} split, {split}"
    return _measured(selection, row, title, where) or f"the row of split {split} has no timeline"


def _strategies(_: Results, selection: Selection) -> dict[str, Drawn]:
    """Of each strategy but the pipeline its fastest row, by the chart's name, the fastest first."""
    pipelined = {item for line in selection.pipelines for item in line}
    rows: dict[str, list[Row]] = {}
    for item in selection.rows:
        if item not in pipelined:
            rows.setdefault(item.strategy, []).append(item)
    return {
        f"gantt_{re.sub(r'[^A-Za-z0-9_.-]', '_', strategy)}": _strategy(selection, own, place)
        for place, (strategy, own) in enumerate(rows.items(), start=1)
    }


def _strategy(selection: Selection, rows: list[Row], place: int) -> Drawn:
    if place > MOST_STRATEGIES:
        return f"timelines are drawn of the {MOST_STRATEGIES} fastest strategies"
    name = row_label(rows[0])
    which = f"{name}, the fastest of {len(rows):,} rows" if len(rows) > 1 else name
    drawn = _measured(selection, rows[0], f"Median step: {name}", f"of {which}")
    return drawn or f"no timeline of {which}"


def _measured(selection: Selection, measured: Row, title: str, where: str) -> Chart | None:
    repetition = _representative(measured)
    if repetition is None:
        return None
    actions, pooled = readable(_by_rank(repetition))
    return timeline(
        title,
        f"{selection.workload}; the median step of repetition {repetition.index + 1}",
        actions,
        f"What each device did in the median step {where}. {_STRIPED}{pooled}",
    )


def _representative(measured: Row) -> Repetition | None:
    """The repetition with a timeline whose samples lie closest to the row's median."""
    drawable = [item for item in measured.repetitions if item.timeline]
    median, tutorial = measured.summary.median, measured.tutorial

    def time_ms(item: Repetition) -> float:
        return sum(item.step_ms) if tutorial else median_or_none(item.step_ms) or 0.0

    return min(drawable, key=lambda item: abs(time_ms(item) - median), default=None)


def _by_rank(repetition: Repetition) -> list[Action]:
    """The timeline, its devices named with their ranks where there are several."""
    ranks = {use.device: use.rank for use in repetition.devices if use.rank is not None}
    if len(set(ranks.values())) < 2:
        return repetition.timeline
    names = {device: f"rank {rank}, {device}" for device, rank in ranks.items()}
    return [
        replace(action, device=names.get(action.device, action.device))
        for action in repetition.timeline
    ]


CHARTS = (
    Registered("gantt_best", 40, partial(_split, best=True)),
    Registered("gantt_worst", 41, partial(_split, best=False)),
    Registered("gantt_*", 42, _strategies, known=tuple(f"gantt_{name}" for name in STRATEGIES)),
    Registered("gantt", 1, simulated, source="simulation"),
)
