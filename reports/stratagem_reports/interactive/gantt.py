"""A timeline: one lane a device, time to the right; every box says what it is."""

from __future__ import annotations

from ..chart_types import Gantt
from ..charts.theme import Theme, ink_on
from ..gantt_lanes import COMPUTE, LETTERS, STRIP, gaps, is_moving, kinds, lanes
from ..labels import sentence, time_text
from ..timeline import Action
from .style import bold, layout, title

_LANE = 74
# More boxes than this are too narrow for labels and white edges.
_MOST_LABELS = 600


def figure(chart: Gantt, theme: Theme) -> dict:
    """The whole timeline; the clock starts at the first action."""
    start = min(action.start_ms for action in chart.actions)
    end = max(action.end_ms for action in chart.actions)
    devices = lanes(chart.actions)
    return {
        "data": [
            _idle(chart.actions, devices, start, end, theme),
            *(
                _boxes(kind, chart.actions, devices, start, theme)
                for kind in kinds(chart.actions, list(theme.actions))
            ),
        ],
        "layout": layout(
            theme,
            _LANE * len(devices) + 150,
            {
                "title": title("Time (ms)"),
                "range": [0.0, max(end - start, 1e-9)],
                "showgrid": True,
                "exponentformat": "none",
                "separatethousands": True,
            },
            {
                "tickmode": "array",
                "tickvals": [lane + 0.46 for lane in range(len(devices))],
                "ticktext": devices,
                "range": [len(devices) - 0.02, -0.06],
                "fixedrange": True,
            },
            barmode="overlay",
            uniformtext={"minsize": 8, "mode": "hide"},
        ),
    }


def _idle(
    actions: list[Action], devices: list[str], start: float, end: float, theme: Theme
) -> dict:
    found = [
        (lane, device, low - start, high - start)
        for lane, device in enumerate(devices)
        for low, high in gaps([item for item in actions if item.device == device], start, end)
    ]
    height = STRIP[0] + STRIP[1]
    return {
        "type": "bar",
        "orientation": "h",
        "name": "Idle (bubble)",
        "legendrank": 2000,
        "y": [lane + height / 2.0 for lane, *_ in found],
        "x": [_short(high - low) for *_, low, high in found],
        "base": [_short(low) for *_, low, _ in found],
        "width": height,
        "marker": {
            "color": theme.empty,
            "line": {"width": 0},
            "pattern": {"shape": "/", "size": 6, "solidity": 0.15, "fgcolor": theme.hatch},
        },
        "hovertext": [bold("Idle", device, _when(low, high)) for _, device, low, high in found],
        "hoverinfo": "text",
    }


def _boxes(
    kind: str, actions: list[Action], devices: list[str], start: float, theme: Theme
) -> dict:
    offset, height = STRIP if is_moving(kind) else COMPUTE
    same = [action for action in actions if action.kind == kind]
    labels, roomy = {}, len(actions) <= _MOST_LABELS
    if roomy and not is_moving(kind):
        labels = {
            "text": [_label(action) for action in same],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "textfont": {"color": ink_on(theme.action(kind))},
        }
    return labels | {
        "type": "bar",
        "orientation": "h",
        "name": sentence(kind),
        "y": [devices.index(action.device) + offset + height / 2.0 for action in same],
        "x": [_short(action.end_ms - action.start_ms) for action in same],
        "base": [_short(action.start_ms - start) for action in same],
        "width": height,
        "marker": {
            "color": theme.action(kind),
            "line": {"color": theme.background, "width": 0.5 if roomy else 0},
        },
        "hovertext": [_hover(action, start) for action in same],
        "hoverinfo": "text",
    }


def _hover(action: Action, start: float) -> str:
    whole_step = action.kind == "optimizer"
    stage = "" if action.stage is None else f"stage {action.stage}"
    micro_batch = (
        "" if action.micro_batch is None or whole_step else f"micro-batch {action.micro_batch}"
    )
    times = f" \u00d7 {action.count}, drawn together" if action.count > 1 else ""
    return bold(
        f"{sentence(action.kind)}{times}",
        ", ".join(word for word in (action.device, stage, micro_batch) if word),
        _when(action.start_ms - start, action.end_ms - start),
    )


def _label(action: Action) -> str:
    letter = LETTERS.get(action.kind, sentence(action.kind))
    if action.micro_batch is None or action.kind == "optimizer":
        return letter
    return f"{letter}{action.micro_batch}"


def _when(low: float, high: float) -> str:
    return f"{time_text(high - low)}, from {time_text(low)} to {time_text(high)}"


def _short(value: float) -> float:
    """Nanoseconds are enough, and digits beyond would double the page."""
    return round(value, 6)
