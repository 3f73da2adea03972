"""Renders report.html: one file with everything inside, readable without network or JavaScript.

Charts are embedded as SVG images, each in a light and a dark rendering that the reader's own
setting chooses between; print takes the light one. A content policy forbids every outside request.
"""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from .chart_types import ChartSet
from .descriptions import describe
from .labels import sentence
from .load import Results
from .measurement import how_it_was_measured
from .selection import Selection
from .summary import headlines, sentences
from .table import COLUMNS, Cell, TableRow, build_table

_HALF_WIDTH = ("mp_vs_rn", "mp_vs_rn_vs_pp")
_NUMBERS = range(1, 10)

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>$title</title>
<style>
$css</style>
</head>
<body>
<a class="skip" href="#summary">Skip to the summary</a>
<header>
<h1>$title</h1>
<p class="muted">$subtitle</p>
<nav aria-label="Sections"><ul>$links</ul></nav>
</header>
<main>
$sections
</main>
<footer>$footer</footer>
<script>
$script</script>
</body>
</html>
""")


def render_report(
    results: Results,
    selection: Selection,
    charts: ChartSet,
    images: dict[str, dict[str, bytes]],
) -> bytes:
    """The page; `images` holds each chart's SVG as {name: {"light": bytes, "dark": bytes}}."""
    sections = {
        "summary": ("Summary", _summary(results, selection)),
        "charts": ("Charts", _charts(charts, images)),
        "rows": ("All rows", _table(build_table(results, selection))),
        "measured": ("How it was measured", _list(how_it_was_measured(results))),
        "configuration": ("Configuration", _configuration(results)),
        "machine": ("Machine", _machine(results)),
    }
    here = Path(__file__)
    page = _PAGE.substitute(
        title=escape(_title(selection)),
        subtitle=escape(_subtitle(results)),
        css=here.with_name("report.css").read_text(encoding="utf-8"),
        script=here.with_name("report.js").read_text(encoding="utf-8"),
        links="".join(
            f'<li><a href="#{key}">{name}</a></li>' for key, (name, _) in sections.items()
        ),
        sections="\n".join(
            f'<section id="{key}" aria-labelledby="{key}-title">\n'
            f'<h2 id="{key}-title">{name}</h2>\n{body}\n</section>'
            for key, (name, body) in sections.items()
        ),
        footer=_footer(results),
    )
    return page.encode("utf-8")


def _title(selection: Selection) -> str:
    return f"Parallelism strategies: {selection.workload or 'no working row'}"


def _subtitle(results: Results) -> str:
    parts = [results.path.name]
    for key in ("date", "host_name"):
        if results.context.get(key):
            parts.append(str(results.context[key]))
    return " \u00b7 ".join(parts)


def _summary(results: Results, selection: Selection) -> str:
    cards = "".join(
        f"<div><dt>{escape(item.label)}</dt>"
        f'<dd class="value">{escape(item.value)}</dd>'
        f'<dd class="note">{escape(item.note)}</dd></div>'
        for item in headlines(selection)
    )
    cards = f'<dl class="headlines">{cards}</dl>' if cards else ""
    return cards + _list(sentences(results, selection))


def _charts(charts: ChartSet, images: dict[str, dict[str, bytes]]) -> str:
    figures = []
    for name, chart in charts.charts.items():
        style = ' class="half"' if name in _HALF_WIDTH and len(charts.charts) > 1 else ""
        light, dark = (_data_uri(images[name][theme]) for theme in ("light", "dark"))
        figures.append(
            f'<figure{style} id="{name}"><picture>'
            f'<source media="screen and (prefers-color-scheme: dark)" srcset="{dark}">'
            f'<img src="{light}" alt="{escape(describe(chart))}"></picture>'
            f"<figcaption>{escape(chart.caption)}</figcaption></figure>"
        )
    body = f'<div class="figures">{"".join(figures)}</div>' if figures else ""
    if charts.left_out:
        items = "".join(
            f"<li><code>{escape(name)}</code>: {escape(reason)}</li>"
            for name, reason in charts.left_out.items()
        )
        body += f"<h3>Left out, because the data cannot feed them</h3><ul>{items}</ul>"
    return body


def _table(rows: list[TableRow]) -> str:
    head = "".join(
        f'<th scope="col" title="{escape(meaning)}"{_number_class(index)}>{escape(name)}</th>'
        for index, (name, meaning) in enumerate(COLUMNS)
    )
    body = "\n".join(_table_row(row) for row in rows)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table of all rows">'
        "<table data-sortable><caption>Fastest first; a heading sorts by its column, and pointing "
        "at it says what it means.</caption>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _table_row(row: TableRow) -> str:
    name, *cells = row.cells
    full_name = escape(name.detail).replace("/", "/<wbr>")
    first = (
        f'<th scope="row"{_key(name)}>{escape(name.text)}'
        f'<span class="detail">{full_name}</span></th>'
    )
    if row.failed:
        rest = f'<td colspan="{len(COLUMNS) - 1}">{_cell_text(cells[0])}</td>'
        return f'<tr class="failed">{first}{rest}</tr>'
    rest = "".join(
        f"<td{_number_class(index)}{_key(cell)}>{_cell_text(cell)}</td>"
        for index, cell in enumerate(cells, start=1)
    )
    return f"<tr{' class=best' if row.best else ''}>{first}{rest}</tr>"


def _cell_text(cell: Cell) -> str:
    text = escape(cell.text)
    tone = {"passed": "good", "failed": "bad"}.get(cell.text)
    text = f'<span class="{tone}">{text}</span>' if tone else text
    return text + (f'<span class="detail">{escape(cell.detail)}</span>' if cell.detail else "")


def _key(cell: Cell) -> str:
    return "" if cell.key is None else f' data-key="{escape(str(cell.key))}"'


def _number_class(index: int) -> str:
    return ' class="number"' if index in _NUMBERS else ""


def _configuration(results: Results) -> str:
    """Options with one value throughout, and those that vary; a row may not use them all."""
    values: dict[str, list[str]] = {}
    for row in results.rows:
        for key, value in row.config.items():
            if value is None:
                continue
            text = _plain(value)
            if text not in values.setdefault(key, []):
                values[key].append(text)
    same = {sentence(key): found[0] for key, found in values.items() if len(found) == 1}
    varied = {sentence(key): ", ".join(found) for key, found in values.items() if len(found) > 1}
    command = results.stratagem.get("command_line")
    command = " ".join(map(str, command)) if isinstance(command, list) else command
    line = f"<p><code>{escape(str(command))}</code></p>" if command else ""
    return line + f'<div class="facts">{_facts("Varied", varied)}{_facts("The same", same)}</div>'


def _machine(results: Results) -> str:
    fingerprint = results.stratagem.get("fingerprint")
    fingerprint = fingerprint if isinstance(fingerprint, dict) else {}
    groups = {
        "Hardware: must match for a comparison": fingerprint.get("hardware"),
        "Software": fingerprint.get("software"),
        "Calibration": results.stratagem.get("calibration"),
    }
    tables = "".join(_facts(name, _flatten(group)) for name, group in groups.items() if group)
    return f'<div class="facts">{tables}</div>' if tables else "<p>Nothing was recorded.</p>"


def _facts(title: str, facts: dict[str, str]) -> str:
    if not facts:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>'
        for key, value in facts.items()
    )
    return f"<div><h3>{escape(title)}</h3><table><tbody>{rows}</tbody></table></div>"


def _flatten(value: Any, prefix: str = "") -> dict[str, str]:
    """Nested objects as one level, their keys joined."""
    if not isinstance(value, dict):
        return {prefix or "Value": _plain(value)}
    flat: dict[str, str] = {}
    for key, inner in value.items():
        name = f"{prefix}, {key.replace('_', ' ')}" if prefix else sentence(str(key))
        flat |= _flatten(inner, name)
    return flat


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value) or "none"
    return str(value) if str(value) else "none"


def _footer(results: Results) -> str:
    parts = ["Stratagem"]
    if results.stratagem.get("version"):
        parts[0] += f" {results.stratagem['version']}"
    if results.stratagem.get("git_commit"):
        parts.append(f"commit {results.stratagem['git_commit']}")
    parts.append(f"schema {results.stratagem['schema']}")
    return escape(", ".join(parts)) + "."


def _list(items: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _data_uri(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
