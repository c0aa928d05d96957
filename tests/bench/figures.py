#!/usr/bin/env python3
"""The figures that README.md and docs/ print are those of the data files in docs/log/data.

    figures.py                    compares them (part of tests/docs.sh); exit status 1 where one differs
    figures.py --plots            draws docs/img/peers_OPERATION_DTYPE.svg from PLOTTED (plots.py)

A data file is a table with tabs between its columns; lines that begin with # say where it is from. A page says what
a table is made of in the line before it:

    <!-- data: FILE COLUMN=VALUE[,VALUE...] ... -->

The rows of FILE are filtered by COLUMN=VALUE. Each line of the page's table then stands for one of them: a heading is a
column's name, or a name of NAMES; the first column finds the row, each other cell is the row's. Further keys:

    down=COLUMN across=COLUMN cell=TEMPLATE   lines and headings are values, cells TEMPLATE: gbps, us(ratio)
    group=COLUMN of=COLUMN                    lines are groups: how many rows, and the mean, the least, the greatest
    range=COLUMN                              not a table: behind "LOW to HIGH" or "VALUE" in a text or a cell
    above=COLUMN                              the same: behind "COUNT … of COUNT", the rows where it is over 1, and all

Tables with figures in README.md and performance.md must have such a line; data files must agree with themselves, and
plots be what is drawn of them.
"""
import math
import re
import statistics
import sys
from pathlib import Path

import plots

ROOT = Path(__file__).resolve().parent.parent.parent
PLOTTED, IMAGES = ROOT / "docs/log/data/peers-2026-11-27.tsv", ROOT / "docs/img"
STRICT = ["README.md", "docs/explanation/performance.md"]
NAMES = {"rows x columns": "size", "example": "operation", "torch.compile": "compile", "Liger": "liger", "Transformer Engine": "te",
         "µs": "us", "of add": "of_add", "Triton": "triton", "over torch.compile": "lead", "asm words": "words", "after": "words"}
KEYS = ("down", "across", "cell", "group", "of", "range", "above")
problems, compared = [], 0


def read_data(path):
    """The rows of a data file, as {column: text}."""
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    head = lines[0].split("\t")
    return [dict(zip(head, line.split("\t"), strict=True)) for line in lines[1:]]


def selected(directive):
    """The rows and the keys of a `data:` comment."""
    file, *pairs = directive.split()
    keys = dict(pair.split("=", 1) for pair in pairs)
    rows = read_data(ROOT / file)
    for column, values in keys.items():
        if column not in KEYS:
            rows = [row for row in rows if row[column] in values.split(",")]
    if not rows:
        raise ValueError("no such rows")
    return rows, {key: keys[key] for key in KEYS if key in keys}


def equal(place, what, typed, data):
    global compared
    compared += 1
    if typed != data:
        problems.append(f"{place}: {what}: the page has '{typed}', the data '{data}'")


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def fill(template, row):
    """`us(ratio)` of a row: "4.36(1.29)"; without brackets where the row has no ratio."""
    text = re.sub(r"\w+", lambda name: row[name.group()], template)
    return text.replace("()", "")


def plain(cell):
    """A cell without its markup and blanks; what is not there is empty."""
    return re.sub(r"[`*\s]|^[–-]$", "", cell)


def plain_name(name):
    return name.strip("`* ")


def check_lines(place, head, lines, rows):
    columns = [name if name in rows[0] else NAMES.get(name, name) for name in map(plain_name, head)]
    unknown = [c for c in columns if c not in rows[0] and c != "of best"]
    if unknown:
        problems.append(f"{place}: no column {', '.join(unknown)} in the data")
        return
    for number, line in lines:
        found = [row for row in rows if row[columns[0]] == plain(line[0])]
        if len(found) != 1:
            problems.append(f"{number}: {len(found)} rows of the data are '{line[0]}'")
            continue
        for column, cell in zip(columns[1:], line[1:]):
            data = f"{found[0]['lead']}{found[0]['best']}" if column == "of best" else found[0][column]
            equal(number, f"{line[0]}, {column}", plain(cell), data)


def check_pivot(place, head, lines, rows, keys):
    for number, line in lines:
        for size, cell in zip(head[1:], line[1:]):
            found = [row for row in rows if row[keys["down"]] == plain_name(line[0]) and row[keys["across"]] == size]
            if len(found) != 1:
                problems.append(f"{number}: {len(found)} rows of the data are '{line[0]}', {size}")
                continue
            equal(number, f"{line[0]}, {size}", plain(cell), fill(keys["cell"], found[0]))


def check_groups(place, head, lines, rows, keys):
    """Cells, geometric mean, least and greatest of a column in each group. Data have two decimals, so the mean may be one off."""
    for number, line in lines:
        values = [float(row[keys["of"]]) for row in rows if row[keys["group"]] == plain(line[0])]
        if not values:
            problems.append(f"{number}: no rows of the data are '{line[0]}'")
            continue
        mean = math.exp(statistics.fmean(map(math.log, values)))
        if abs(float(line[2]) - mean) < 0.0101:
            mean = float(line[2])
        data = [str(len(values)), *(f"{value:.2f}" for value in (mean, min(values), max(values)))]
        equal(number, line[0], " ".join(line[1:]), " ".join(data))


def check_page(page):
    name = page.relative_to(ROOT)
    directive, lines = None, page.read_text().splitlines()
    strict, fence, i = str(name) in STRICT, False, 0
    while i < len(lines):
        line = lines[i]
        fence ^= line.startswith("```")
        if match := re.fullmatch(r"<!-- data: (.*) -->", line):
            directive = f"{name}:{i + 1}", match[1]
        elif "<!-- data: " in line and not fence:
            check_ranges(f"{name}:{i + 1}", line)
        elif line.startswith("|") and not fence:
            end = next((j for j in range(i, len(lines)) if not lines[j].startswith("|")), len(lines))
            for j in range(i, end):
                check_ranges(f"{name}:{j + 1}", lines[j])
            table = [(f"{name}:{j + 1}", cells_of(lines[j])) for j in range(i, end)]
            if directive:
                check_table(*directive, table[0][1], table[2:])
            elif strict and any(re.fullmatch(r"[\d.,× ()%-]*\d[\d.,× ()%-]*", c) for _, row in table for c in row):
                problems.append(f"{name}:{i + 1}: a table with figures, and no `data:` before it")
            directive, i = None, end
            continue
        elif line and directive:
            problems.append(f"{directive[0]}: no table behind it")
            directive = None
        i += 1


def check_table(place, directive, head, lines):
    try:
        rows, keys = selected(directive)
    except (OSError, KeyError, ValueError) as error:
        problems.append(f"{place}: {directive}: {error!r}")
        return
    if "group" in keys:
        check_groups(place, head, lines, rows, keys)
    elif "across" in keys:
        check_pivot(place, head, lines, rows, keys)
    else:
        check_lines(place, head, lines, rows)


def typed_and_data(text, rows, keys):
    """The figures at a text's end, and those of the data."""
    if "above" in keys:
        typed = re.search(r"(\d+)( [a-z ]*of )(\d+)\D*$", text)
        return typed and f"{typed[1]} of {typed[3]}", f"{sum(float(row[keys['above']]) > 1 for row in rows)} of {len(rows)}"
    values = sorted({row[keys["range"]] for row in rows if row[keys["range"]]}, key=float)
    typed = re.search(r"([\d.]*\d(?: to [\d.]*\d)?)\D*$", text)
    return typed and typed[1], f"{values[0]} to {values[-1]}" if len(values) > 1 else values[0]


def check_ranges(place, line):
    """A text's figures: `0.96 to 1.02<!-- data: FILE ... range=of_add -->`."""
    for text, directive in re.findall(r"([^<>]*)<!-- data: (.*?) -->", line):
        try:
            typed, data = typed_and_data(text, *selected(directive))
        except (OSError, KeyError, ValueError) as error:
            problems.append(f"{place}: {directive}: {error!r}")
            continue
        equal(place, directive, typed, data)


def check_data(path):
    """What a data file derives is what it is derived from, as far as its decimals tell."""
    for row in read_data(path):
        where = f"{path.relative_to(ROOT)}: {' '.join(list(row.values())[:3])}"
        number = {name: float(value) for name, value in row.items() if re.fullmatch(r"[\d.]+", value)}
        if {"fusec", "add", "of_add"} <= set(number) and number["add"] > 100 and \
                abs(number["of_add"] - number["fusec"] / number["add"]) > 0.0101:
            problems.append(f"{where}: of_add is not fusec over add")
        peers = [number[p] for p in ("torch", "compile", "quack", "te") if p in number]
        if "best" in row and row["best"] != "liger" and peers and number["fusec"] > 100 and \
                abs(number["lead"] - number["fusec"] / max(peers)) > 0.0151:
            problems.append(f"{where}: lead is not fusec over the fastest peer")
        if {"now", "compile", "lead"} <= set(number) and abs(number["lead"] - number["compile"] / number["now"]) > 0.0051:
            problems.append(f"{where}: lead is not compile over now")


def main():
    drawn = plots.draw_all(read_data(PLOTTED))
    if sys.argv[1:] == ["--plots"]:
        for name, text in drawn.items():
            (IMAGES / name).write_text(text)
        return 0
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        check_page(page)
    for path in sorted((ROOT / "docs/log/data").glob("*.tsv")):
        check_data(path)
    for path in sorted({IMAGES / name for name in drawn} | set(IMAGES.glob("peers_*.svg"))):
        if not path.exists() or path.read_text() != drawn.get(path.name):
            problems.append(f"{path.relative_to(ROOT)}: not what figures.py --plots draws")
    print("\n".join(problems + [f"-- figures: {compared} compared with docs/log/data, {len(problems)} wrong"]))
    return bool(problems)


sys.exit(main())
