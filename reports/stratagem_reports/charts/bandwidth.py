"""Bus bandwidth over message size, both axes logarithmic."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from ..chart_types import Bandwidth
from ..labels import size_text
from .style import Frame, framed
from .theme import Theme

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
_MARKERS = ("o", "s", "D", "^", "v", "P")


def draw(chart: Bandwidth, theme: Theme) -> Figure:
    """One line a collective; bars from the slowest to the fastest round."""
    figure, axes = framed(
        theme,
        Frame(width=7.2, height=3.6),
        chart.title,
        chart.subtitle,
        handles=[
            Line2D(
                [],
                [],
                color=COLORS[index % len(COLORS)],
                marker=_MARKERS[index % len(_MARKERS)],
                linewidth=2.0,
                markersize=5.5,
                label=line.label,
            )
            for index, line in enumerate(chart.series)
        ],
        columns=5,
    )
    for index, line in enumerate(chart.series):
        rates = [point.rate for point in line.points]
        axes.errorbar(
            [point.size for point in line.points],
            rates,
            yerr=[
                [point.rate - point.low for point in line.points],
                [point.high - point.rate for point in line.points],
            ],
            fmt=f"{_MARKERS[index % len(_MARKERS)]}-",
            color=COLORS[index % len(COLORS)],
            linewidth=2.0,
            markersize=5.5,
            markeredgecolor=theme.background,
            markeredgewidth=0.8,
            ecolor=theme.text,
            elinewidth=0.9,
            capsize=3,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({point.size for line in chart.series for point in line.points})
    axes.set_xticks(sizes[:: max(1, -(-len(sizes) // 10))])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(size)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("Message size")
    axes.set_ylabel("Bus bandwidth (GB/s)")
    axes.yaxis.grid(True, color=theme.grid, linewidth=0.8)
    return figure
