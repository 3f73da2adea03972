"""`stratagem report`: charts and report.html, report.md or report.csv of a results file."""

import argparse
from pathlib import Path

from ..charts.registry import ChartSet
from ..results.errors import InputError
from ..results.files import write_together

EXTENSIONS = ("png", "svg")
FORMATS = ("html", "markdown", "csv")


def register(commands: argparse._SubParsersAction) -> None:
    """Adds the subcommand's parser."""
    report = commands.add_parser(
        "report",
        help="writes charts (.png, .svg) and report.html from a results file",
        description="Writes charts (.png, .svg) and a report from a results file.",
    )
    report.add_argument(
        "results",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a results file, or logs of trainings, whose curves are drawn in one chart",
    )
    report.add_argument(
        "--format",
        choices=FORMATS,
        default="html",
        help="html: charts and a self-contained report.html (default); markdown: charts and "
        "report.md; csv: only report.csv, with a line for each row and units in the headings",
    )
    report.add_argument(
        "--out-dir", type=Path, metavar="DIR", help="output folder (default: the folder of the file)"
    )
    report.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Writes the charts and the report, and prints their paths."""
    from ..results.load import load_results, require_summaries
    from ..results.training import is_training

    if is_training(options.results[0]):
        return _put_trainings(options)
    if len(options.results) > 1:
        raise InputError(
            f"expected one results file, found {len(options.results)} files; several are only "
            "possible if all of them are logs or results of trainings"
        )
    (options.results,) = options.results
    results = load_results(options.results)
    require_summaries(results)
    from ..analysis.selection import select
    from ..charts.bandwidth import holds_collectives
    from ..charts.registry import draw_charts

    folder = options.out_dir or options.results.parent
    if options.format == "csv":
        from ..report.csv import render_csv

        return _put(folder, {"report.csv": render_csv(results, select(results))})
    if holds_collectives(results):
        if options.format == "markdown":
            raise InputError(
                f"--format markdown: {options.results} holds times of collectives, whose report is "
                "a page; leave the option out, or take csv"
            )
        from ..report.collectives import render_collectives

        charts = draw_charts("collectives", results)
        return _put_charts(folder, charts, {"report.html": render_collectives(results, charts)})
    from ..report.html import render_report
    from ..report.markdown import render_markdown

    selection = select(results)
    charts = draw_charts("strategies", results, selection)
    markdown = options.format == "markdown"
    name, render = ("report.md", render_markdown) if markdown else ("report.html", render_report)
    return _put_charts(folder, charts, {name: render(results, selection, charts)})


def _put_trainings(options: argparse.Namespace) -> int:
    if options.format != "html":
        raise InputError(
            f"--format {options.format}: trainings have charts but no report; leave the option out"
        )
    from ..charts.registry import draw_charts
    from ..results.training import load_trainings

    charts = draw_charts("training", load_trainings(options.results))
    return _put_charts(options.out_dir or options.results[0].parent, charts, {})


def _put_charts(folder: Path, charts: ChartSet, report: dict[str, bytes]) -> int:
    """Writes the files in place of those of charts that are no more, and names what is left out."""
    from ..charts.render import pictures

    images = {
        f"{name}.{extension}": data
        for name, chart in charts.charts.items()
        for extension, data in pictures(chart, EXTENSIONS).items()
    }
    absent = [name for name in charts.possible if name not in charts.charts]
    stale = [f"{name}.{extension}" for name in absent for extension in EXTENSIONS]
    _put(folder, images | report, stale)
    for name, reason in charts.left_out.items():
        print(f"left out {name}: {reason}")
    return 0


def _put(folder: Path, contents: dict[str, bytes], stale: list[str] = ()) -> int:
    for path in write_together(folder, contents, remove=stale):
        print(path)
    return 0
