"""Draws a timeline, measured or simulated: one lane a device, time to the right.

Hatched: the device does nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from ..chart_types import Gantt
from ..gantt_lanes import COMPUTE, LETTERS, STRIP, gaps, is_moving, kinds, lanes
from ..labels import percent, sentence
from ..load import Action
from .style import Frame, encode, framed, text_width
from .theme import LIGHT, Theme, ink_on

_WIDTH = 10.0
_LANE = 0.56


def draw(chart: Gantt, theme: Theme) -> Figure:
    """The whole timeline; the clock starts at the first action."""
    start = min(action.start_ms for action in chart.actions)
    end = max(action.end_ms for action in chart.actions)
    devices = lanes(chart.actions)
    left = max(text_width(device, 9.0) for device in devices) + 0.35
    height = _LANE * len(devices) + 0.1
    frame = Frame(width=_WIDTH, height=height, left=left, right=0.25, bottom=0.52)
    figure, axes = framed(
        theme, frame, chart.title, chart.subtitle, handles=_legend(chart.actions, theme), columns=7
    )
    length = max(end - start, 1e-9)
    inches_per_ms = (frame.width - frame.left - frame.right) / length
    labels = _labels(chart.actions, inches_per_ms)
    for lane, device in enumerate(devices):
        actions = [action for action in chart.actions if action.device == device]
        for low, high in gaps(actions, start, end):
            axes.add_patch(
                Rectangle(
                    (low - start, lane),
                    high - low,
                    STRIP[0] + STRIP[1],
                    facecolor=theme.empty,
                    edgecolor=theme.hatch,
                    hatch="/////",
                    linewidth=0.0,
                    zorder=1,
                )
            )
        for action in actions:
            _draw_action(axes, lane, action, start, inches_per_ms, labels, theme)
    axes.set_xlim(0.0, length)
    axes.set_ylim(len(devices) - 0.02, -0.06)
    axes.set_yticks([lane + 0.46 for lane in range(len(devices))], devices)
    axes.set_xlabel("Time (ms)")
    axes.xaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure


def render_simulation(simulation: dict, extension: str) -> bytes:
    """A simulation file's Gantt chart as "png" or "svg"."""
    facts = []
    if simulation["makespan_ms"] is not None:
        facts.append(f"makespan {simulation['makespan_ms']:.4g} ms")
    if simulation["exposed_ms"] is not None:
        facts.append(f"{simulation['exposed_ms']:.3g} ms of communication exposed")
    elif simulation["bubble"] is not None:
        facts.append(f"bubble {percent(simulation['bubble'])}")
    chart = Gantt(simulation["title"], ", ".join(facts), simulation["timeline"], "")
    return encode(lambda: draw(chart, LIGHT), (extension,))[extension]


def _draw_action(
    axes: Axes,
    lane: int,
    action: Action,
    start: float,
    inches_per_ms: float,
    labels: dict[Action, tuple[str, float]],
    theme: Theme,
) -> None:
    offset, height = STRIP if is_moving(action.kind) else COMPUTE
    length = action.end_ms - action.start_ms
    width = length * inches_per_ms
    color = theme.action(action.kind)
    axes.add_patch(
        Rectangle(
            (action.start_ms - start, lane + offset),
            length,
            height,
            facecolor=color,
            edgecolor=theme.background if width > 0.04 else color,
            linewidth=min(0.7, 8.0 * width) if width > 0.04 else 0.3,
            zorder=2,
        )
    )
    if action in labels:
        label, size = labels[action]
        axes.text(
            action.start_ms - start + length / 2.0,
            lane + offset + height / 2.0,
            label,
            ha="center",
            va="center_baseline",
            size=size,
            color=ink_on(color),
            zorder=3,
        )


def _labels(actions: list[Action], inches_per_ms: float) -> dict[Action, tuple[str, float]]:
    """What stands in the boxes and in which size, by action.

    All boxes of a kind are labelled alike, with the longest of "1F3", "F3", "3" that fits into
    nearly all of them, and the few that it does not fit stay bare.
    """
    chosen: dict[Action, tuple[str, float]] = {}
    several = _several_stages(actions)
    for kind in dict.fromkeys(action.kind for action in actions):
        if is_moving(kind):
            continue
        same = [action for action in actions if action.kind == kind]
        for form, size in _forms(several):
            fitting = {}
            for action in same:
                text = form(action, LETTERS.get(kind, sentence(kind)))
                width = (action.end_ms - action.start_ms) * inches_per_ms
                if text_width(text, size) + 0.01 <= width:
                    fitting[action] = (text, size)
            if len(fitting) >= 0.8 * len(same):
                chosen |= fitting
                break
    return chosen


def _forms(several: bool) -> list[tuple[Callable[[Action, str], str], float]]:
    """Ways to write a label and its size in points, the most telling first."""

    def whole_step(action: Action) -> bool:
        return action.micro_batch is None or action.kind == "optimizer"

    def number(action: Action, letter: str) -> str:
        return letter if whole_step(action) else str(action.micro_batch)

    def lettered(action: Action, letter: str) -> str:
        return letter if whole_step(action) else f"{letter}{action.micro_batch}"

    def staged(action: Action, letter: str) -> str:
        stage = "" if action.stage is None or whole_step(action) else action.stage
        return f"{stage}{lettered(action, letter)}"

    forms = [(lettered, 7.5), (number, 7.5), (number, 6.0)]
    return [(staged, 7.5), (staged, 6.0), *forms] if several else forms


def _several_stages(actions: list[Action]) -> bool:
    """True when some device holds more than one stage, so that a box must name its own."""
    stages: dict[str, set] = {}
    for action in actions:
        if action.stage is not None and not is_moving(action.kind):
            stages.setdefault(action.device, set()).add(action.stage)
    return any(len(held) > 1 for held in stages.values())


def _legend(actions: list[Action], theme: Theme) -> list[Patch]:
    handles = []
    for kind in kinds(actions, list(theme.actions)):
        letter = LETTERS.get(kind)
        suffix = f" ({letter})" if letter and letter != "opt" else ""
        handles.append(Patch(color=theme.action(kind), label=sentence(kind) + suffix))
    idle = {"facecolor": theme.empty, "edgecolor": theme.hatch, "hatch": "/////"}
    return [*handles, Patch(label="Idle (bubble)", linewidth=0.0, **idle)]
