"""The frame of every HTML page: one file with everything inside, readable without JavaScript.

A content policy forbids every outside request, and every script but those of the page, which are
known by their hashes.
"""

from html import escape
from pathlib import Path
from string import Template

from .library import load_library, policy_hash

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
    scripts = [load_library(), own] if charts else [own]
    page = _PAGE.substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        css=here.with_name("page.css").read_text(encoding="utf-8"),
        policy=" ".join(map(policy_hash, scripts)),
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
