"""The page of a results file, with what every one has: configuration, machine, version."""

from typing import Any

from ..analysis.labels import sentence
from ..charts.registry import ChartSet
from ..results.load import Results
from .page import render_page


def render_results(results: Results, charts: ChartSet, **values: object) -> bytes:
    """The page with everything that the file can tell.

    `values` are title, verdict, headlines, sentences, table, and how it was measured.
    """
    subtitle = [results.path.name, results.context.date, results.context.host_name]
    return render_page(
        "results.html",
        charts,
        subtitle=" \u00b7 ".join(filter(None, subtitle)),
        command=results.stratagem.command_line,
        configuration=_configuration(results),
        machine=_machine(results),
        footer=_footer(results),
        **values,
    )


def _configuration(results: Results) -> dict[str, dict[str, str]]:
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
    return {"Varied": varied, "The same": same}


def _machine(results: Results) -> dict[str, dict[str, str]]:
    """Hardware, software and calibration."""
    groups = {
        "Hardware: must match for a comparison": results.stratagem.fingerprint.hardware or {},
        "Software": results.stratagem.fingerprint.software or {},
        "Calibration": results.stratagem.calibration,
    }
    return {
        name: {sentence(key): _plain(value) for key, value in group.items()}
        for name, group in groups.items()
    }


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
