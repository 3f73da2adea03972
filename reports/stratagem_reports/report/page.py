"""Makes the HTML pages from templates: one file each, readable without network or JavaScript.

Charts are interactive where JavaScript runs; elsewhere, and in print, a picture replaces each.
Their colours follow the reader's light or dark setting; print is light. A content policy forbids
every outside request, and every script but those of the page, which are known by their hashes.
The templates escape every value that is not `Markup`.
"""

import base64
import functools
import hashlib
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..charts.chart import VERSION
from ..charts.marks import BOX
from ..charts.registry import ChartSet
from ..charts.render import page_picture
from ..charts.theme import PATTERNS

_HERE = Path(__file__).parent
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
# Addresses of Vega's editor and bug tracker: a page without network has no use for them.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[\w./-]*")
_JSON = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
# Where a line may end inside a long name, as in "devices:2/batch:8" or "all_reduce.calls".
_JOINT = re.compile(r"(?<=/)(?=\w{3})|(?<=[a-z]{3}\.)(?=[a-z]{3})")


def render_page(template: str, charts: ChartSet | None = None, **values: object) -> bytes:
    """The page of a template in `templates`, with the scripts that draw charts if there are any.

    `values` are text, or what the template takes apart into text.
    """
    drawn = bool(charts and charts.charts)
    names = ("table.js", "charts.js") if drawn else ("table.js",)
    own = "".join((_HERE / name).read_text(encoding="utf-8") for name in names)
    scripts = [_library(), own] if drawn else [own]
    page = _environment().get_template(template).render(
        css=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        policy=" ".join(map(_policy_hash, scripts)),
        scripts=map(Markup, scripts),
        charts=charts,
        **values,
    )  # fmt: skip
    return page.encode("utf-8")


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = _JSON
    made.filters["breakable"] = lambda text: Markup("<wbr>").join(_JOINT.split(text))
    made.filters["picture"] = lambda chart: Markup(page_picture(chart))
    made.globals |= {"patterns": Markup(PATTERNS), "box": BOX}
    return made


@functools.cache
def _library() -> str:
    """The script that draws charts: Vega, Vega-Lite and Vega-Embed; it names no address."""
    import vl_convert

    script = vl_convert.javascript_bundle(_SNIPPET, vl_version=VERSION)
    return _ADDRESS.sub("", script).replace("</script", r"<\/script")


def _policy_hash(script: str) -> str:
    """The hash source by which a content security policy lets this inline script run."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
