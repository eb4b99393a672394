"""Generates the API's types from its OpenAPI document: `python generate_types.py URL` writes src/public_user_api/schema.py.

With `-`, it reads the document from standard input and prints the types, as `npm run docs` in the server's repository does."""

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

HEAD = '''"""Made by generate_types.py from the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''


def types_of(document: dict[str, Any]) -> str:
    schemas = document["components"]["schemas"]
    parts = [HEAD, *(declaration(name, schema) for name, schema in schemas.items())]
    for path, operations in document["paths"].items():
        query = [p for p in operations.get("get", {}).get("parameters", []) if p["in"] == "query"]
        if query:
            fields = {p["name"]: p["schema"] | {"description": p.get("description")} for p in query}
            # `/api/public/achievements/all`: AllAchievements
            name = "".join(word.capitalize() for word in reversed(path.split("/")[3:]))
            parts.append(declaration(f"{name}Query", {"properties": fields}))
    return "\n\n".join(parts)


def declaration(name: str, schema: dict[str, Any]) -> str:
    if "properties" not in schema:
        return f"{name} = {type_of(schema)}\n"
    lines = [f"class {name}(TypedDict):"]
    if schema.get("description"):
        lines.append(f"    {docstring(schema['description'])}\n")
    for key, value in schema["properties"].items():
        kind = type_of(value)
        required = key in schema.get("required", [])
        lines.append(f"    {key}: {kind if required else f'NotRequired[{kind}]'}")
        if value.get("description"):
            lines.append(f"    {docstring(value['description'])}")
    return "\n".join(lines) + "\n"


def docstring(text: str) -> str:
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{escaped}"""'


def type_of(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "enum" in schema:
        values = ", ".join(repr(value) for value in schema["enum"] if value is not None)
        return f"Literal[{values}]" + (" | None" if None in schema["enum"] else "")
    for key in ("oneOf", "anyOf", "allOf"):  # an allOf has one schema: Python has no intersections
        if key in schema:
            return " | ".join(dict.fromkeys(type_of(one) for one in schema[key]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(type_of(schema | {"type": one}) for one in kind)
    if kind == "array":
        return f"list[{type_of(schema['items'])}]"
    return {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None", "object": "dict[str, Any]"}.get(str(kind), "Any")


if __name__ == "__main__":
    if sys.argv[1:] == ["-"]:
        print(types_of(json.load(sys.stdin)), end="")
        sys.exit()
    url = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:3000/api/public/openapi.json"
    with urllib.request.urlopen(url) as response:
        types = types_of(json.load(response))
    (Path(__file__).parent / "src/public_user_api/schema.py").write_text(types)
