"""Colours of the charts, on a light and on a dark background.

They are from Okabe and Ito's and Paul Tol's palettes, which stay apart under the common kinds of
colour blindness; lightness differs too, so that they survive a grey print. One strategy has one
colour in every chart.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib import colors

_FALLBACK = ("#882255", "#44AA99", "#999933", "#6699CC", "#661100", "#AA4499", "#117733")


@dataclass(frozen=True)
class Theme:
    """Colours of a background, light or dark."""

    background: str
    text: str
    muted: str
    grid: str
    empty: str
    hatch: str
    strategies: dict[str, str]
    actions: dict[str, str]
    parts: dict[str, str]

    def strategy(self, name: str) -> str:
        """The strategy's colour; a steady one for a strategy without its own."""
        return self.strategies.get(name) or _steady(name)

    def action(self, kind: str) -> str:
        """The colour of a kind of action."""
        return self.actions.get(kind) or _steady(kind)

    def part(self, name: str) -> str:
        """The colour of a part of a step."""
        return self.parts.get(name) or _steady(name)


_ACTIONS = {
    "forward": "#3B75AF",
    "backward": "#EE8A3A",
    "backward_input": "#EE8A3A",
    "backward_weight": "#C8553D",
    "optimizer": "#8B3A8B",
    "copy_input": "#9AA3AD",
    "copy_activation": "#66C2E0",
    "copy_gradient": "#E6C229",
    "send_activation": "#66C2E0",
    "receive_activation": "#66C2E0",
    "send_gradient": "#E6C229",
    "receive_gradient": "#E6C229",
    "broadcast": "#5E6AD2",
    "all_reduce": "#009E73",
    "gradient_wait": "#D6604D",
    "reduce_gradients": "#D6604D",
    "tensor_transfer": "#009E73",
    "tensor_wait": "#D6604D",
}
_PARTS = {
    "compute": "#3B75AF",
    "communication_exposed": "#D6604D",
    "wait": "#E6C229",
    "optimizer": "#8B3A8B",
    "input_copy": "#66C2E0",
    "other": "#8A8F98",
}

LIGHT = Theme(
    background="#FFFFFF",
    text="#1B1F24",
    muted="#59636E",
    grid="#E3E6EA",
    empty="#F4F5F7",
    hatch="#B4BBC4",
    strategies={
        "single": "#7B8490",
        "single_all_cores": "#B3BAC4",
        "model_parallel": "#E69F00",
        "pipeline": "#0072B2",
        "ddp": "#009E73",
        "ddp_model_parallel": "#56B4E9",
        "tensor_parallel": "#CC79A7",
        "sequence_parallel": "#D55E00",
    },
    actions=_ACTIONS,
    parts=_PARTS,
)

DARK = Theme(
    background="#14181D",
    text="#E8EBEF",
    muted="#A3ADB8",
    grid="#2B323A",
    empty="#1E242B",
    hatch="#56616D",
    strategies={
        "single": "#98A2AE",
        "single_all_cores": "#66707C",
        "model_parallel": "#F0B030",
        "pipeline": "#3C9FE0",
        "ddp": "#2BB88D",
        "ddp_model_parallel": "#7CC8F2",
        "tensor_parallel": "#DB92BB",
        "sequence_parallel": "#E8793A",
    },
    actions=_ACTIONS | {"forward": "#4A8FD1", "optimizer": "#B565B5"},
    parts=_PARTS | {"compute": "#4A8FD1", "optimizer": "#B565B5"},
)


def ink_on(color: str) -> str:
    """Black or white, whichever reads better on the colour (relative luminance)."""
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in colors.to_rgb(color)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#111111" if luminance > 0.19 else "#FFFFFF"


def _steady(name: str) -> str:
    return _FALLBACK[sum(name.encode()) % len(_FALLBACK)]
