"""`stratagem compare` on documents, for its tests."""

from __future__ import annotations

import json

from stratagem_reports import __main__ as command


def compare_files(folder, capsys, base, head, *options):
    """Runs the command on documents, or lists of them; the exit code, what it printed, and JSON."""
    paths = []
    for side, documents in (("base", base), ("head", head)):
        written = []
        for index, one in enumerate(documents if isinstance(documents, list) else [documents]):
            written.append(folder / f"{side}{index}.json")
            written[-1].write_text(json.dumps(one), encoding="utf-8")
        paths.append(",".join(map(str, written)))
    out = folder / "comparison.json"
    out.unlink(missing_ok=True)
    code = command.main(["compare", *paths, "--json", str(out), *map(str, options)])
    found = json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
    return code, capsys.readouterr(), found
