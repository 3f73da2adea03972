"""Renders report.html: one file with everything inside, readable without network or JavaScript.

Charts are interactive where JavaScript runs. Beneath each lies an SVG image in a light and a dark
rendering that the reader's own setting chooses between; print takes the light one. A content policy
forbids every outside request and every script but the two of the page, known by their hashes.
"""

from __future__ import annotations

from html import escape
from typing import Any

from .chart_types import ChartSet
from .labels import sentence
from .load import Results
from .measurement import how_it_was_measured
from .page import CHARTS_SCRIPT, TABLE_SCRIPT, listed, render_page
from .plotly_bundle import load_bundle
from .published_rules import Comparison
from .report_figures import render_figures
from .report_published import render_published
from .report_table import render_table
from .selection import Selection
from .summary import headlines, sentences
from .table import build_table


def render_report(
    results: Results,
    selection: Selection,
    charts: ChartSet,
    images: dict[str, dict[str, bytes]],
    published: list[Comparison],
) -> bytes:
    """The page; `images` holds each chart's SVG as {name: {"light": bytes, "dark": bytes}}."""
    bundle = load_bundle() if charts.charts else None
    return render_page(
        _title(selection),
        _subtitle(results),
        [
            ("summary", "Summary", _summary(results, selection)),
            ("charts", "Charts", render_figures(charts, images)),
            ("published", "Published figures", render_published(published)),
            ("rows", "All rows", render_table(build_table(results, selection))),
            ("measured", "How it was measured", listed(how_it_was_measured(results))),
            ("configuration", "Configuration", _configuration(results)),
            ("machine", "Machine", _machine(results)),
        ],
        _footer(results),
        (TABLE_SCRIPT, CHARTS_SCRIPT),
        bundle,
    )


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
    return cards + listed(sentences(results, selection))


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
    return ", ".join(parts) + "."
