"""`stratagem history`: results over time."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from ..results.errors import InputError
from ..results.files import write_together
from .argument_types import percent, probability, whole_number

FORMATS = ("google-benchmark", "github-action-benchmark", "bencher", "otava-csv")
EXTENSIONS = ("png", "svg")
_TREND = """Apache Otava finds change points in the medians of the runs, in one series for each row
and kind of hardware. A change that is small relative to the noise appears only after several
runs."""
_METRIC = """metric (default: step_ms); step_in_canaries combines the runs of all hardware, because
it divides the step time by the time of a fixed computation on the same machine"""
_FAIL = """exit with 1 if the newest change point of a series is a slowdown within the last
--window runs; older slowdowns are ignored"""


def register(commands: argparse._SubParsersAction) -> None:
    """Adds the subcommand's parser and those of its own commands."""
    history = commands.add_parser(
        "history",
        help="shows results over time and detects changes",
        description="Stores results over time and detects changes.",
    )
    kinds = history.add_subparsers(dest="kind", required=True, metavar="KIND")
    add = _parser(kinds, "add", _add, "appends results files to the history")
    add.add_argument(
        "results",
        type=Path,
        nargs="+",
        metavar="RESULTS.json",
        help="results files of `stratagem run`",
    )
    add.add_argument("--commit", metavar="SHA", help="git commit (default: the file's)")
    add.add_argument(
        "--date", metavar="ISO", help="time of the runs, ISO 8601 in UTC (default: the file's)"
    )
    show = _parser(kinds, "show", _show, "prints a table of the rows")
    _add_name(show)
    show.add_argument(
        "--last", type=whole_number, default=0, metavar="N",
        help="list the latest N runs of each row; 0: a summary of all runs (default: 0)",
    )  # fmt: skip
    _register_trend(kinds)
    _register_export(kinds)
    _parser(kinds, "repair", _repair, "moves last lines that a crash cut short to FILE.broken")


def _register_trend(kinds: argparse._SubParsersAction) -> None:
    trend = _parser(kinds, "trend", _trend, "detects where rows became slower or faster", _TREND)
    _add_name(trend)
    trend.add_argument(
        "--out-dir", type=Path, metavar="DIR", help="draw charts (.png, .svg) in DIR"
    )
    trend.add_argument(
        "--format", choices=("text", "json", "markdown", "html"), default="text",
        help="output format; html writes trend.html to --out-dir (default: text)",
    )  # fmt: skip
    trend.add_argument("--metric", default="step_ms", help=_METRIC)
    trend.add_argument(
        "--max-p", type=probability, default=0.001, metavar="P",
        help="largest p-value of a change point in Otava's t-test (default: 0.001)",
    )  # fmt: skip
    trend.add_argument(
        "--min-change", type=percent, default=1.0, metavar="PERCENT",
        help="smallest change to report, in percent (default: 1); use 0 for counters",
    )  # fmt: skip
    trend.add_argument("--fail-on-regression", action="store_true", help=_FAIL)
    trend.add_argument(
        "--window",
        type=whole_number,
        default=10,
        metavar="N",
        help="number of recent runs (default: 10)",
    )


def _register_export(kinds: argparse._SubParsersAction) -> None:
    write = _parser(kinds, "export", _export, "writes the history for another tool")
    _add_name(write)
    write.add_argument("--format", choices=FORMATS, required=True, help="format of that tool")
    write.add_argument(
        "--commit", metavar="SHA",
        help="git commit of the run to write, for all formats but otava-csv (default: the newest)",
    )  # fmt: skip
    write.add_argument(
        "--out", type=Path, metavar="FILE", help="output file (default: standard output)"
    )


def _parser(
    kinds: argparse._SubParsersAction,
    name: str,
    work: Callable[[argparse.Namespace], int],
    summary: str,
    description: str | None = None,
) -> argparse.ArgumentParser:
    sentence = f"{summary[0].upper()}{summary[1:]}."
    parser = kinds.add_parser(name, help=summary, description=description or sentence)
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path("history"),
        metavar="DIR",
        help="folder of the history (default: history)",
    )
    parser.set_defaults(run=run, work=work)
    return parser


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name_part", nargs="?", metavar="NAME", help="only rows whose names contain NAME"
    )


def run(options: argparse.Namespace) -> int:
    """Does what was asked for; a name that nothing matches is one line and exit code 3."""
    from ..history.series import NoMatchError

    try:
        return options.work(options)
    except NoMatchError as error:
        print(f"stratagem history: {options.dir}: {error}", file=sys.stderr)
        return 3


def _add(options: argparse.Namespace) -> int:
    from ..analysis.labels import counted
    from ..history.add import take
    from ..history.store import append

    taken = take(options.results, options.commit, options.date)
    done = append(options.dir, taken.runs)
    rows = len({run.name for run in done.added})
    print(f"{options.dir}: added {counted(len(done.added), 'run')} of {counted(rows, 'row')}")
    for run in done.present:
        print(f"already there: {run.identity}")
    for name, reason in taken.failed.items():
        print(f"not added: {name}: {' '.join(reason.split())}")
    return 0


def _export(options: argparse.Namespace) -> int:
    from ..history.export import FORMATS as WRITERS
    from ..history.export import Target

    runs = [run for item in _series(options) for run in item.runs]
    suffix = options.out.suffix.lower() if options.out else ""
    data = WRITERS[options.format](runs, Target(suffix, options.commit, _warn))
    if options.out:
        for path in write_together(options.out.parent, {options.out.name: data}):
            print(path)
    else:
        sys.stdout.write(data.decode())
    return 0


def _show(options: argparse.Namespace) -> int:
    from ..history.show import table

    print(table(_series(options), options.last))
    return 0


def _trend(options: argparse.Namespace) -> int:
    from ..history.points import STEP_IN_CANARIES
    from ..history.series import kept_apart
    from ..history.trend import changed_steps, left_out, regressed, trends_of
    from ..history.trend_text import WRITERS

    series = _series(options, across_hardware=options.metric == STEP_IN_CANARIES)
    trends = trends_of(series, options.metric, options.max_p, options.min_change)
    notes = kept_apart(series) + left_out(series, options.metric)
    notes += changed_steps(series, options.metric)
    if options.format == "html":
        _trend_page(trends, notes, options.out_dir)
    else:
        charts = _charts(trends, options.out_dir) if options.out_dir else []
        print(WRITERS[options.format](trends, notes, charts))
    if options.format == "json":
        for note in notes:
            _warn(note)
    failed = any(regressed(trend, options.window) for trend in trends)
    return 1 if failed and options.fail_on_regression else 0


def _trend_page(trends: list, notes: list[str], folder: Path | None) -> None:
    if folder is None:
        raise InputError("--format html: needs --out-dir, the folder for trend.html")
    from ..history.trend_page import render_html

    page = render_html(trends, notes)
    for path in write_together(folder, {"trend.html": page}):
        print(path)


def _charts(trends: list, folder: Path) -> list[str]:
    from ..charts.render import pictures
    from ..history.store import file_name
    from ..history.trend_page import trend_chart

    contents: dict[str, bytes] = {}
    for item in trends:
        whole = f"{item.series.name}.{item.metric}.{item.series.hardware.digest}"
        name = file_name(whole).removesuffix(".jsonl")
        images = pictures(trend_chart(item), EXTENSIONS)
        contents |= {f"{name}.{extension}": data for extension, data in images.items()}
    return [str(path) for path in write_together(folder, contents)]


def _repair(options: argparse.Namespace) -> int:
    from ..history.store import repair

    done = repair(options.dir)
    print("\n".join(done) or f"{options.dir}: nothing to repair")
    return 0


def _series(options: argparse.Namespace, across_hardware: bool = False) -> list:
    from ..history.series import series_of
    from ..history.store import load

    return series_of(load(options.dir), options.name_part, across_hardware)


def _warn(message: str) -> None:
    print(f"stratagem history: {message}", file=sys.stderr)
