"""The page's figures: an interactive chart each, and its picture for print and no JavaScript."""

import json
from html import escape
from typing import Any

from ..charts.chart import Chart
from ..charts.registry import ChartSet
from ..charts.render import page_picture
from ..charts.theme import PATTERNS

_HALF_WIDTH = ("mp_vs_rn", "mp_vs_rn_vs_pp")
_ZOOM = (
    '<p class="muted hint">Ctrl and the wheel zoom, dragging moves, a double click shows all.</p>'
)


def render_figures(charts: ChartSet) -> str:
    """Every chart, and the list of those left out with the reasons."""
    half = _HALF_WIDTH if len(charts.charts) > 1 else ()
    figures = [_figure(name, chart, name in half) for name, chart in charts.charts.items()]
    body = ""
    if figures:
        patterns = f'<svg class="unseen" aria-hidden="true">{PATTERNS}</svg>'
        body = f'{patterns}<div class="figures">{"".join(figures)}</div>'
    if charts.left_out:
        items = "".join(
            f"<li><code>{escape(name)}</code>: {escape(reason)}</li>"
            for name, reason in charts.left_out.items()
        )
        body += f"<h3>Left out, because the data cannot feed them</h3><ul>{items}</ul>"
    return body


def _figure(name: str, chart: Chart, half: bool) -> str:
    words, style = escape(chart.description), ' class="half"' if half else ""
    return (
        f'<figure{style} id="{name}" data-chart><div class="interactive">'
        f"<h3>{escape(chart.title)}</h3>"
        f'<p class="muted">{escape(chart.subtitle)}</p>'
        f'<div class="plot" tabindex="0" role="application" aria-roledescription="chart" '
        f'aria-label="{escape(chart.title)}. Arrow keys step through what it shows." '
        f'aria-describedby="{name}-words"></div>'
        f"{_ZOOM if chart.zooms else ''}"
        f'<p class="unseen" id="{name}-words">{words}</p></div>'
        f'<div class="picture" role="img" aria-label="{words}">{page_picture(chart)}</div>'
        f"<figcaption>{escape(chart.caption)}</figcaption>"
        f'<script type="application/json">{_json(chart.page_specification)}</script></figure>'
    )


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
