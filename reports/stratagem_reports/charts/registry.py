"""Finds the charts: every module of this package may hold `CHARTS`, the charts that it draws.

So a chart is one file. What it is drawn from depends on its source: "strategies" (`Results` and
their `Selection`), "collectives" (`Results`), "simulation" (a simulation file) or "trend" (see its
module).
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field

from .chart import Chart

# A chart, the reason why there is none, or None where nobody would miss it.
Drawn = Chart | str | None


@dataclass(frozen=True)
class Registered:
    """A chart by its file's name without extension; `place` is where it stands among the others.

    `draw` takes what the source gives. A name that ends in "*" stands for several charts, of which
    `draw` gives a dictionary by name; `known` are those that an earlier report may have left.
    """

    name: str
    place: int
    draw: Callable[..., Drawn | dict[str, Drawn]]
    source: str = "strategies"
    known: tuple[str, ...] = ()


@dataclass
class ChartSet:
    """Charts by file name, in order, and those left out with the reason."""

    charts: dict[str, Chart] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    possible: list[str] = field(default_factory=list)


def registered(source: str | None = None) -> list[Registered]:
    """The charts that are drawn from `source`, or all, in their order."""
    package = importlib.import_module(__package__)
    modules = [
        importlib.import_module(f"{__package__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    found = [chart for module in modules for chart in getattr(module, "CHARTS", ())]
    wanted = [chart for chart in found if source in (None, chart.source)]
    return sorted(wanted, key=lambda chart: (chart.place, chart.name))


def draw_charts(source: str, *inputs: object) -> ChartSet:
    """Every chart that the inputs can feed."""
    made = ChartSet()
    for chart in registered(source):
        drawn = chart.draw(*inputs)
        by_name = drawn if isinstance(drawn, dict) else {chart.name: drawn}
        made.charts |= {name: one for name, one in by_name.items() if isinstance(one, Chart)}
        made.left_out |= {name: why for name, why in by_name.items() if isinstance(why, str)}
        made.possible += [*by_name, *chart.known]
    return made
