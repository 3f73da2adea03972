"""Renders report.html: one file with everything inside, readable without network or JavaScript.

Charts are interactive where JavaScript runs. Beneath each lies an SVG image in a light and a dark
rendering that the reader's own setting chooses between; print takes the light one. A content policy
forbids every outside request and every script but the two of the page, known by their hashes.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template
from typing import Any

from .chart_types import ChartSet
from .labels import sentence
from .load import Results
from .measurement import how_it_was_measured
from .plotly_bundle import load_bundle, policy_hash
from .published_rules import Comparison
from .report_figures import render_figures
from .report_published import render_published
from .report_table import render_table
from .selection import Selection
from .summary import headlines, sentences
from .table import build_table

_SCRIPTS = ("report_table.js", "report_charts.js")

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; base-uri 'none'; form-action 'none';
 img-src data:; style-src 'unsafe-inline'; script-src $policy">
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
$library<p class="unseen" role="status" id="announcement"></p>
<script>$script</script>
</body>
</html>
""")


def render_report(
    results: Results,
    selection: Selection,
    charts: ChartSet,
    images: dict[str, dict[str, bytes]],
    published: list[Comparison],
) -> bytes:
    """The page; `images` holds each chart's SVG as {name: {"light": bytes, "dark": bytes}}."""
    sections = {
        "summary": ("Summary", _summary(results, selection)),
        "charts": ("Charts", render_figures(charts, images)),
        "published": ("Published figures", render_published(published)),
        "rows": ("All rows", render_table(build_table(results, selection))),
        "measured": ("How it was measured", _list(how_it_was_measured(results))),
        "configuration": ("Configuration", _configuration(results)),
        "machine": ("Machine", _machine(results)),
    }
    here = Path(__file__)
    script = "".join(here.with_name(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    bundle = load_bundle() if charts.charts else None
    known = [policy_hash(script.encode("utf-8"))]
    page = _PAGE.substitute(
        title=escape(_title(selection)),
        subtitle=escape(_subtitle(results)),
        css=here.with_name("report.css").read_text(encoding="utf-8"),
        policy=" ".join([*known, bundle.policy_hash] if bundle else known),
        library=f'<script type="text/plain" id="plotly">{bundle.packed}</script>\n'
        if bundle
        else "",
        script=script,
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
