"""The page's figures: an interactive chart each, and the static one for print and no JavaScript."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any
from urllib.parse import quote

from .chart_types import ChartSet
from .charts.theme import DARK, LIGHT
from .descriptions import describe
from .interactive import figure

_HALF_WIDTH = ("mp_vs_rn", "mp_vs_rn_vs_pp")
# So many bytes of dark pictures a page; where one is left out, the light one stands inverted.
_MOST_DARK = 700_000
_PATH = re.compile(r' d="[^"]*"')
# Hundredths of a point are enough.
_LONG_COORDINATE = re.compile(r"(\d\d\.\d\d)\d+")


def render_figures(charts: ChartSet, images: dict[str, dict[str, bytes]]) -> str:
    """Every chart, and the list of those left out with the reasons.

    `images` holds each chart's SVG as {name: {"light": bytes, "dark": bytes}}.
    """
    count = len(charts.charts)
    light = {name: _data_uri(images[name]["light"]) for name in charts.charts}
    dark = _within({name: _data_uri(images[name]["dark"]) for name in charts.charts}, _MOST_DARK)
    figures = [
        _figure(name, chart, light[name], dark.get(name), count)
        for name, chart in charts.charts.items()
    ]
    body = f'<div class="figures">{"".join(figures)}</div>' if figures else ""
    if charts.left_out:
        items = "".join(
            f"<li><code>{escape(name)}</code>: {escape(reason)}</li>"
            for name, reason in charts.left_out.items()
        )
        body += f"<h3>Left out, because the data cannot feed them</h3><ul>{items}</ul>"
    return body


def figure_data(chart: Any) -> dict:
    """The light figure, and what the dark one has otherwise as [path, value] pairs."""
    light = figure(chart, LIGHT)
    return {"figure": light, "dark": list(_differences(light, figure(chart, DARK), []))}


def _figure(name: str, chart: Any, light: str, dark: str | None, count: int) -> str:
    style = ' class="half"' if name in _HALF_WIDTH and count > 1 else ""
    words = escape(describe(chart))
    return (
        f'<figure{style} id="{name}" data-chart>'
        '<div class="interactive">'
        f"<h3>{escape(chart.title)}</h3>"
        f'<p class="muted">{escape(chart.subtitle)}</p>'
        f'<div class="plot" tabindex="0" role="application" aria-roledescription="chart" '
        f'aria-label="{escape(chart.title)}. Arrow keys step through what it shows." '
        f'aria-describedby="{name}-words"></div>'
        f'<p class="unseen" id="{name}-words">{words}</p></div>'
        f"{_picture(light, dark, words)}"
        f"<figcaption>{escape(chart.caption)}</figcaption>"
        f'<script type="application/json">{_json(figure_data(chart))}</script></figure>'
    )


def _picture(light: str, dark: str | None, words: str) -> str:
    """Both renderings, of which the style shows one; the light one is loaded always, for print.

    A light one alone is shown inverted where the dark one would stand.
    """
    if dark is None:
        return (
            f'<div class="picture"><img class="both" src="{light}" alt="{words}" '
            'decoding="async"></div>'
        )
    return (
        f'<div class="picture"><img class="light" src="{light}" alt="{words}" decoding="async">'
        f'<img class="dark" src="{dark}" alt="{words}" loading="lazy"></div>'
    )


def _within(pictures: dict[str, str], most: int) -> dict[str, str]:
    """The shortest pictures, of at most so many bytes together."""
    kept, size = {}, 0
    for name in sorted(pictures, key=lambda name: len(pictures[name])):
        size += len(pictures[name])
        if size > most:
            break
        kept[name] = pictures[name]
    return kept


def _differences(light: Any, dark: Any, path: list) -> Any:
    if isinstance(light, dict):
        for key in light:
            yield from _differences(light[key], dark[key], [*path, key])
    elif isinstance(light, list):
        for index, (first, second) in enumerate(zip(light, dark, strict=True)):
            yield from _differences(first, second, [*path, index])
    elif light != dark:
        yield [path, dark]


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _data_uri(svg: bytes) -> str:
    """The picture as a link, shorter than base64: without comments, line breaks and idle digits."""
    text = re.sub(r"<!--.*?-->", "", svg.decode("utf-8"), flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text).replace("> <", "><")
    text = _PATH.sub(lambda found: re.sub(r" ?([MLQCz]) ?", r"\1", found[0]), text)
    text = _LONG_COORDINATE.sub(r"\1", text)
    if "'" not in text:
        text = text.replace('"', "'")
    return "data:image/svg+xml," + quote(text, safe=" !$')*+,-./;=?@_{}[]|~")
