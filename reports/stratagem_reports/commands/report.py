"""`stratagem report`: charts and report.html, report.md or report.csv of a results file."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from ..chart_types import ChartSet
from ..errors import InputError
from ..files import write_together
from ..load import Results, load_results

EXTENSIONS = ("png", "svg")
FORMATS = ("html", "markdown", "csv")


def register(commands: argparse._SubParsersAction) -> None:
    """Adds the subcommand's parser."""
    report = commands.add_parser(
        "report", help="charts (.png, .svg) and report.html of a results file"
    )
    report.add_argument("results", type=Path, metavar="RESULTS.json", help="a results file")
    report.add_argument(
        "--format",
        choices=FORMATS,
        default="html",
        help="html: charts and report.html, one file with everything inside (default); markdown: "
        "charts and report.md; csv: report.csv alone, one line a row, units in the headings",
    )
    report.add_argument(
        "--out-dir", type=Path, metavar="DIR", help="folder for the output (default: the file's)"
    )
    report.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Writes the charts and the report, and prints their paths."""
    results = load_results(options.results)
    from ..bandwidth_data import holds_collectives

    folder = options.out_dir or options.results.parent
    if options.format == "csv":
        return _put(folder, _csv(results))
    if holds_collectives(results):
        if options.format == "markdown":
            raise InputError(
                f"--format markdown: {options.results} holds times of collectives, whose report is "
                "a page; leave the option out, or take csv"
            )
        return _put_charts(folder, *_collectives(results))
    from ..gantt_data import gantt_names

    return _put_charts(folder, *_strategies(results, options.format), gantt_names())


def _csv(results: Results) -> dict[str, bytes]:
    from ..report_csv import render_csv
    from ..selection import select

    return {"report.csv": render_csv(results, select(results))}


def _collectives(results: Results) -> tuple[ChartSet, dict[str, bytes]]:
    """The chart, and the contents of the files."""
    from ..bandwidth_data import bandwidth
    from ..report_collectives import render_collectives

    charts = ChartSet.of({"bandwidth": bandwidth(results)})
    contents, images = _drawn(charts)
    return charts, contents | {"report.html": render_collectives(results, charts, images)}


def _strategies(results: Results, written_as: str) -> tuple[ChartSet, dict[str, bytes]]:
    """The charts, and the contents of the files."""
    from ..chart_data import build_charts
    from ..published_rules import compare_published
    from ..report import render_report
    from ..report_markdown import render_markdown
    from ..selection import select

    selection = select(results)
    charts = build_charts(results, selection)
    published = compare_published(results, selection)
    contents, images = _drawn(charts, written_as == "html")
    if written_as == "html":
        contents["report.html"] = render_report(results, selection, charts, images, published)
    else:
        contents["report.md"] = render_markdown(results, selection, charts, published)
    return charts, contents


def _drawn(
    charts: ChartSet, for_page: bool = True
) -> tuple[dict[str, bytes], dict[str, dict[str, bytes]]]:
    """The charts' files by name, and of each chart the page's images by theme if there is one."""
    from ..charts import DARK, LIGHT, render

    contents: dict[str, bytes] = {}
    images: dict[str, dict[str, bytes]] = {}
    for name, chart in charts.charts.items():
        light = render(chart, EXTENSIONS, LIGHT)
        contents |= {f"{name}.{extension}": data for extension, data in light.items()}
        if for_page:
            dark = render(chart, ("svg",), DARK)
            images[name] = {"light": light["svg"], "dark": dark["svg"]}
    return contents, images


def _put_charts(
    folder: Path, charts: ChartSet, contents: dict[str, bytes], optional: Iterable[str] = ()
) -> int:
    """Writes the files in place of those of charts that are no more, and names what is left out.

    `optional` are charts that a report of this kind may have, which nobody misses.
    """
    absent = [name for name in (*charts.left_out, *optional) if name not in charts.charts]
    _put(folder, contents, [f"{name}.{extension}" for name in absent for extension in EXTENSIONS])
    for name, reason in charts.left_out.items():
        print(f"left out {name}: {reason}")
    return 0


def _put(folder: Path, contents: dict[str, bytes], stale: list[str] = ()) -> int:
    for path in write_together(folder, contents, remove=stale):
        print(path)
    return 0
