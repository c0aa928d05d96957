"""docs/reference/json.md, from docs/reference/fusec.schema.json."""
import json

from lists import source

HEAD = """\
# JSON

<!-- Made by docs/generate from docs/reference/fusec.schema.json: edit that, then `make pages`. -->

`check`, `explain`, `run`, `bench`, `tune`, `plan show` and `cache` print JSON with `--json`, and `build` writes a file NAME.json.
This page lists every key; [fusec.schema.json](fusec.schema.json) has the same as a JSON schema, against which `make check` validates what is printed.

- Sizes of memory are in bytes. Times are in microseconds where the key ends in `us`, in milliseconds where it ends in `ms`. Speeds are in GB/s.
- A key that is not always there is marked "may be absent".
- With `check`, errors and warnings are part of the JSON, unless the machine could not (exit status 3). The other commands print
  them to standard error as text, and nothing to standard output if they fail. `run --verify` that finds a wrong element prints its JSON and exits with 4.
- The [exit statuses](command-line.md#exit-statuses) are the same with and without `--json`.

"""


def type_of(schema, definitions):
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        inner = definitions[name]
        return f"[{name}](#{name})" if inner.get("type") == "object" or name == "value" else type_of(inner, definitions)
    if "anyOf" in schema:
        return " or ".join(type_of(one, definitions) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f'`"{word}"`' for word in schema["enum"])
    if schema["type"] == "array":
        return "array of " + type_of(schema["items"], definitions)
    names = schema["type"]
    return names if isinstance(names, str) else " or ".join(names)


def rows(schema, definitions, prefix=""):
    for key, member in schema.get("properties", {}).items():
        absent = "" if key in schema["required"] else " (may be absent)"
        inner = member.get("items", member)
        mark = prefix + key + ("[]" if "items" in member else "")
        yield f"| `{mark}` | {type_of(member, definitions)} | {member.get('description', '')}{absent} |\n"
        yield from rows(inner, definitions, mark + ".")


def section(name, schema, definitions):
    title = name.replace("_", " ")
    text = f"## {title}\n\n{schema['description']}.\n\n"
    if "properties" not in schema:
        return text
    return text + "| key | type | meaning |\n| --- | --- | --- |\n" + "".join(rows(schema, definitions)) + "\n"


def page():
    definitions = json.loads(source("docs/reference/fusec.schema.json"))["$defs"]
    return (HEAD + "".join(section(name, schema, definitions) for name, schema in definitions.items() if name != "bound")).rstrip() + "\n"
