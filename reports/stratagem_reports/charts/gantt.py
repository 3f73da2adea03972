"""Draws a timeline, measured or simulated: one lane a device, time to the right.

Hatched: the device does nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from ..chart_types import Gantt
from ..gantt_lanes import COMPUTE, LETTERS, STRIP, gaps, is_moving, kinds, lanes
from ..labels import percent, sentence
from ..timeline import Action
from .style import Frame, encode, framed, text_width
from .theme import LIGHT, Theme, ink_on

_WIDTH = 10.0
_LANE = 0.56
# Boxes wider than this, in inches, have an edge.
_EDGED = 0.04


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
    _draw_idle(axes, chart.actions, devices, start, end, theme)
    for kind in kinds(chart.actions, list(theme.actions)):
        _draw_boxes(axes, kind, chart.actions, devices, start, inches_per_ms, theme)
    for action, (label, size) in _labels(chart.actions, inches_per_ms).items():
        offset, height = COMPUTE
        axes.text(
            (action.start_ms + action.end_ms) / 2.0 - start,
            devices.index(action.device) + offset + height / 2.0,
            label,
            ha="center",
            va="center_baseline",
            size=size,
            color=ink_on(theme.action(action.kind)),
            zorder=3,
        )
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


def _draw_idle(
    axes: Axes, actions: list[Action], devices: list[str], start: float, end: float, theme: Theme
) -> None:
    idle = [
        (low - start, lane, high - low, STRIP[0] + STRIP[1])
        for lane, device in enumerate(devices)
        for low, high in gaps([item for item in actions if item.device == device], start, end)
    ]
    look = {"facecolor": theme.empty, "edgecolor": theme.hatch, "hatch": "/////"}
    _draw_rectangles(axes, idle, zorder=1, linewidth=0.0, **look)


def _draw_boxes(
    axes: Axes,
    kind: str,
    actions: list[Action],
    devices: list[str],
    start: float,
    inches_per_ms: float,
    theme: Theme,
) -> None:
    """All boxes of a kind; those that are wide enough have an edge against their neighbours."""
    offset, height = STRIP if is_moving(kind) else COMPUTE
    wide, narrow = [], []
    for action in actions:
        if action.kind == kind:
            length = action.end_ms - action.start_ms
            lane = devices.index(action.device)
            box = (action.start_ms - start, lane + offset, length, height)
            (wide if length * inches_per_ms > _EDGED else narrow).append(box)
    color = theme.action(kind)
    for boxes, edge, width in ((narrow, color, 0.3), (wide, theme.background, 0.6)):
        _draw_rectangles(axes, boxes, zorder=2, facecolor=color, edgecolor=edge, linewidth=width)


def _draw_rectangles(axes: Axes, rectangles: list[tuple], **look: object) -> None:
    """Rectangles (left, bottom, width, height) of one look as one path: a fraction of the bytes."""
    if not rectangles:
        return
    unit = Path.unit_rectangle()
    paths = [
        unit.transformed(Affine2D().scale(width, height).translate(left, bottom))
        for left, bottom, width, height in rectangles
    ]
    axes.add_patch(PathPatch(Path.make_compound_path(*paths), **look))


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
