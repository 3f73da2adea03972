"""`gantt`, which `stratagem simulate` calls: the Gantt chart of a simulated schedule."""

import argparse
from pathlib import Path

from ..results.errors import InputError
from ..results.files import write_together

EXTENSIONS = ("png", "svg")


def register(commands: argparse._SubParsersAction) -> None:
    """Adds the subcommand's parser."""
    gantt = commands.add_parser("gantt", help="the Gantt chart of a simulated schedule")
    gantt.add_argument("simulation", type=Path, metavar="SIMULATION.json", help="a simulation file")
    gantt.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the chart, .png or .svg"
    )
    gantt.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Writes the chart and prints its path."""
    extension = options.out.suffix.lstrip(".").lower()
    if extension not in EXTENSIONS:
        raise InputError(f"--out {options.out}: expected a file name that ends in .png or .svg")
    from ..charts.gantt import simulated
    from ..charts.render import pictures
    from ..results.load import load_simulation

    simulation = load_simulation(options.simulation)
    image = pictures(simulated(simulation), (extension,))[extension]
    for path in write_together(options.out.parent, {options.out.name: image}):
        print(path)
    return 0
