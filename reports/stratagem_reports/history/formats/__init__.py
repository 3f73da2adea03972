"""Formats of other tools, one a module.

Each module has `read(source)`, which makes runs of a file, and `write(runs, target)`, which
returns a file's bytes; its docstring says what the format cannot hold. Times may come in ns, us,
ms or s and are milliseconds in the history.
"""

from __future__ import annotations

from . import bencher, github_action_benchmark, google_benchmark, otava_csv

FORMATS = {
    "google-benchmark": google_benchmark,
    "github-action-benchmark": github_action_benchmark,
    "bencher": bencher,
    "otava-csv": otava_csv,
}
