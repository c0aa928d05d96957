#!/usr/bin/env python3
"""Pages, the man page, the public header and messages have none of the words that tests/words.txt lists.

`words.py FILE...` looks at these files alone."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests/words.txt"


def blank(match):
    """As many lines, without their text."""
    return re.sub(r"[^\n]", " ", match.group())


def page(text):
    """Markdown without its code, its comments and where its links lead."""
    text = re.sub(r"^```.*?^```", blank, text, flags=re.M | re.S)
    text = re.sub(r"^    (?! *[-*] ).*$", blank, text, flags=re.M)
    text = re.sub(r"<!--.*?-->|\]\([^)]*\)", blank, text, flags=re.S)
    return re.sub(r"`[^`\n]*`", lambda m: "_" * len(m.group()), text)


def manual(text):
    """A man page without its macros: `.B` and its like keep their words."""
    text = re.sub(r"^\.\\\".*$", blank, text, flags=re.M)
    return re.sub(r"\\f[BIRP]|\\-|\\&|^\.\w+", blank, text, flags=re.M)


def comments(text):
    """C without what is between its comments."""
    inside = [m.span() for m in re.finditer(r"/\*.*?\*/|//[^\n]*", text, flags=re.S)]
    kept = list(re.sub(r"[^\n]", " ", text))
    for begin, end in inside:
        kept[begin:end] = text[begin:end]
    return re.sub(r"(?<=\n) \*", "  ", "".join(kept))


def strings(text):
    """C without what is between its string literals; literals that follow one another are one."""
    text = re.sub(r"/\*.*?\*/|//[^\n\"]*$", blank, text, flags=re.M | re.S)
    kept = list(re.sub(r"[^\n]", " ", text))
    for m in re.finditer(r"'(?:\\.|[^'\\\n])'|\"((?:\\.|[^\"\\\n])*)\"", text):
        if m.group(1) is not None:
            kept[m.start(1) : m.end(1)] = re.sub(r"\\n", "; ", m.group(1))
    return "".join(kept)


def sources():
    """Each file with what finds its prose."""
    tree = {".md": page, ".1": manual, ".h": comments, ".c": strings, ".def": strings}
    yield ROOT / "README.md", page
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if ROOT / "docs/log" not in path.parents:
            yield path, page
    yield ROOT / "docs/fusec.1", manual
    yield ROOT / "runtime/fusec.h", comments
    for path in sorted([*(ROOT / "src").rglob("*.c"), *(ROOT / "src").rglob("*.def"), *(ROOT / "runtime").glob("*.c")]):
        yield path, tree[path.suffix]


def read_list():
    """The words as (expression, pattern, what to say instead), and the exceptions as {(file, expression): reason}."""
    words, exceptions, problems = [], {}, []
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = [field.strip() for field in re.split(r" +\| ", line)]
        if len(fields) != 3 or not all(fields):
            problems.append(f"tests/words.txt:{number}: three fields are needed, with ` | ` between them")
        elif fields[0].startswith("except "):
            exceptions[fields[0][len("except ") :], fields[1]] = number
        else:
            pattern = re.compile(fields[0].replace(" ", r"\s+"), re.I)
            words.append((fields[0], pattern, fields[1]))
            if not pattern.search(fields[2]):
                problems.append(f"tests/words.txt:{number}: the expression does not find its sentence")
    return words, exceptions, problems


def main():
    words, exceptions, problems = read_list()
    unused = dict(exceptions)
    only = [Path(name).resolve() for name in sys.argv[1:]]
    kinds = dict(sources())
    files = {path: kinds.get(path, page) for path in only} if only else kinds
    for path, prose in files.items():
        text = re.sub(" +", " ", prose(path.read_text()))  # most of a source is blanks now
        name = str(path.relative_to(ROOT)) if ROOT in path.parents else str(path)
        for expression, pattern, instead in words:
            for match in pattern.finditer(text):
                if (name, expression) in exceptions:
                    unused.pop((name, expression), None)
                    continue
                line = text.count("\n", 0, match.start()) + 1
                said = " ".join(match.group().split())
                problems.append(f"{name}:{line}: '{said}': say {instead}")
    if not only:
        for (name, expression), number in unused.items():
            problems.append(f"tests/words.txt:{number}: {name} no longer says '{expression}': take the exception out")
    print("\n".join(problems), end="\n" if problems else "")
    print(f"-- words: {len(words)} in {len(files)} files, {len(problems)} wrong")
    return bool(problems)


sys.exit(main())
