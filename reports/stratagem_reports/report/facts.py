"""The page of a results file, with what every one has: configuration, machine, version."""

from html import escape
from typing import Any

from ..analysis.labels import sentence
from ..charts.registry import ChartSet
from ..results.load import Results
from .figures import render_figures
from .page import listed, render_page
from .summary import Figure


def render_results(
    results: Results,
    charts: ChartSet,
    title: str,
    headlines: list[Figure],
    sentences: list[str],
    table: str,
    measured: list[str],
) -> bytes:
    """The page with everything that the file can tell; `table` is HTML, all else text.

    `headlines` and `sentences` are its summary, `measured` says how it was measured.
    """
    summary = _headline_cards(headlines) + (listed(sentences) if sentences else "")
    return render_page(
        title,
        _subtitle(results),
        [
            ("summary", "Summary", summary),
            ("charts", "Charts", render_figures(charts)),
            ("rows", "All rows", table),
            ("measured", "How it was measured", listed(measured)),
            ("configuration", "Configuration", _configuration(results)),
            ("machine", "Machine", _machine(results)),
        ],
        _footer(results),
        charts=bool(charts.charts),
    )


def _subtitle(results: Results) -> str:
    """The file, when and where it was measured."""
    parts = [results.path.name]
    parts += filter(None, (results.context.date, results.context.host_name))
    return " \u00b7 ".join(parts)


def _headline_cards(figures: list[Figure]) -> str:
    """The numbers at the top as HTML; nothing where there are none."""
    cards = "".join(
        f"<div><dt>{escape(item.label)}</dt>"
        f'<dd class="value">{escape(item.value)}</dd>'
        f'<dd class="note">{escape(item.note)}</dd></div>'
        for item in figures
    )
    return f'<dl class="headlines">{cards}</dl>' if cards else ""


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
    command = results.stratagem.command_line
    line = f"<p><code>{escape(command)}</code></p>" if command else ""
    return line + f'<div class="facts">{_facts("Varied", varied)}{_facts("The same", same)}</div>'


def _machine(results: Results) -> str:
    """Hardware, software and calibration, as HTML."""
    groups = {
        "Hardware: must match for a comparison": results.stratagem.fingerprint.hardware or {},
        "Software": results.stratagem.fingerprint.software or {},
        "Calibration": results.stratagem.calibration,
    }
    tables = "".join(
        _facts(name, {sentence(key): _plain(value) for key, value in group.items()})
        for name, group in groups.items()
    )
    return f'<div class="facts">{tables}</div>' if tables else "<p>Nothing was recorded.</p>"


def _facts(title: str, facts: dict[str, str]) -> str:
    if not facts:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>'
        for key, value in facts.items()
    )
    return f"<div><h3>{escape(title)}</h3><table><tbody>{rows}</tbody></table></div>"


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
    """What wrote the file."""
    parts = ["Stratagem"]
    if results.stratagem.version:
        parts[0] += f" {results.stratagem.version}"
    if results.stratagem.git_commit:
        parts.append(f"commit {results.stratagem.git_commit}")
    parts.append(f"schema {results.stratagem.schema}")
    return ", ".join(parts) + "."
