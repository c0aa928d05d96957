"""plots.py: GB/s against the column count, an SVG for each operation, from a data file of peers (figures.py --plots).

The page behind an SVG is light or dark. So it has no background, colours that both show, and lighter ones by
prefers-color-scheme."""
import math

PEERS = {                                              # column of the data: label, colour on light and on dark pages
    "fusec": ("fusec", "#c2410c", "#fb923c"),
    "torch": ("torch (eager)", "#2563eb", "#60a5fa"),
    "compile": ("torch.compile", "#047857", "#34d399"),
    "liger": ("Liger", "#7c3aed", "#c4b5fd"),
    "quack": ("quack", "#a16207", "#facc15"),
    "te": ("Transformer Engine", "#be185d", "#f9a8d4"),
    "add": ("add", "#6b7280", "#9ca3af"),
}
SIZES = ["16384x1024", "16384x2048", "16384x4096", "16384x8192", "16384x12288", "16384x16384", "8192x24576", "8192x32768",
         "4096x65536", "2048x131072", "1024x262144", "8192x32000", "4096x50304", "2048x128256", "2048x151936", "1024x256000"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 58, 520, 40, 310
MOST, STEP = 3200, 500                                 # GB/s


def style():
    def colours(of):
        return "".join(f".{peer}.line {{ stroke: {p[of]} }} .{peer}.dot, .{peer}.name {{ fill: {p[of]} }} " for peer, p in PEERS.items())
    return ("<style>text { font: 13px Helvetica, Arial, sans-serif; fill: #6b7280 } .grid { stroke: #9ca3af; opacity: 0.4 } "
            ".line { fill: none; stroke-width: 1.6 } "
            ".fusec.line { stroke-width: 3 } .add.line { stroke-dasharray: 4 4 } " + colours(1) +
            "@media (prefers-color-scheme: dark) { text { fill: #e5e7eb } " + colours(2) + "}</style>")


def place(columns, gbps):
    across = (math.log2(columns) - 10) / 8             # 1024 to 262144 columns
    return LEFT + across * (RIGHT - LEFT), BOTTOM - gbps / MOST * (BOTTOM - TOP)


def axes(title):
    parts = [f'<text x="{LEFT}" y="20" font-weight="bold">{title}</text>', f'<text x="{LEFT - 50}" y="{TOP - 4}">GB/s</text>']
    for gbps in range(0, MOST, STEP):
        y = place(1024, gbps)[1]
        parts += [f'<path class="grid" d="M{LEFT} {y:.1f}H{RIGHT}"/>',
                  f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{gbps}</text>']
    for power in range(10, 19):
        parts.append(f'<text x="{place(2 ** power, 0)[0]:.1f}" y="{BOTTOM + 20}" text-anchor="middle">{2 ** power // 1024}K</text>')
    return parts + [f'<text x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 40}" text-anchor="middle">columns</text>']


def points_of(rows, peer):
    """(columns, GB/s), by columns, of the sizes of SIZES; a peer that failed has none there."""
    timed = [row for row in rows if row["size"] in SIZES and row[peer].replace(".", "", 1).isdigit()]
    return sorted((int(row["size"].split("x")[1]), float(row[peer])) for row in timed)


def line(peer, points):
    at = [place(*point) for point in points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
    dots = "".join(f'<circle class="{peer} dot" cx="{x:.1f}" cy="{y:.1f}" r="{4 if peer == "fusec" else 2.5}"/>' for x, y in at)
    return f'<path class="{peer} line" d="M{path}"/>' + (dots if peer != "add" else "")


def draw(rows, title):
    lines = {peer: points_of(rows, peer) for peer in PEERS}
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
             f"<title>{title}</title>", style(), *axes(title)]
    parts += [line(peer, lines[peer]) for peer in reversed(PEERS) if lines[peer]]      # fusec last, above all
    for i, peer in enumerate(peer for peer in PEERS if lines[peer]):
        y = TOP + 12 + 24 * i
        parts.append(f'<path class="{peer} line" d="M{RIGHT + 24} {y}h28"/>'
                     f'<text class="{peer} name" x="{RIGHT + 60}" y="{y + 5}">{PEERS[peer][0]}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def draw_all(rows):
    """{file name: SVG}."""
    drawn = {}
    for operation, dtype in dict.fromkeys((row["operation"], row["dtype"]) for row in rows):
        chosen = [row for row in rows if (row["operation"], row["dtype"]) == (operation, dtype)]
        drawn[f"peers_{operation}_{dtype}.svg"] = draw(chosen, f"{operation}, {dtype}, H100 80GB HBM3")
    return drawn
