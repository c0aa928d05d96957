#!/usr/bin/env python3
"""The syntax files of grammar/editors/ colour each token of the examples as what the scanner says it is.

fusec emit --emit=tokens says what a token is. The TextMate grammar is applied here, the Vim syntax by Vim where there is one.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs" / "generate"))
import lists  # noqa: E402

FUSEC = os.environ.get("FUSEC", str(ROOT / "build" / "fusec"))
WORK = ROOT / "build" / "editors"
# What a token may be coloured as: TextMate scopes and Vim groups.
DECLARATIONS = ("fn", "graph")
TEXTMATE = {"declaration": "storage.type", "control": "keyword.control", "constant": "constant.language", "string": "string",
            "number": "constant.numeric", "operator": "keyword.operator", "mark": "punctuation", "dtype": "support.type",
            "reduction": "support.function.reduction", "function": "support.function.builtin",
            "library": "support.function.std", "call": "entity.name.function", "bind": "variable.other.definition",
            "name": "variable.other|variable.parameter.axis|entity.name.function", "axis": "variable.parameter.axis"}
VIM = {"declaration": "fuseDeclare", "control": "fuseControl", "constant": "fuseConstant", "string": "fuseString",
       "number": "fuseNumber", "operator": "fuseOperator", "mark": "$|fuseAxes$", "dtype": "fuseType", "reduction": "fuseReduction",
       "function": "fuseFunction", "library": "fuseLibrary", "call": "fuseCall|fuseName", "bind": "fuseDefinition",
       "name": "$|fuseName", "axis": "fuseAxis"}


class Textmate:
    """As much of TextMate's matching as the grammar uses: match, begin and end, captures, include."""

    def __init__(self, path):
        self.grammar = json.loads(path.read_text())
        self.rules = {}

    def compiled(self, patterns):
        key = id(patterns)
        if key not in self.rules:
            rules = [self.grammar["repository"][p["include"][1:]] if "include" in p else p for p in patterns]
            self.rules[key] = [(re.compile(r.get("match") or r["begin"]), r) for r in rules]
        return self.rules[key]

    def scopes(self, text):
        """For each line the scope of each column."""
        stack, lines = [], []
        for line in text.split("\n"):
            scopes, at = [""] * (len(line) + 1), 0
            while at <= len(line):
                patterns = stack[-1]["patterns"] if stack else self.grammar["patterns"]
                found = [(m, r) for regex, r in self.compiled(patterns) if (m := regex.search(line, at))]
                end = re.compile(stack[-1]["end"]).search(line, at) if stack else None
                best = min(found, key=lambda f: f[0].start(), default=None)
                if end and (not best or end.start() <= best[0].start()):
                    rule, match = stack.pop(), end
                elif best:
                    match, rule = best
                    if "begin" in rule:
                        stack.append(rule)
                else:
                    break
                spans = [(0, rule.get("name", ""))] + [(int(n), c["name"]) for n, c in rule.get("captures", {}).items()]
                for group, scope in spans:
                    for i in range(*match.span(group)):
                        scopes[i] = scope or scopes[i]
                at = max(match.end(), at + (match.end() == match.start()))
            lines.append(scopes)
        return lines


def tokens(path):
    """(line, column, kind, text) of each token, the kind refined by what is known of names."""
    out = subprocess.run([FUSEC, "emit", path, "--emit=tokens"], capture_output=True, text=True, check=True).stdout
    found = [m.groups() for m in re.finditer(r"^(\d+):(\d+) (\w+) (.*)$", out, re.M)]
    dtypes, functions = {d.text for d in lists.dtypes()}, set(lists.functions())
    reductions, library, words = {r.text for r in lists.reductions()}, set(lists.library()), lists.words()
    for i, (line, column, kind, text) in enumerate(found):
        before = found[i - 1][3] if i else ""
        after = found[i + 1][3] if i + 1 < len(found) else ""
        if text in words and kind != "string":
            kind = ("declaration" if text in DECLARATIONS else "constant" if words[text] == "CONSTANT" else "control")
        elif kind in ("integer", "float"):
            kind = "number"
        elif kind == "symbol":
            kind = "operator" if text in lists.operators() else "mark"
        elif kind in ("name", "bind") and text in dtypes and (before == ":" or after == "("):
            kind = "dtype"
        elif kind == "name" and before not in DECLARATIONS and after in ("(", "["):
            kind = ("reduction" if after == "[" and text in reductions else
                    "function" if after == "(" and text in functions else "library" if text in library else "call")
        elif kind in ("name", "bind") and brackets(found, i) == "[":
            kind = "axis"
        yield int(line), int(column), kind, text


def brackets(found, at):
    """The innermost bracket that is open before a token."""
    depth = []
    for _, _, kind, text in found[:at]:
        if kind == "symbol" and text in "([{":
            depth.append(text)
        elif kind == "symbol" and text in ")]}":
            depth.pop()
    return depth[-1] if depth else ""


def every_word():
    """A program with each function, reduction, dtype, operator and word of the lists; it need not be right, only scan."""
    lines = [f"    a = {name}(x)" for name in lists.functions() + [d.text for d in lists.dtypes()] + lists.library()]
    lines += [f"    a = {r.text}[N](x) # {r.doc}" for r in lists.reductions()]
    lines += [f"    a = x {sign} .5e-3 {sign} 2. {sign}4" for sign in lists.operators() if sign not in ("=", "->")]
    lines += [f"    a = {word}" for word, kind in lists.words().items() if kind == "CONSTANT"]
    return ("import \"std\"\nfn f[K](x) = x\ngraph every[N = 8](\n    x : f32[N],\n" +
            "".join(f"    s{d.text} : {d.text} = 1,\n" for d in lists.dtypes()) + ") -> (y : f32[N]) {\n" +
            "\n".join(lines) + "\n    return x\n}\n")


def vim_groups(files):
    """For each file the Vim group of each token."""
    script = ["set nocompatible", "if !has('syntax') | cquit | endif", f"set runtimepath^={ROOT}/grammar/editors/vim", "syntax on",
              "filetype plugin on", "let out = []"]
    for path in files:
        script += [f"edit {path}", "if &filetype != 'fuse' | cquit | endif"]
        script += [f"call add(out, synIDattr(synID({line}, {column}, 1), 'name'))" for line, column, _, _ in files[path]]
    script += [f"call writefile(out, '{WORK}/vim.out')", "qall!"]
    (WORK / "script.vim").write_text("\n".join(script))
    done = subprocess.run(["vim", "-u", "NONE", "-i", "NONE", "-n", "-es", "-S", WORK / "script.vim"],
                          stdin=subprocess.DEVNULL, timeout=120)
    if done.returncode:
        sys.exit("vim ends with an error")
    groups = (WORK / "vim.out").read_text().split("\n")
    return {path: [groups.pop(0) for _ in files[path]] for path in files}


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "every.fuse").write_text(every_word())
    examples = sorted((ROOT / "examples").glob("*.fuse"))
    files = {path: list(tokens(path)) for path in [WORK / "every.fuse", ROOT / "src/frontend/std.fuse", *examples]}
    textmate = Textmate(ROOT / "grammar/editors/textmate/fuse.tmLanguage.json")
    vim = vim_groups(files) if shutil.which("vim") else {}
    wrong = 0

    def check(path, token, found, expected):
        nonlocal wrong
        if not re.match(expected, found):
            wrong += 1
            line, column, kind, text = token
            print(f"{path.relative_to(ROOT)}:{line}:{column}: {text} is a {kind} and coloured as {found or 'nothing'}")

    for path, found in files.items():
        scopes = textmate.scopes(path.read_text())
        for i, token in enumerate(found):
            check(path, token, scopes[token[0] - 1][token[1] - 1], TEXTMATE[token[2]])
            if vim:
                check(path, token, vim[path][i], VIM[token[2]])
    print(f"-- editors: {sum(map(len, files.values()))} tokens of {len(files)} programs, {wrong} coloured wrong" +
          ("" if vim else "; Vim skipped: it is not installed"))
    return wrong > 0


sys.exit(main())
