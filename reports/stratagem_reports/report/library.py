"""The JavaScript that draws a page's charts: Vega, Vega-Lite and Vega-Embed in one script."""

import base64
import functools
import hashlib
import re

from ..charts.chart import VERSION

_SNIPPET = "window.vegaEmbed = vegaEmbed;"
# Its editor and its bug tracker: a page without network has no use for them.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)[\w./-]*")


@functools.cache
def load_library() -> str:
    """The script, which names no address; ModuleNotFoundError where vl_convert is missing."""
    import vl_convert

    script = vl_convert.javascript_bundle(_SNIPPET, vl_version=VERSION)
    return _ADDRESS.sub("", script).replace("</script", r"<\/script")


def policy_hash(script: str) -> str:
    """The hash source by which a content security policy lets this inline script run."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
