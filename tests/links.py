#!/usr/bin/env python3
"""Every link between pages leads to a file that is there, and to a heading that is there."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def prose(path):
    """The page without its code."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`]*`", lambda m: m.group().replace("](", "] ("), text)


def anchors(path):
    """The names that headings have as link targets: lower case, blanks as hyphens, no punctuation."""
    names = set()
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S), flags=re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = base = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while name in names:
            number += 1
            name = f"{base}-{number}"
        names.add(name)
    return names


def main():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    links = wrong = 0
    for page in pages:
        for link in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", prose(page)):
            link = link[0] or link[1]
            if re.match(r"[a-z]+:", link):
                continue
            links += 1
            file, _, anchor = link.partition("#")
            target = (page.parent / file).resolve() if file else page
            if not target.exists():
                problem = "no such file"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                problem = "no such heading"
            else:
                continue
            wrong += 1
            print(f"{page.relative_to(ROOT)}: {link}: {problem}")
    print(f"-- links: {links} in {len(pages)} pages, {wrong} wrong")
    return wrong != 0


sys.exit(main())
