#!/usr/bin/env python3
"""Writes the pages and syntax files that are made from the sources; with --check fails where one is out of date."""
import difflib
import sys

import c_api
import command_line
import editors
import json_keys
import operations
import python_api
from lists import ROOT

MADE = {
    "grammar/editors/textmate/fuse.tmLanguage.json": editors.textmate,
    "grammar/editors/vim/syntax/fuse.vim": editors.vim,
    "docs/reference/operations.md": operations.page,
    "docs/reference/c-api.md": c_api.page,
    "docs/reference/python.md": python_api.page,
    "docs/reference/command-line.md": command_line.page,
    "docs/reference/json.md": json_keys.page,
}


def main():
    check = sys.argv[1:] == ["--check"]
    stale = 0
    for name, make in MADE.items():
        path, text = ROOT / name, make()
        old = path.read_text() if path.exists() else ""
        if old == text:
            continue
        stale += 1
        if check:
            difference = difflib.unified_diff(old.splitlines(), text.splitlines(), name, "made now", lineterm="", n=1)
            print("\n".join(list(difference)[:20]))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {name}")
    if check:
        print(f"-- made from the sources: {len(MADE)} files, {stale} out of date" +
              ("; `make pages` writes them anew" if stale else ""))
    return check and stale > 0


sys.exit(main())
