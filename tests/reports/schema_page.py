"""Makes the tables of docs/reference/results.md from the schema of results.json.

    python tests/reports/schema_page.py

Each object with fields of its own has a section. A description that ends in [ms] has that unit,
which the table prints instead of "number".
"""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "results.md"
SCHEMA = ROOT / "reports" / "stratagem_reports" / "schemas" / "results.schema.json"
HEADING = "## Fields\n"
NUMBERS = {"number", "integer"}


def tables(schema: dict) -> str:
    """Every section of the page behind its heading "Fields"."""
    definitions = schema["$defs"]
    described = [schema, *(one for one in definitions.values() if "properties" in one)]
    return "\n".join(_section(one, definitions) for one in described)


def _section(described: dict, definitions: dict) -> str:
    fields = [(f"`{name}`", field) for name, field in described["properties"].items()]
    others = described.get("additionalProperties")
    if others:
        fields.append(("other fields", others))
    lines = [
        f"### {described['title']}\n",
        textwrap.fill(described["description"], 100, break_on_hyphens=False) + "\n",
        "| field | type: meaning |",
        "|---|---|",
    ]
    for name, field in fields:
        meaning, unit = re.fullmatch(r"(.*?)(?: \[(.*)\])?", field["description"]).groups()
        lines.append(f"| {name} | {_type(field, definitions, unit)}: {meaning} |")
    return "\n".join(lines) + "\n"


def _type(field: dict, definitions: dict, unit: str | None = None) -> str:
    if "$ref" in field:
        target = definitions[field["$ref"].rpartition("/")[2]]
        if "title" not in target:
            return "scalar"
        return f"[{target['title']}](#{target['title'].lower().replace(' ', '-')})"
    if "anyOf" in field:
        return " or ".join(_type(one, definitions) for one in field["anyOf"])
    if "const" in field or "enum" in field:
        values = field.get("enum", [field.get("const")])
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    if field.get("maxProperties") == 0:
        return "`{}`"
    if field["type"] == "array":
        return f"list of {unit or _items(field['items'], definitions)}"
    if field["type"] == "object":
        return f"object of {_items(field['additionalProperties'], definitions)}"
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    return " or ".join(unit if unit and kind in NUMBERS else kind for kind in kinds)


def _items(items: dict, definitions: dict) -> str:
    """What a list or an object holds, in the plural."""
    if "if" in items:
        return " and ".join(_type(items[branch], definitions) for branch in ("else", "then"))
    kind, of, rest = _type(items, definitions).partition(" of ")
    return kind + ("" if kind.startswith("[") else "s") + of + rest


def page_with(page: str, schema: dict) -> str:
    """The page with the schema's tables in place of its own."""
    return page[: page.index(HEADING) + len(HEADING)] + "\n" + tables(schema)


if __name__ == "__main__":
    described = json.loads(SCHEMA.read_text(encoding="utf-8"))
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), described), encoding="utf-8")
