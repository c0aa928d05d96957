#!/usr/bin/env python3
"""schema.py NAME [FILE ...]: whether the JSON in the files, or on stdin, is as docs/reference/fusec.schema.json says of NAME, by the parts of JSON Schema
that it uses; a part that this file does not know is an error."""
import json
import sys
from pathlib import Path

SCHEMA = json.loads((Path(__file__).resolve().parent.parent / "docs/reference/fusec.schema.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}
KNOWN = {"description", "type", "enum", "properties", "required", "additionalProperties", "items", "anyOf", "$ref"}


def has_type(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def problems(value, schema, place="$"):
    """What is wrong, as texts."""
    if set(schema) - KNOWN:
        sys.exit(f"schema.py knows no {set(schema) - KNOWN}")
    if "$ref" in schema:
        yield from problems(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], place)
    if "anyOf" in schema:
        found = [list(problems(value, one, place)) for one in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
    names = schema.get("type", list(TYPES))
    if not any(has_type(value, name) for name in ([names] if isinstance(names, str) else names)):
        yield f"{place}: {json.dumps(value)[:60]} is no {names}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    if isinstance(value, dict):
        yield from object_problems(value, schema, place)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from problems(item, schema["items"], f"{place}[{i}]")


def object_problems(value, schema, place):
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{place}: no key {key}" for key in schema.get("required", []) if key not in value)
    for key, member in value.items():
        if key in known:
            yield from problems(member, known[key], f"{place}.{key}")
        elif others is False:
            yield f"{place}: the schema has no key {key}"
        elif isinstance(others, dict):
            yield from problems(member, others, f"{place}.{key}")


def main():
    texts = {path: Path(path).read_text() for path in sys.argv[2:]} or {"$": sys.stdin.read()}
    found = [line for path, text in texts.items() for line in problems(json.loads(text), SCHEMA["$defs"][sys.argv[1]], path)]
    print("\n".join(found), file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
