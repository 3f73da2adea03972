"""The look that all charts share: the frame around the axes, its parts, and encoding to files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path

from .theme import Theme

DPI = 200
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.0,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "stratagem",
    "svg.fonttype": "path",
}


def encode(draw: Callable[[], Figure], extensions: tuple[str, ...]) -> dict[str, bytes]:
    """Draws once and returns the figure as bytes for every extension, the same every time."""
    with matplotlib.rc_context(_SETTINGS):
        figure = draw()
        try:
            return {extension: _encode_one(figure, extension) for extension in extensions}
        finally:
            pyplot.close(figure)


def _encode_one(figure: Figure, extension: str) -> bytes:
    stream = io.BytesIO()
    keys = {
        "svg": ("Creator", "Date", "Format", "Type"),
        "png": ("Software",),
    }[extension]
    figure.savefig(
        stream,
        format=extension,
        dpi=DPI,
        facecolor=figure.get_facecolor(),
        metadata=dict.fromkeys(keys),
    )
    return stream.getvalue()


@dataclass(frozen=True)
class Frame:
    """Sizes in inches: the axes' area and the margins left for labels at its sides."""

    width: float = 7.0
    height: float = 3.4
    left: float = 0.75
    right: float = 0.25
    bottom: float = 0.55


def framed(
    theme: Theme,
    frame: Frame,
    title: str,
    subtitle: str,
    footnote: str = "",
    handles: list | None = None,
    columns: int = 4,
) -> tuple[Figure, Axes]:
    """A figure with title, subtitle, legend rows above the axes and a footnote below them.

    `frame.width` is the whole figure's, `frame.height` that of the axes alone; the figure grows by
    what stands above and below, so that nothing ever overlaps.
    """
    handles = handles or []
    titles, subtitles = _wrap(title, frame.width, 11.5), _wrap(subtitle, frame.width, 8.5)
    notes = _wrap(footnote, frame.width, 7.5) if footnote else []
    rows = -(-len(handles) // columns)
    above = (
        0.16
        + 0.21 * len(titles)
        + 0.165 * len(subtitles)
        + 0.04
        + 0.165 * rows
        + (0.2 if rows else 0.12)
    )
    below = frame.bottom + (0.14 * len(notes) + 0.14 if notes else 0.06)
    total = above + frame.height + below
    figure = pyplot.figure(figsize=(frame.width, total), facecolor=theme.background)
    axes = figure.add_axes(
        (
            frame.left / frame.width,
            below / total,
            (frame.width - frame.left - frame.right) / frame.width,
            frame.height / total,
        )
    )
    _style_axes(axes, theme)
    top = total - 0.16
    x = 0.12 / frame.width
    figure.text(
        x, top / total, "\n".join(titles), size=11.5, weight="bold", color=theme.text, va="top"
    )
    top -= 0.21 * len(titles) + 0.02
    figure.text(x, top / total, "\n".join(subtitles), size=8.5, color=theme.muted, va="top")
    top -= 0.165 * len(subtitles) + 0.06
    if handles:
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(x, top / total),
            ncols=columns,
            frameon=False,
            labelcolor=theme.text,
            borderaxespad=0.0,
            borderpad=0.1,
            columnspacing=1.4,
            handlelength=1.6,
            labelspacing=0.35,
        )
    if notes:
        figure.text(
            x,
            0.08 / total,
            "\n".join(notes),
            size=7.5,
            color=theme.muted,
            va="bottom",
            linespacing=1.3,
        )
    return figure, axes


def text_width(text: str, size: float) -> float:
    """Roughly how wide the widest line of a text is in inches, erring on the wide side."""
    lines = [sum(1.0 if letter in "MWmw" else 0.64 for letter in line) for line in text.split("\n")]
    return max(lines) * size / 72.0


def interval_handle(theme: Theme, label: str) -> Line2D:
    """A legend entry that looks like an error bar."""
    corners = [(-0.5, -1.0), (0.5, -1.0), (0.0, -1.0), (0.0, 1.0), (-0.5, 1.0), (0.5, 1.0)]
    codes = [Path.MOVETO, Path.LINETO] * 3
    return Line2D(
        [],
        [],
        linestyle="",
        marker=Path(corners, codes),
        markersize=8,
        markerfacecolor="none",
        markeredgecolor=theme.text,
        markeredgewidth=1.3,
        label=label,
    )


def backed(theme: Theme) -> dict:
    """A text's box in the colour of the background, so that lines behind do not cross it."""
    return {"facecolor": theme.background, "edgecolor": "none", "pad": 1.2, "alpha": 0.85}


def unit_of(longest_ms: float) -> tuple[float, str]:
    """Divisor and name of the unit for an axis that reaches `longest_ms`."""
    return (1000.0, "seconds") if longest_ms >= 100.0 else (1.0, "milliseconds")


def jitter(count: int, width: float) -> list[float]:
    """Steady sideways offsets that keep `count` dots of equal height apart."""
    if count < 2:
        return [0.0] * count
    step = width / (count - 1)
    return [
        -width / 2.0 + step * ((index * 7) % count if count % 7 else index)
        for index in range(count)
    ]


def spread(positions: list[float], gap: float) -> list[float]:
    """The positions moved apart, in order, until neighbours are at least `gap` away."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    placed = sorted(positions)
    for _ in range(200):
        moved = False
        for lower in range(len(placed) - 1):
            lack = gap - (placed[lower + 1] - placed[lower])
            if lack > 1e-9:
                placed[lower] -= lack / 2.0
                placed[lower + 1] += lack / 2.0
                moved = True
        if not moved:
            break
    result = [0.0] * len(positions)
    for rank, index in enumerate(order):
        result[index] = placed[rank]
    return result


def _style_axes(axes: Axes, theme: Theme) -> None:
    axes.set_facecolor(theme.background)
    axes.set_axisbelow(True)
    axes.tick_params(colors=theme.text, length=0, pad=5)
    axes.xaxis.label.set_color(theme.text)
    axes.yaxis.label.set_color(theme.text)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(theme.muted)
        spine.set_linewidth(0.8)


def _wrap(text: str, width: float, size: float) -> list[str]:
    characters = int((width - 0.24) * 72.0 / (size * 0.545))
    return textwrap.wrap(text, characters) or [""]
