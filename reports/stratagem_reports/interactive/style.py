"""The look that all interactive charts share: layout, axes, error bars and text."""

from __future__ import annotations

from html import escape

from ..charts.theme import Theme
from ..labels import time_text

FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"


def layout(theme: Theme, height: int, across: dict, up: dict, **more: object) -> dict:
    """A layout of `height` pixels that fills the width; the axes' own settings win."""
    return {
        "height": height,
        "autosize": True,
        "margin": {"l": 20, "r": 20, "t": 12, "b": 20},
        "paper_bgcolor": theme.background,
        "plot_bgcolor": theme.background,
        "font": {"family": FONT, "size": 12, "color": theme.text},
        "hoverlabel": {
            "bgcolor": theme.empty,
            "bordercolor": theme.muted,
            "align": "left",
            "font": {"family": FONT, "size": 12, "color": theme.text},
        },
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 11},
        },
        "hovermode": "closest",
        "dragmode": "zoom",
        "showlegend": True,
        "xaxis": _axis(theme) | across,
        "yaxis": _axis(theme) | up,
    } | more


def title(words: str) -> dict:
    """An axis title."""
    return {"text": text(words), "standoff": 10, "font": {"size": 12}}


def text(words: str) -> str:
    """Words as plotly shows them: its markup escaped, line breaks kept."""
    return escape(words, quote=False).replace("\n", "<br>")


def bold(words: str, *lines: str) -> str:
    """A hover text: the first line bold, then the others; empty ones left out."""
    return "<br>".join([f"<b>{text(words)}</b>", *(text(line) for line in lines if line)])


def between(low: float, high: float) -> str:
    """An error bar in words."""
    return f"{time_text(low)} to {time_text(high)}"


def error_bars(
    theme: Theme, middles: list[float], lows: list[float], highs: list[float], width: int = 4
) -> dict:
    """Error bars that reach from `lows` to `highs` around `middles`."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - middle for middle, high in zip(middles, highs, strict=True)],
        "arrayminus": [middle - low for middle, low in zip(middles, lows, strict=True)],
        "color": theme.text,
        "thickness": 1.3,
        "width": width,
    }


def sample_marker(theme: Theme, size: float = 5.0) -> dict:
    """The marker of one sample: a small ring."""
    return {
        "size": size,
        "color": theme.background,
        "line": {"color": theme.text, "width": 1},
        "symbol": "circle",
    }


def pixels(rows: int, each: int, least: int = 0) -> int:
    """The height of a chart of horizontal bars, with room for its legend and axis."""
    return max(least, each * rows + 130)


def _axis(theme: Theme) -> dict:
    return {
        "gridcolor": theme.grid,
        "linecolor": theme.muted,
        "zeroline": False,
        "showgrid": False,
        "automargin": True,
        "ticks": "",
        "tickfont": {"color": theme.text},
    }
