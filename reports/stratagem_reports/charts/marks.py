"""The parts that charts are composed of: layers of marks, axes, a legend, words and their room.

Every layer holds its own rows, whose "x" and "y" are places on the axes. A row's "words" are what
a reader who points at its mark, or steps to it by keyboard, is told: lines, the first its name.
"""

import json
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .theme import BACKGROUND, TEXT

Datum = dict[str, Any]
Layer = dict[str, Any]

# Paths of symbols, about as large as a square from -1 to 1.
DOT = "M-0.3,0A0.3,0.3,0,1,1,0.3,0A0.3,0.3,0,1,1,-0.3,0"
BOX = "M-1.4,-0.7H1.4V0.7H-1.4Z"
LINE = "M-1.6,0H1.6"
DASHES = "M-1.6,0H-0.7M-0.3,0H0.3M0.7,0H1.6"
DOTS = "M-1.6,0H-1.1M-0.6,0H-0.2M0.2,0H0.6M1.1,0H1.6"
BAR = "M0,-1V1"
INTERVAL = "M-0.5,-1H0.5M0,-1V1M-0.5,1H0.5"
DIAMOND = "M0,-0.8L0.8,0L0,0.8L-0.8,0Z"
CIRCLE = "M-0.65,0A0.65,0.65,0,1,1,0.65,0A0.65,0.65,0,1,1,-0.65,0"
# What tells the points of several lines apart; LINE before one of them is the line in a legend.
POINTS = (
    CIRCLE,
    "M-0.6,-0.6H0.6V0.6H-0.6Z",
    DIAMOND,
    "M0,-0.75L0.75,0.6H-0.75Z",
    "M0,0.75L0.75,-0.6H-0.75Z",
    "M-0.25,-0.75H0.25V-0.25H0.75V0.25H0.25V0.75H-0.25V0.25H-0.75V-0.25H-0.25Z",
)
_NAME = {"align": "left", "baseline": "line-bottom", "dx": 20, "dy": -2}
_NAME_HEIGHT = 34.0
_LETTERS, _LETTER = 20, 6.2  # of a lying bar's name on a line where it is narrow; pixels of one
# How many ticks a horizontal axis has, so that their labels do not touch.
TICKS = {"expr": "ceil(width / 60)"}
_PLACES = {"x": "x", "y": "y", "tooltip": "words"}


class Entry(NamedTuple):
    """A line of a legend."""

    label: str
    shape: str
    fill: str = "transparent"
    stroke: str = "transparent"


def layer(rows: list[Datum], mark: dict, **fields: str | dict) -> Layer:
    """Marks of one kind, one a row; `fields` map channels to a row's keys, or are encodings."""
    encoding = {name: _channel(name, field) for name, field in fields.items()}
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def _channel(name: str, field: str | dict) -> dict:
    if isinstance(field, dict):
        return field
    if name in ("x", "y", "x2", "y2"):
        return {"field": field}
    color = {"scale": None} if name in ("fill", "stroke") else {}
    return {"field": field, "type": "nominal"} | color


def fixed(value: float | str) -> dict:
    """An encoding by pixels, or by an expression such as "width"."""
    return {"value": {"expr": value} if isinstance(value, str) else value}


def boxes(rows: list[Datum], **look: object) -> Layer:
    """Rectangles from "start" to "end" and "top" to "bottom" in their "color"."""
    places = {"x": "start", "x2": "end", "y": "top", "y2": "bottom"}
    return layer(rows, {"type": "rect"} | look, **places, fill="color", tooltip="words")


def bar(place: int, end: float, half: float, color: str) -> Datum:
    """The row of a lying bar from 0 to `end`."""
    return {"start": 0, "end": end, "top": place - half, "bottom": place + half, "color": color}


def dots(rows: list[Datum], **look: object) -> Layer:
    """Points with an outline."""
    usual = {"type": "point", "shape": "circle", "size": 70, "opacity": 1, "strokeWidth": 1}
    return layer(rows, usual | {"stroke": BACKGROUND} | look, **_PLACES)


def line(rows: list[Datum], color: str, width: float, **look: object) -> Layer:
    """One line through the rows in their order."""
    return layer(rows, {"type": "line", "color": color, "strokeWidth": width} | look, x="x", y="y")


def intervals(rows: list[Datum], along: str = "y", **look: object) -> Layer:
    """Error bars from "low" to "high", with caps."""
    across, turn = ("x", "horizontal") if along == "y" else ("y", "vertical")
    look = {"color": TEXT, "opacity": 1} | look
    rule = {"type": "rule", "strokeWidth": 1.3} | look
    cap = {"type": "tick", "orient": turn, "size": 10, "thickness": 1.3} | look
    parts = [layer(rows, rule, **{across: across, along: "low", f"{along}2": "high"})]
    parts += [layer(rows, cap, **{across: across, along: end}) for end in ("low", "high")]
    return {"layer": parts}


def texts(
    rows: list[Datum], x: str | dict = "x", y: str | dict = "y", text: str = "text", **look: object
) -> Layer:
    """Words, backed by the background so that lines do not cross them."""
    front = {"type": "text", "lineBreak": "\n", "color": TEXT, "fontSize": 11, "lineHeight": 14}
    front |= look
    halo = {"stroke": BACKGROUND, "color": BACKGROUND, "strokeWidth": 6, "strokeJoin": "round"}
    return {"layer": [layer(rows, mark, x=x, y=y, text=text) for mark in (front | halo, front)]}


def names_at_right(rows: list[Datum], span: float, height: float, start: str | dict) -> list[Layer]:
    """Each row's "text" at the right of the chart, joined to its "y" by a line in its "color".

    The names are moved apart where lines are close; `span` is what `height` pixels stand for.
    """
    at = spread([row["y"] for row in rows], span * _NAME_HEIGHT / height)
    rows = [row | {"at": short(place)} for row, place in zip(rows, at, strict=True)]
    join = {"type": "rule", "strokeWidth": 1.4}
    ends = {"x": start, "x2": fixed("width + 16"), "y": "y", "y2": "at"}
    joins = layer(rows, join, **ends, stroke="color")
    return [joins, texts(rows, x=fixed("width"), y="at", **_NAME)]


def legend(entries: Sequence[Entry], width: float) -> Layer:
    """The legend below a picture of `width` pixels, carried by marks that are not seen."""
    widths = [48 + 6 * len(entry.label) for entry in entries]
    columns = max(1, int(width / max(widths))) if sum(widths) > width else len(entries)
    if len(entries) == 1:  # Vega puts the label of an only entry over its symbol
        entries = [*entries, Entry(" ", LINE)]
    labels, *looks = zip(*entries, strict=True)
    settings = {"title": None, "orient": "bottom", "direction": "horizontal", "columns": columns}
    settings |= {"gridAlign": "each", "columnPadding": 18, "rowPadding": 4, "offset": 12}
    settings |= {"symbolSize": 110, "symbolOpacity": 1, "symbolStrokeWidth": 1.6}
    settings |= {"labelLimit": 0, "labelOffset": 7}
    encoding = {"x": fixed(0), "y": fixed(0)}
    for channel, values in zip(("shape", "fill", "stroke"), looks, strict=True):
        scale = {"domain": labels, "range": values}
        own = {"field": "label", "type": "nominal", "scale": scale, "legend": settings}
        encoding[channel] = own
    rows = [{"label": label} for label in labels]
    return layer(rows, {"type": "point", "opacity": 0}, **encoding)


def quantity(title: str | None, low: float, high: float, **axis: object) -> dict:
    """An axis of numbers from `low` to `high`; `axis` overrides the look of Vega-Lite's."""
    scale = {"domain": [low, high], "nice": False, "zero": False}
    return {"type": "quantitative", "scale": scale, "axis": {"title": title, "grid": False, **axis}}


def named(
    names: list[str],
    low: float = -0.6,
    high: float | None = None,
    shift: float = 0.0,
    title: str | None = None,
    downwards: bool = False,
    letters: int = 0,
) -> dict:
    """An axis on which position n, moved by `shift`, has the n-th name; from the top `downwards`.

    With `letters`, a line of a name has no more where the view is narrow (see `narrowing`).
    Without, names that do not fit are left out.
    """
    words = json.dumps([name.split("\n") for name in names])
    if letters:
        folded = json.dumps([textwrap.wrap(name, letters) for name in names])
        words = f"(narrow ? {folded} : {words})"
    found = f"{words}[round(datum.value - {shift})]"
    at = [index + shift for index in range(len(names))]
    look = {"labelExpr": found, "labelOverlap": not letters, "domain": not downwards}
    axis = quantity(title, low, len(names) - 0.4 if high is None else high, values=at, **look)
    axis["scale"]["reverse"] = downwards
    return axis


def view(width: int, height: int, x: dict, y: dict, layers: list[Layer]) -> dict:
    """What a chart draws: its size in pixels, its axes and its layers, the lowest first."""
    return {"width": width, "height": height, "encoding": {"x": x, "y": y}, "layer": layers}


def narrowing(room: float, height: float | None = None) -> dict:
    """Members of a view that make its parameter "narrow" true in a page with less `room` for it.

    Both are pixels; the view has the `height` there.
    """
    narrow = {"room": room} | ({"height": height} if height else {})
    return {"params": [{"name": "narrow", "value": False}], "usermeta": narrow}


def lying(names: list[str], x: dict, layers: list[Layer], each: int = 27) -> dict:
    """The view of lying bars over the axis `x`, one of `each` pixels a name."""
    lines = max(len(textwrap.wrap(name, _LETTERS)) for name in names)
    room = 330 + _LETTER * max(map(len, names))
    narrow = narrowing(room, max(each, 14 * lines + 8) * len(names) + 8)
    y = named(names, downwards=True, letters=_LETTERS)
    y["axis"]["labelOffset"] = {"expr": f"narrow ? {-7 * (lines - 1)} : 0"}
    return view(520, each * len(names) + 8, x, y, layers) | narrow


def wrapped(text: str, width: float, size: float) -> list[str]:
    """The text in lines of at most about `width` pixels."""
    return textwrap.wrap(text, int(width / (size * 0.53))) or [""]


def unit_of(longest_ms: float) -> tuple[float, str]:
    """Divisor and name of the unit for an axis that reaches `longest_ms`."""
    return (1000.0, "seconds") if longest_ms >= 100.0 else (1.0, "milliseconds")


def byte_unit_of(most: float) -> tuple[float, str]:
    """Divisor and name of the unit for an axis that reaches `most` bytes."""
    gibibyte = 2.0**30
    return (gibibyte, "GiB") if most >= 0.5 * gibibyte else (2.0**20, "MiB")


def spread(positions: list[float], gap: float) -> list[float]:
    """The positions moved apart, in order, until neighbours are at least `gap` away."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    placed = sorted(positions)
    for _ in range(200):
        lacks = [gap - (upper - lower) for lower, upper in pairwise(placed)]
        if not lacks or max(lacks) <= 1e-9:
            break
        for lower, lack in enumerate(lacks):
            if lack > 1e-9:
                placed[lower] -= lack / 2.0
                placed[lower + 1] += lack / 2.0
    found = dict(zip(order, placed, strict=True))
    return [found[index] for index in range(len(positions))]


def lines(*words: str) -> str:
    """Lines of what a mark says of itself; empty ones left out."""
    return "\n".join(line for line in words if line)


def described(rows: list[Datum]) -> str:
    """What the rows' marks say of themselves, the first line and the second, as one sentence."""
    found: dict[str, list[str]] = {}
    for row in rows:
        name, words, *_ = row["words"].split("\n")
        found.setdefault(name, []).append(words)
    return "; ".join(f"{name}: {', '.join(words)}" for name, words in found.items()) + "."


def short(value: float) -> float:
    """Seven digits are more than any clock here is worth, and more would double the page."""
    return float(f"{value:.7g}")
