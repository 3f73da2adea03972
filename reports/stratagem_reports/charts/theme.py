"""Colours and type of the charts, for a light and a dark background at once.

A colour is a CSS `light-dark(...)` pair, so one specification serves both: a page's own style picks
the half, and `in_theme` does so for image files. The colours are from Okabe and Ito's and Paul
Tol's palettes, which stay apart under the common kinds of colour blindness; lightness differs too,
so that they survive a grey print. One strategy has one colour in every chart.
"""

import re
import zlib

# Metrically alike wherever they are installed, so that what fits here fits there.
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"

_PAIR = re.compile(r"light-dark\(([^,()]*),([^,()]*)\)")


def pair(light: str, dark: str) -> str:
    """A colour that follows the background."""
    return f"light-dark({light},{dark})"


def in_theme(text: str, theme: str) -> str:
    """A specification's or a picture's text with the colours of "light" or "dark" alone."""
    return _PAIR.sub(r"\1" if theme == "light" else r"\2", text)


BACKGROUND = pair("#FFFFFF", "#14181D")
TEXT = pair("#1B1F24", "#E8EBEF")
MUTED = pair("#59636E", "#A3ADB8")
GRID = pair("#E3E6EA", "#2B323A")
EMPTY = pair("#F4F5F7", "#1E242B")
HATCH = pair("#B4BBC4", "#56616D")

# Fills that the pictures and the page define: see PATTERNS.
IDLE = "url(#stratagem-idle)"
HIDDEN = "url(#stratagem-hidden)"
_STRIPES = (
    '<pattern id="stratagem-{name}" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate({angle})"><rect width="6" height="6" fill="{ground}"/>'
    '<path d="M3,0V6" stroke="{ink}" stroke-width="{width}"/></pattern>'
)
# Stripes for what is idle, and for communication that compute hides.
PATTERNS = (
    "<defs>"
    + _STRIPES.format(name="idle", angle=45, ground=EMPTY, ink=HATCH, width=1)
    + _STRIPES.format(name="hidden", angle=-45, ground="none", ink=BACKGROUND, width=1.6)
    + "</defs>"
)

_STRATEGIES = {
    "single": pair("#7B8490", "#98A2AE"),
    "single_all_cores": pair("#B3BAC4", "#66707C"),
    "model_parallel": pair("#E69F00", "#F0B030"),
    "pipeline": pair("#0072B2", "#3C9FE0"),
    "data_parallel": pair("#8C6D1F", "#C9A94B"),
    "ddp": pair("#009E73", "#2BB88D"),
    "ddp_model_parallel": pair("#56B4E9", "#7CC8F2"),
    "tensor_parallel": pair("#CC79A7", "#DB92BB"),
    "sequence_parallel": pair("#D55E00", "#E8793A"),
}
# For strategies of plug-ins, and wherever else nothing has a colour of its own.
_OTHERS = (
    pair("#44AA99", "#5CC4B3"),
    pair("#882255", "#C7659A"),
    pair("#999933", "#B9B95A"),
    pair("#6699CC", "#86B4E2"),
    pair("#661100", "#C0705C"),
    pair("#AA4499", "#CC77BE"),
    pair("#117733", "#4CAF70"),
)
_FORWARD, _BACKWARD = pair("#3B75AF", "#4A8FD1"), pair("#EE8A3A", "#EE8A3A")
_ACTIVATION, _GRADIENT = pair("#66C2E0", "#66C2E0"), pair("#E6C229", "#E6C229")
_COLLECTIVE, _STALLED = pair("#009E73", "#009E73"), pair("#D6604D", "#D6604D")
_OPTIMIZER = pair("#8B3A8B", "#B565B5")
ACTIONS = {
    "forward": _FORWARD,
    "backward": _BACKWARD,
    "backward_input": _BACKWARD,
    "backward_weight": pair("#C8553D", "#C8553D"),
    "recompute": pair("#7C9CBF", "#7FA6CF"),
    "gradient_norm": _OPTIMIZER,
    "norm_sum": _STALLED,
    "optimizer": _OPTIMIZER,
    "copy_input": pair("#9AA3AD", "#9AA3AD"),
    "copy_activation": _ACTIVATION,
    "copy_gradient": _GRADIENT,
    "send_activation": _ACTIVATION,
    "receive_activation": _ACTIVATION,
    "send_gradient": _GRADIENT,
    "receive_gradient": _GRADIENT,
    "broadcast": pair("#5E6AD2", "#5E6AD2"),
    "all_reduce": _COLLECTIVE,
    "gradient_wait": _STALLED,
    "reduce_gradients": _STALLED,
    "gather_transfer": pair("#2E8B9E", "#3FA7BC"),
    "scatter_transfer": _COLLECTIVE,
    "unshard": pair("#5E6AD2", "#5E6AD2"),
    "unshard_wait": _STALLED,
    "reduce_scatter": pair("#5E6AD2", "#5E6AD2"),
    "all_reduce_start": pair("#5E6AD2", "#5E6AD2"),
    "all_reduce_wait": _STALLED,
    "tensor_transfer": _COLLECTIVE,
    "tensor_wait": _STALLED,
    "context_transfer": _COLLECTIVE,
    "context_wait": _STALLED,
}
_PARTS = {
    "compute": _FORWARD,
    "communication_exposed": _STALLED,
    "wait": _GRADIENT,
    "optimizer": _OPTIMIZER,
    "input_copy": _ACTIVATION,
    "other": pair("#8A8F98", "#8A8F98"),
}

# The model's state is blue and violet, what a step adds to it is warm, what moves is green.
_MEMORY = {
    "parameters": pair("#2F6AA8", "#4A8FD1"),
    "gradients": pair("#7FB2DD", "#9CC7EA"),
    "optimizer": _OPTIMIZER,
    "activations": _BACKWARD,
    "communication": _COLLECTIVE,
    "staging": _GRADIENT,
    "other": _PARTS["other"],
}


def strategy_color(name: str) -> str:
    """The strategy's colour; one that never changes for a strategy without its own."""
    return _STRATEGIES.get(name) or _steady(name)


def action_color(kind: str) -> str:
    """The colour of a kind of action."""
    return ACTIONS.get(kind) or _steady(kind)


def part_color(name: str) -> str:
    """The colour of a part of a step."""
    return _PARTS.get(name) or _steady(name)


def memory_color(category: str) -> str:
    """The colour of what memory is for."""
    return _MEMORY.get(category) or _steady(category)


def series_color(index: int) -> str:
    """The colour of one of several lines that have none of their own."""
    return _OTHERS[index % len(_OTHERS)]


def ink_on(color: str) -> str:
    """Black or white, whichever reads better on the colour (relative luminance)."""
    return pair(*(_ink_on(half) for half in _PAIR.fullmatch(color).groups()))


def _ink_on(color: str) -> str:
    values = [int(color[start : start + 2], 16) / 255.0 for start in (1, 3, 5)]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#111111" if luminance > 0.19 else "#FFFFFF"


def _steady(name: str) -> str:
    return series_color(zlib.crc32(name.encode()))
