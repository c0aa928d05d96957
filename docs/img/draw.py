#!/usr/bin/env python3
"""Draws docs/img/{phases,row,outer,tile}.svg: python3 docs/img/draw.py (make drawings)."""
import pathlib

HERE = pathlib.Path(__file__).parent
INK, LINE, GREY, BLUE, ORANGE, YELLOW, GREEN = (
    "#1f2933", "#52606d", "#e8e8e8", "#a9d3f5", "#ffbf80", "#fff3b0", "#bfe3c0")


class Drawing:
    """A white sheet, so that it reads on dark pages too."""

    def __init__(self, width, height, title):
        self.size = width, height
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="13" role="img">',
            f"<title>{title}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" rx="6" fill="white"/>']

    def box(self, x, y, width, height, fill="white", rounded=0, dashed=False, stroke=LINE):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{rounded}" fill="{fill}" '
                          f'stroke="{stroke}"{dash}/>')

    def text(self, x, y, words, anchor="start", bold=False, code=False, size=13):
        more = ' font-weight="bold"' if bold else ""
        more += ' font-family="DejaVu Sans Mono, Menlo, Consolas, monospace"' if code else ""
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text x="{x}" y="{y}" fill="{INK}" font-size="{size}" text-anchor="{anchor}"{more}>{words}</text>')

    def arrow(self, *points, dashed=False):
        path = " ".join(f"{'L' if i else 'M'}{x} {y}" for i, (x, y) in enumerate(points))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.4" marker-end="url(#tip)"{dash}/>')

    def save(self, name):
        (HERE / name).write_text("\n".join(self.parts) + "\n</svg>\n")


def grid(d, x, y, rows, columns, cell, fill):
    for r in range(rows):
        for c in range(columns):
            d.box(x + c * cell, y + r * cell, cell, cell, fill(r, c))


def phases():
    """What inner, outer and phase mean on a matrix."""
    d = Drawing(760, 392, "Inner and outer reductions, and phases")
    x, y, cell, rows, columns = 76, 62, 24, 6, 12
    d.text(x, 26, "Reductions of x[M, N]", bold=True)
    d.text(x + columns * cell / 2, y - 8, "columns N", "middle")
    d.text(x - 10, y + rows * cell / 2 + 4, "rows M", "end")
    grid(d, x, y, rows, columns, cell, lambda r, c: "#cfd8e0" if (r, c) == (2, 8) else BLUE if r == 2 else ORANGE if c == 8 else "white")
    right, below = x + columns * cell, y + rows * cell
    for r in range(rows):
        d.box(right + 44, y + r * cell, cell, cell, BLUE if r == 2 else "white")
    d.arrow((right + 4, y + 2.5 * cell), (right + 42, y + 2.5 * cell))
    d.text(right + 80, y + 2.5 * cell - 3, "inner: sum[N](x)", code=True)
    d.text(right + 80, y + 2.5 * cell + 15, "one value for each row; the")
    d.text(right + 80, y + 2.5 * cell + 32, "threads of the row add it")
    for c in range(columns):
        d.box(x + c * cell, below + 34, cell, cell, ORANGE if c == 8 else "white")
    d.arrow((x + 8.5 * cell, below + 4), (x + 8.5 * cell, below + 32))
    d.text(right + 80, below + 44, "outer: sum[M](x)", code=True)
    d.text(right + 80, below + 62, "one value for each column; a thread keeps")
    d.text(right + 80, below + 79, "its columns' sums from row to row")

    top = 318
    d.text(x, top - 12, "Phases of one row of layer-norm backward", bold=True)
    d.box(x, top, 238, 56, "#f2f7fb", 6)
    d.text(x + 12, top + 23, "phase 0")
    d.text(x + 12, top + 43, "c1, c2; adds to dgamma, dbeta")
    d.box(x + 250, top, 130, 56, BLUE, 6)
    d.text(x + 315, top + 23, "the row's threads", "middle")
    d.text(x + 315, top + 43, "join c1 and c2", "middle")
    d.box(x + 392, top, 238, 56, "#f2f7fb", 6)
    d.text(x + 404, top + 23, "phase 1")
    d.text(x + 404, top + 43, "dx, from x and dy once more")
    d.save("phases.svg")


def row():
    """A row on its way: memory, ring, registers, cluster, memory."""
    d = Drawing(760, 380, "A row on its way through a CTA")
    top = 70
    d.text(20, 28, "A row of layer-norm backward on its way through one CTA of a cluster", bold=True)
    d.text(20, top - 10, "global memory")
    for r, name in enumerate(["row r", "row r + 1", "row r + 2", "row r + 3"]):
        d.box(20, top + r * 30, 112, 30, [GREEN, BLUE, BLUE, "white"][r])
        d.text(76, top + 20 + r * 30, name, "middle")
    d.text(20, top + 142, "x and dy, this CTA's")
    d.text(20, top + 159, "slice of the columns")
    d.text(208, top - 10, "shared memory: ring of 3 stages")
    for s, (name, fill) in enumerate([("row r: has landed", GREEN), ("row r + 1: on its way", BLUE), ("row r + 2: on its way", BLUE)]):
        d.box(208, top + s * 38, 178, 34, fill, 4)
        d.text(297, top + 22 + s * 38, name, "middle")
        d.arrow((134, top + 15 + s * 30), (206, top + 17 + s * 38))
    d.text(208, top + 142, "The copies of later rows run")
    d.text(208, top + 159, "while row r is computed.")
    d.text(470, top - 10, "registers of the team's threads")
    d.box(470, top, 268, 110, "#f2f7fb", 6)
    d.text(484, top + 24, "phase 0: c1, c2 of this slice")
    d.text(484, top + 60, "phase 1: dx")
    d.text(484, top + 96, "dgamma, dbeta of all rows so far")
    d.arrow((388, top + 17), (468, top + 19))
    d.text(484, top + 142, "What phase 1 needs of the row is still")
    d.text(484, top + 159, "in registers or in its stage.")

    y = 272
    d.text(208, y - 8, "cluster: the CTAs that share row r, a slice of its columns each")
    for c in range(4):
        d.box(208 + c * 134, y, 124, 40, GREEN if c == 0 else "white", 4)
        d.text(270 + c * 134, y + 25, ["this CTA", "CTA 1", "CTA 2", "CTA 3"][c], "middle")
        if c:
            d.arrow((270, y + 42), (270, y + 62), (270 + c * 134, y + 62), (270 + c * 134, y + 42))
    d.text(20, y + 86, "Each CTA sends its c1 and c2 into the shared memory of all, and each adds them in the same order.")
    d.save("row.svg")


def outer():
    """Sums over rows: accumulators, partials, the finish kernel."""
    d = Drawing(760, 330, "Sums over all rows")
    d.text(20, 28, "sum[M](x): accumulators, partials and the finish kernel", bold=True)
    fills = [BLUE, ORANGE, GREEN]
    d.text(20, 58, "rows of x")
    for r in range(9):
        d.box(20, 68 + r * 22, 150, 22, fills[r % 3])
        d.text(95, 84 + r * 22, f"row {r}", "middle", size=12)
    d.text(20, 290, "A CTA takes every third row here:")
    d.text(20, 307, "its number, plus the grid's size each time.")
    d.text(262, 58, "first kernel: a CTA's sums")
    d.text(508, 58, "workspace: partials")
    for c in range(3):
        y = 80 + c * 66
        d.arrow((172, y + 17), (258, y + 17))
        d.box(262, y, 164, 36, fills[c], 4)
        d.text(344, y + 16, f"CTA {c}: rows {c}, {c + 3}, {c + 6}", "middle")
        d.text(344, y + 31, "f32, in registers", "middle", size=12)
        d.arrow((428, y + 17), (504, y + 17))
        d.box(508, y, 96, 36, YELLOW)
        d.text(556, y + 22, "f32[N]", "middle")
        d.arrow((606, y + 17), (646, 163))
    d.box(648, 138, 92, 50, "#f2f7fb", 4)
    d.text(694, 159, "finish", "middle")
    d.text(694, 177, "kernel", "middle")
    d.arrow((694, 190), (694, 236))
    d.box(648, 238, 92, 30, GREY)
    d.text(694, 258, "sum : bf16[N]", "middle", size=12)
    d.text(400, 290, "The finish kernel adds the partials in a fixed order.")
    d.text(400, 307, "There are no float atomics.")
    d.save("outer.svg")


def tile():
    """Which elements of a row a thread has."""
    d = Drawing(760, 330, "Which elements of a row a thread has")
    d.text(20, 28, "One row of 64 columns, 4 threads, vec = 8, tiles = 2", bold=True)
    x, y, cell = 20, 66, 11.25
    fills = [BLUE, ORANGE, GREEN, YELLOW]
    for c in range(64):
        d.box(x + c * cell, y, cell, 34, fills[c // 8 % 4])
    for group in range(8):
        d.text(x + (group * 8 + 4) * cell, y - 8, f"thread {group % 4}", "middle", size=12)
    for t in range(2):
        left = x + t * 32 * cell
        d.box(left + 2, y + 44, 32 * cell - 4, 26, "#f2f7fb", 4)
        d.text(left + 16 * cell, y + 62, f"tile t = {t}: columns {t * 32} to {t * 32 + 31}", "middle")
    d.text(20, 166, "A thread has one vector of each tile. Thread 1:")
    for t in range(2):
        for i in range(8):
            d.box(60 + t * 340 + i * 36, 180, 36, 30, ORANGE)
            d.text(78 + t * 340 + i * 36, 200, str(t * 32 + 8 + i), "middle", size=12)
        d.text(52 + t * 340, 200, f"t={t}", "end", size=12)
    d.text(20, 240, "The printed loops:")
    d.text(150, 240, "for (t < tiles) for (i < vec)   x_v[t][i]", code=True)
    d.text(20, 272, "The spans of this tile, from the nearest element to the farthest:")
    spans = [("elements", "8", "vec"), ("threads", "4", "threads"), ("repeats", "2", "tiles"), ("CTAs", "1", "cluster")]
    for i, (name, size, key) in enumerate(spans):
        d.box(20 + i * 182, 284, 172, 30, "#f2f7fb", 4)
        d.text(106 + i * 182, 304, f"{name}: {size} ({key})", "middle")
    d.save("tile.svg")


for draw in (phases, row, outer, tile):
    draw()
