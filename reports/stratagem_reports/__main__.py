"""The command: `python -m stratagem_reports report RESULTS.json` and `... gantt SIMULATION.json`.

Exit codes: 0 done; 130 interrupted; 2 bad usage or input, with one line on stderr that says what,
where, and what would be right. Files appear whole or not at all.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .errors import InputError
from .files import write_together
from .load import load_results, load_simulation

_EXTENSIONS = ("png", "svg")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    options = _parse(arguments)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        return 130
    except InputError as error:
        print(f"stratagem {options.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(
            f"stratagem {options.command}: the Python package {error.name} is missing from "
            f"{sys.executable}; install matplotlib, numpy and scipy there",
            file=sys.stderr,
        )
        return 2


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="stratagem", description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser(
        "report", help="charts (.png, .svg) and report.html of a results file"
    )
    report.add_argument("results", type=Path, metavar="RESULTS.json", help="a results file")
    report.add_argument(
        "--out-dir", type=Path, metavar="DIR", help="folder for the output (default: the file's)"
    )
    report.set_defaults(run=_report)
    gantt = commands.add_parser("gantt", help="the Gantt chart of a simulated schedule")
    gantt.add_argument("simulation", type=Path, metavar="SIMULATION.json", help="a simulation file")
    gantt.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the chart, .png or .svg"
    )
    gantt.set_defaults(run=_gantt)
    return parser.parse_args(arguments)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage before it."""

    def error(self, message: str) -> None:
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def _report(options: argparse.Namespace) -> int:
    results = load_results(options.results)
    from .bandwidth_data import bandwidth, holds_collectives
    from .chart_data import build_charts
    from .charts import DARK, LIGHT, render
    from .report import render_report
    from .selection import select

    folder = options.out_dir or options.results.parent
    if holds_collectives(results):
        images = render(bandwidth(results), _EXTENSIONS)
        contents = {f"bandwidth.{extension}": data for extension, data in images.items()}
        for path in write_together(folder, contents):
            print(path)
        return 0
    selection = select(results)
    charts = build_charts(results, selection)
    contents: dict[str, bytes] = {}
    images: dict[str, dict[str, bytes]] = {}
    for name, chart in charts.charts.items():
        light = render(chart, _EXTENSIONS, LIGHT)
        dark = render(chart, ("svg",), DARK)
        images[name] = {"light": light["svg"], "dark": dark["svg"]}
        contents |= {f"{name}.{extension}": data for extension, data in light.items()}
    contents["report.html"] = render_report(results, selection, charts, images)
    stale = [f"{name}.{extension}" for name in charts.left_out for extension in _EXTENSIONS]
    for path in write_together(folder, contents, remove=stale):
        print(path)
    for name, reason in charts.left_out.items():
        print(f"left out {name}: {reason}")
    return 0


def _gantt(options: argparse.Namespace) -> int:
    extension = options.out.suffix.lstrip(".").lower()
    if extension not in _EXTENSIONS:
        raise InputError(f"--out {options.out}: expected a file name that ends in .png or .svg")
    simulation = load_simulation(options.simulation)
    from .charts.gantt import render_simulation

    image = render_simulation(simulation, extension)
    for path in write_together(options.out.parent, {options.out.name: image}):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
