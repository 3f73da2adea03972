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
# A dark rendering beyond this is left out: without JavaScript the light one stands for it.
_LONGEST_DARK = 300_000


def render_figures(charts: ChartSet, images: dict[str, dict[str, bytes]]) -> str:
    """Every chart, and the list of those left out with the reasons.

    `images` holds each chart's SVG as {name: {"light": bytes, "dark": bytes}}.
    """
    count = len(charts.charts)
    figures = [_figure(name, chart, images[name], count) for name, chart in charts.charts.items()]
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


def _figure(name: str, chart: Any, images: dict[str, bytes], count: int) -> str:
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
        f"{picture(images, words)}"
        f"<figcaption>{escape(chart.caption)}</figcaption>"
        f'<script type="application/json">{_json(figure_data(chart))}</script></figure>'
    )


def picture(images: dict[str, bytes], words: str) -> str:
    """Both renderings, of which the style shows one; the light one is loaded always, for print."""
    light = _data_uri(images["light"])
    if len(images["dark"]) > _LONGEST_DARK:
        return f'<div class="picture"><img src="{light}" alt="{words}" decoding="async"></div>'
    dark = _data_uri(images["dark"])
    return (
        f'<div class="picture"><img class="light" src="{light}" alt="{words}" decoding="async">'
        f'<img class="dark" src="{dark}" alt="{words}" loading="lazy"></div>'
    )


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
    """The picture as a link, without its comments and line breaks; a third shorter than base64."""
    text = re.sub(r"<!--.*?-->", "", svg.decode("utf-8"), flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text).replace("> <", "><")
    if "'" not in text:
        text = text.replace('"', "'")
    return "data:image/svg+xml," + quote(text, safe=" !$')*+,-./;=?@_{}[]|~")
