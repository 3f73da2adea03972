"""A chart: what it says in words, and its Vega-Lite specification."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .marks import Entry, legend, wrapped
from .theme import BACKGROUND, FONT, GRID, MUTED, TEXT

VERSION = "6.4"
_CONFIG = {
    "aria": False,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": TEXT,
        "titleColor": TEXT,
        "labelFontSize": 11.5,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelPadding": 6,
        "labelLimit": 0,
        "labelSeparation": 8,
        "ticks": False,
        "gridColor": GRID,
        "domainColor": MUTED,
    },
    "axisX": {"labelFlush": False},
    "axisY": {"domain": False},
    "legend": {"labelColor": TEXT, "labelFontSize": 11.5},
    "title": {
        "anchor": "start",
        "frame": "group",
        "color": TEXT,
        "fontSize": 16,
        "subtitleColor": MUTED,
        "subtitleFontSize": 12,
        "subtitlePadding": 6,
        "offset": 10,
    },
}
_SHARED = {
    "$schema": f"https://vega.github.io/schema/vega-lite/v{VERSION[0]}.json",
    "background": BACKGROUND,
    "config": _CONFIG,
}

_DRAG = "[mousedown, window:mouseup] > window:mousemove!"
_ZOOM = {
    "name": "zoom",
    "select": {
        "type": "interval",
        "encodings": ["x"],
        "zoom": "wheel![event.ctrlKey]",
        "translate": _DRAG,
    },
    "bind": "scales",
}


@dataclass(frozen=True)
class Chart:
    """A chart in words and as a Vega-Lite view (width, height, encoding, layer).

    `words` give what it shows to readers who do not see it; `caption` and `legend` explain its
    marks. One that `zooms` can be stretched along its horizontal axis in a page.
    """

    title: str
    subtitle: str
    caption: str
    words: str
    view: dict[str, Any]
    legend: Sequence[Entry] = ()
    zooms: bool = False

    @property
    def description(self) -> str:
        """An alternative text."""
        return f"{self.title}. {self.words}"

    @property
    def specification(self) -> dict[str, Any]:
        """The chart with title and legend at its own width, for a picture, where nothing moves."""
        room = self.view["width"] + 60
        below = {"subtitle": wrapped(self.subtitle, room, 12)}
        title = {"title": {"text": wrapped(self.title, room, 17), **below}}
        explained = [legend(self.legend, room)] if self.legend else []
        whole = {"padding": 16, "layer": self.view["layer"] + explained}
        return _with_datasets(_SHARED | self.view | whole | title)

    @property
    def page_specification(self) -> dict[str, Any]:
        """The chart for a page, which has title and legend and determines the chart's width."""
        fit = {"type": "fit-x", "contains": "padding"}
        # Words at the right end move when the chart is made to fit: the padding is their room.
        padding = {"left": 4, "top": 4, "bottom": 4, "right": 12}
        wide = {"width": "container", "autosize": fit, "padding": padding}
        return _with_datasets(_SHARED | self.view | wide | self._zoomed_layers())

    def _zoomed_layers(self) -> dict[str, Any]:
        first, *others = self.view["layer"]
        return {"layer": [first | {"params": [_ZOOM]}, *others]} if self.zooms else {}


def _with_datasets(specification: dict[str, Any]) -> dict[str, Any]:
    """The same with rows that several layers share written once."""
    names: dict[int, str] = {}
    datasets: dict[str, list] = {}

    def named(view: dict) -> dict:
        if "layer" in view:
            return view | {"layer": [named(part) for part in view["layer"]]}
        rows = view["data"]["values"]
        name = names.setdefault(id(rows), f"rows_{len(names)}")
        datasets[name] = rows
        return view | {"data": {"name": name}}

    return named(specification) | {"datasets": datasets}
