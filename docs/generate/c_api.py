"""docs/reference/c-api.md, from the comments and declarations of runtime/fusec.h."""
import re

import lists

HEAD = """\
# The C API

<!-- Made by docs/generate from the comments of runtime/fusec.h: edit those, then `make pages`. -->

This page is `fusec.h`, entry by entry. [embedding.md](../howto/embedding.md) shows a program that uses it.
"""
GROUP = re.compile(r"/\* ---- (.*) ---- \*/")
SECTION = re.compile(r"/\* ==== (.*) ==== \*/")


def strip(comment):
    """The lines of a comment without its marks."""
    lines = comment[2:-2].split("\n")
    return [lines[0].strip()] + [re.sub(r"^ *\* ?", "", line).rstrip() for line in lines[1:]]


def markdown(lines):
    """Paragraphs, lists of `  - item`, and lists of `  name   meaning`, whose lines go on further right."""
    out, indent = [], 0
    for line in lines:
        depth = len(line) - len(line.lstrip())
        text = line.strip()
        named = re.match(r" {2,}((?:[\w.-]+, )*[\w.-]+) {2,}(\S.*)", line)
        if depth and text.startswith("- "):
            new, indent = text, depth + 2
        elif named:
            indent = named.start(2)
            names = ", ".join(f"`{n}`" for n in named.group(1).split(", "))
            new = f"- {names}: {named.group(2)}"
        elif text and depth and out and depth >= indent - 1 and out[-1].startswith("- "):
            out[-1] += " " + text
            continue
        elif not text:
            out.append("")
            continue
        else:
            begins = not out or out[-1].startswith("- ") or not out[-1] or text.startswith("Errors")
            if not begins:
                out[-1] += " " + text
                continue
            new, indent = text, 0
        if out and out[-1] and not (out[-1].startswith("- ") and new.startswith("- ")):
            out.append("")
        out.append(new)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(mark_code(line) for line in out).strip()) + "\n"


def mark_code(line):
    """Names of the API, of variables and of statuses as code, outside of what is code or quoted."""
    status = "|".join(re.findall(r"STATUS\(([A-Z_]+),", lists.source("runtime/fusec.h")))
    parts = re.split(r'(`[^`]*`|"[^"]*")', line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(rf"(?<![\w/.])((?:\$|\*)?\w*_\w+|\*[a-z]+|{status})(?!\w)", r"`\1`", parts[i])
    text = "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)
    return re.sub(r"^(Errors[^:]*:)", r"**\1**", text)


def declarations(text):
    """What stands between two empty lines or comments, in pieces that end with a `;` outside braces."""
    depth, start = 0, 0
    for i, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if c == ";" and not depth:
            end = text.find("\n", i)
            yield text[start:end].strip("\n")
            start = end


def names(declared):
    """What a declaration declares."""
    text = re.sub(r"/\*.*?\*/", "", declared, flags=re.S)
    if text.startswith("enum {"):
        return re.findall(r"FUSEC_\w+", text)[:1]
    found = re.match(r"typedef (?:enum|struct) \w+ \{.*\} (\w+);", text, re.S) or re.search(r"(\w+)\s*\(", text) or \
        re.search(r"(\w+);$", text)
    return [found.group(1)]


def entries(body):
    """Yields ("section", name), ("group", name) and ("entry", comment lines, [declarations])."""
    at, entry = 0, None
    while at < len(body):
        if body[at] == "\n":
            at += 1
        elif body.startswith("/*", at):
            comment = body[at:body.index("*/", at) + 2]
            at += len(comment)
            section, group = SECTION.fullmatch(comment), GROUP.fullmatch(comment)
            if section or group or not comment.startswith("/* clang-format"):
                if entry:
                    yield ("entry", *entry)
                entry = None
            if section or group:
                yield ("section" if section else "group", (section or group).group(1))
            elif not comment.startswith("/* clang-format"):
                entry = (strip(comment), [])
        elif body[at] == "#":
            end = re.compile(r"(?:.*\\\n)*.*\n").match(body, at).end()
            if entry and body.startswith("#define FUSEC_STATUSES", at):
                entry[1].append(body[at:end].rstrip())
            at = end
        else:
            declared = next(declarations(body[at:] + "\n"))
            at += len(declared)
            if not entry:
                entry = ([], [])
            entry[1].append(declared)
    if entry:
        yield ("entry", *entry)


def statuses(comment, macro):
    rows = re.findall(r'STATUS\((\w+), +"(.*?)"\)', macro)
    text = markdown([line for line in comment if "name  " not in line])
    return text + "\n| status | meaning |\n| --- | --- |\n" + "".join(f"| `FUSEC_{n}` | {t} |\n" for n, t in rows)


def show(comment, declared):
    """One entry: a heading, its declarations, its comment."""
    known = [name for d in declared for name in (["fusec_status"] if d.startswith("#define") else names(d))]
    known = list(dict.fromkeys(known))
    text = f"#### {', '.join(known)}\n\n"
    macro = [d for d in declared if d.startswith("#define")]
    if macro:
        return known, text + statuses(comment, macro[0])
    plain = [re.sub(r"\n {10}", "\n", d[10:]) if d.startswith("FUSEC_API ") else d for d in declared]
    return known, text + "```c\n" + "\n".join(plain) + "\n```\n\n" + markdown(comment)


def anchor(known):
    return re.sub(r"[^\w\- ]", "", ", ".join(known).lower()).replace(" ", "-")


def page():
    header = lists.source("runtime/fusec.h")
    top, _, rest = header.partition("*/\n#ifndef FUSEC_H")
    body = rest[rest.index("/* ==== simple"):rest.index("#ifdef __cplusplus\n}")]
    overview, _, rules = top.partition(" * RULES FOR ALL ENTRIES\n")
    contents, text = [], ""
    for kind, *what in entries(body):
        if kind == "entry":
            known, entry = show(*what)
            assert what[0], f"docs/generate/c_api.py: {known} has no comment in fusec.h"
            text += "\n" + entry
            contents[-1][1].extend(f"[{name}](#{anchor(known)})" for name in known)
        else:
            title = what[0][0].upper() + what[0][1:]
            text += f"\n{'##' if kind == 'section' else '###'} {title}\n"
            contents.append((f"\n**{title}**\n" if kind == "section" else f"- {title}: ", []))
    return HEAD + "\n".join(title + ", ".join(links) for title, links in contents) + "\n" + preface(overview, rules) + text


def preface(overview, rules):
    """The head of the header: its drawings and program as code, then the rules."""
    lines = strip(overview + "*/")
    out = "\n## Overview\n\n"
    for is_code, block in grouped(lines):
        out += ("```c\n" if "(" in block[0] or ";" in block[0] else "```\n") + \
            "\n".join(line[4:] for line in block) + "\n```\n\n" if is_code else markdown(block) + "\n"
    return out + "## Rules for all entries\n\n" + markdown(strip("/*\n" + rules + "*/"))


def grouped(lines):
    block, kind = [], None
    for line in lines + [None]:
        now = None if line is None else line.startswith("    ") if line else None
        if line is None or (line and now != kind):
            while block and not block[-1]:
                block.pop()
            if block:
                yield kind, block
            block, kind = [], now
        if line or (block and kind is False):
            block.append(line)
