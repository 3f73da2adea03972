"""What a chart's specification draws, for tests: its layers and the rows that they show."""

from __future__ import annotations

from reference_summaries import summarised
from stratagem_reports.analysis.selection import select
from stratagem_reports.charts.registry import ChartSet, draw_charts
from stratagem_reports.results.load import load_results


def charts_of(write_json, document) -> ChartSet:
    """The charts of a results document, which `write_json` writes with its summaries."""
    results = load_results(write_json(summarised(document)))
    return draw_charts("strategies", results, select(results))


def layers(chart, kind=None):
    """The chart's layers of marks, in order; those of one kind alone if it is given."""
    found, waiting = [], [chart.view]
    while waiting:
        view = waiting.pop(0)
        waiting = view.get("layer", []) + waiting
        if "mark" in view:
            found.append(view)
    return [layer for layer in found if kind in (None, layer["mark"]["type"])]


def rows(chart, *keys):
    """The rows of the first layer whose rows have all the keys; [] without one."""
    every = (layer["data"]["values"] for layer in layers(chart))
    return next((found for found in every if found and set(keys) <= set(found[0])), [])


def legend(chart):
    """The labels of the legend."""
    return [entry.label for entry in chart.legend]


def axis_title(chart, axis):
    """The title of an axis."""
    return chart.view["encoding"][axis]["axis"]["title"]


def names(chart, axis):
    """The names along an axis."""
    settings = chart.view["encoding"][axis]["axis"]
    return settings["labelExpr"]
