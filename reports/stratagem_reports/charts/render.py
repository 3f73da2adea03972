"""Draws charts: as SVG and PNG files, and as the picture that a page shows in a chart's place."""

import re

import vl_convert
from markupsafe import Markup

from .chart import VERSION, Chart
from .theme import PATTERNS, in_theme

_DOTS_PER_INCH = 144
_WORDS = Markup("<title>{}</title><desc>{}</desc>")
# Digits of a coordinate beyond the hundredth of a pixel, and parts' names for screen readers, which
# are told what the whole shows; words are not inside a tag.
_IDLE = re.compile(r"(?:(?<=\.\d\d)\d+| (?:aria-[\w-]+|role)=\"[^\"]*\")(?=[^<>]*>)")


def pictures(chart: Chart, extensions: tuple[str, ...], theme: str = "light") -> dict[str, bytes]:
    """The chart as image files: {extension: bytes} for each of "png" (twice its size) and "svg"."""
    words = _WORDS.format(chart.title, chart.description)
    head, body = page_picture(chart).split(">", 1)
    svg = in_theme(f'{head} role="img">{words}{PATTERNS}{body}', theme)
    made = {"svg": svg.encode("utf-8")}
    if "png" in extensions:
        made["png"] = vl_convert.svg_to_png(svg, ppi=_DOTS_PER_INCH)
    return {extension: made[extension] for extension in extensions}


def page_picture(chart: Chart) -> str:
    """The chart as SVG text in the colours of both themes, for a page that defines PATTERNS."""
    drawn = vl_convert.vegalite_to_svg(chart.specification, vl_version=VERSION)
    return _IDLE.sub("", drawn)
