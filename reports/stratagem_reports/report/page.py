"""The frame of every HTML page: one file with everything inside, readable without JavaScript.

A content policy forbids every outside request, and every script but those of the page, which are
known by their hashes.
"""

import base64
import functools
import hashlib
import re
from html import escape
from pathlib import Path
from string import Template

from ..charts.chart import VERSION

_SNIPPET = "window.vegaEmbed = vegaEmbed;"
# Addresses of Vega's editor and bug tracker: a page without network has no use for them.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[\w./-]*")

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; base-uri 'none'; form-action 'none';
 img-src data:; style-src 'unsafe-inline'; script-src $policy">
<title>$title</title>
<style>
$css</style>
</head>
<body>
<a class="skip" href="#summary">Skip to the summary</a>
<header>
<h1>$title</h1>
<p class="muted">$subtitle</p>
<nav aria-label="Sections"><ul>$links</ul></nav>
</header>
<main>
$sections
</main>
<footer>$footer</footer>
<p class="unseen" role="status" id="announcement"></p>
$scripts
</body>
</html>
""")

# An identifier, the heading, and the body as HTML.
Section = tuple[str, str, str]


def render_page(
    title: str, subtitle: str, sections: list[Section], footer: str, charts: bool = False
) -> bytes:
    """The page; title, subtitle, headings and footer are text, the sections' bodies HTML.

    With `charts` the page holds the scripts that draw them.
    """
    here = Path(__file__)
    names = ("table.js", "charts.js") if charts else ("table.js",)
    own = "".join(here.with_name(name).read_text(encoding="utf-8") for name in names)
    scripts = [_library(), own] if charts else [own]
    page = _PAGE.substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        css=here.with_name("page.css").read_text(encoding="utf-8"),
        policy=" ".join(map(_policy_hash, scripts)),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
        links="".join(f'<li><a href="#{key}">{name}</a></li>' for key, name, _ in sections),
        sections="\n".join(
            f'<section id="{key}" aria-labelledby="{key}-title">\n'
            f'<h2 id="{key}-title">{name}</h2>\n{body}\n</section>'
            for key, name, body in sections
        ),
        footer=escape(footer),
    )
    return page.encode("utf-8")


def listed(items: list[str]) -> str:
    """Sentences as a list."""
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


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
