"""peers_report.py: the tables of what peers.py measured, from its JSON files alone."""
import math
import statistics
import sys

from peers_ops import ALL_OPS, CEILINGS, GROUPS, PEERS

SLOWER = 0.99                                          # of the best peer: more than noise

# ---- the tables ----

def merge(files):
    """Several files as one. Peers that cannot be imported beside each other are measured in runs of their own."""
    merged = {"runs": [], "results": []}
    for data in files:
        first = len(merged["runs"])
        merged["runs"] += data["runs"]
        merged["results"] += [r | {"run": r["run"] + first} for r in data["results"]]
    if len({run.get("behind") for run in merged["runs"]}) > 1:
        sys.exit("peers: times of an idle and of a busy stream do not go together")
    return merged


def by_cell(data):
    """{(dtype, op): {size: {peer: record}}}, in the order of OPS and of the groups. A record's `beside` is fusec's of the same
    run, or of another where that run has none. What several files have counts as the first has it."""
    sizes = list(dict.fromkeys(sum(GROUPS.values(), [])))
    place = {f"{m}x{n}": i for i, (m, n) in enumerate(sizes)}
    ordered = sorted(data["results"], key=lambda r: (r["dtype"], list(ALL_OPS).index(r["op"]),
                                                     place.get(r["size"], len(place))))
    table, fusec = {}, {}
    for r in ordered:
        table.setdefault((r["dtype"], r["op"]), {}).setdefault(r["size"], {}).setdefault(r["peer"], r)
        if r["peer"] == "fusec":
            fusec[r["dtype"], r["op"], r["size"], r["run"]] = r
    for (dtype, op), sizes in table.items():
        for size, cell in sizes.items():
            for r in cell.values():
                r["beside"] = fusec.get((dtype, op, size, r["run"]), cell.get("fusec"))
    return table


def lead(record):
    """How many times as long a peer takes as fusec; None where either has no time."""
    beside = record["beside"]
    return record["us"] / beside["us"] if "us" in record and beside and "us" in beside else None


def best_peer(cell):
    timed = [r for peer, r in cell.items() if peer != "fusec" and lead(r)]
    return min(timed, key=lead, default=None)


def peer_text(record, busy):
    if record is None or record["status"] == "none":
        return "–"
    if "gbps" not in record:
        return record["status"]
    if busy:
        return f"{record['us']:.2f}"
    return f"{record['gbps']:.0f}" if record["gbps"] >= 100 else f"{record['gbps']:.1f}"


def report_row(size, cell, peers, add, busy):
    """Cells of one line (GB/s, in a busy stream µs), and fusec over the best peer (None where either has no time)."""
    fusec, best = cell.get("fusec"), best_peer(cell)
    timed = bool(fusec) and "gbps" in fusec
    row = [size] if busy else [size, f"{fusec['us']:.1f}" if timed else "–"]
    row += [peer_text(record, busy) for record in [fusec, *map(cell.get, peers), add]]
    row.append(f"{fusec['gbps'] / add['gbps']:.2f}" if timed and add and "gbps" in add else "–")
    ratio = lead(best) if best else None
    if ratio is None:
        row.append("–")
    else:
        mixed = "†" if best["beside"]["run"] != best["run"] else ""
        row.append(f"**{ratio:.3f} {best['peer']}**{mixed} ◀" if ratio < SLOWER else
                   f"{ratio:.2f} {best['peer']}{mixed}")
    return row, ratio


def print_table(head, rows):
    print("| " + " | ".join(head) + " |\n|---" + "|---:" * (len(head) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def print_runs(data):
    used = {r["run"] for r in data["results"]}
    for index, run in enumerate(data["runs"]):
        if index in used:
            versions = ", ".join(f"{name} {v}" for name, v in run["versions"].items())
            empty = run.get("empty_kernel_us")
            print(f"- run {index}: {run['device']}, {run['date']}, {versions}"
                  + (f", behind a product of {run['behind']}" if "behind" in run else
                     f", L2 flushed by {run['flush']}" if "flush" in run else "")
                  + (f", an empty kernel {empty:.2f} µs" if empty else ""))


def print_report(data):
    busy = any("behind" in run for run in data["runs"])
    unit = ("µs in a stream that is never idle" if busy else
            "GB/s, bytes = each input once + each output once")
    print(f"{unit}. `of add`: share of torch.add's bandwidth at that size; "
          "`of best`: fusec over the best peer, in the same run where that has both.\n"
          "◀: slower than that peer by more than 1 %; †: the two were measured in different runs.\n")
    print_runs(data)
    table, slower, notes, cells = by_cell(data), [], [], 0
    for (dtype, op), sizes in table.items():
        if op in CEILINGS:
            continue
        adds = table.get((dtype, "add"), {})
        peers = [peer for peer in PEERS[1:]
                 if any(peer_text(cell.get(peer), busy) != "–" for cell in sizes.values())]
        rows, ratios = [], {}
        for size, cell in sizes.items():
            row, ratio = report_row(size, cell, peers, adds.get(size, {}).get("torch"), busy)
            rows.append(row)
            if ratio is not None:
                ratios[size] = ratio
            notes += [f"{op} {size} {dtype}: {note}" for note in cell_notes(cell)]
        print(f"\n### {op}, {dtype}\n")
        print_table(["size", *([] if busy else ["µs"]), "fusec", *peers, "add", "of add", "of best"], rows)
        if ratios:
            mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios.values()))
            print(f"\nfusec over the best peer: {mean:.2f} in the geometric mean, "
                  f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f}")
        cells += len(ratios)
        slower += [f"{op} {size} {dtype}: {ratio:.3f} of {best_peer(sizes[size])['peer']}"
                   for size, ratio in ratios.items() if ratio < SLOWER]
        slower += [f"{op} {size} {dtype}: fusec has no time" for size, cell in sizes.items()
                   if "us" not in cell.get("fusec", {})]
    print("\nSlower than the best peer by more than 1 %, or without a time: "
          f"{len(slower)} cells; {cells} were compared")
    for text in slower + notes:
        print(f"- {text}")


def cell_notes(cell):
    """What a reader must know beside the figures: peers without a time, spills, noise."""
    for peer, r in cell.items():
        if r["status"] == "failed":
            yield f"{peer} failed: {r['message']}"
        elif r["status"] == "wrong":
            yield f"{peer} is wrong, its error {r['error']} of the tolerance"
        elif r.get("spread", 0) > 0.1:
            yield f"{peer} is noisy, half of its times lie {100 * r['spread']:.0f} % apart"
        for kernel in r.get("kernels", []):
            if kernel["spill_bytes"] > 0:
                yield f"kernel {kernel['name']} spills {kernel['spill_bytes']} bytes"


# ---- the data ----

def print_data(data):
    """As docs/log/data has it: what tests/bench/figures.py compares pages with, and draws plots of."""
    print(f"# make peers: {'; '.join(dict.fromkeys(run['device'] + ', ' + run['date'] for run in data['runs']))}.")
    print("# us: microseconds of fusec; fusec to add: GB/s, each input and output counted once; of_add: fusec over torch.add at that size;\n"
          "# lead: how many times as long the fastest peer of the run takes, which is best.")
    print("\t".join(["operation", "dtype", "size", "us", *PEERS, "add", "of_add", "lead", "best"]))
    table = by_cell(data)
    for (dtype, op), sizes in table.items():
        if op in CEILINGS:
            continue
        for size, cell in sizes.items():
            add = table.get((dtype, "add"), {}).get(size, {}).get("torch")
            row, ratio = report_row(size, cell, PEERS[1:], add, False)
            best = best_peer(cell)["peer"] if ratio is not None else ""
            row = [op, dtype, *row[:-1], "–" if ratio is None else f"{ratio:.2f}", best]
            print("\t".join("" if text == "–" else text for text in row))
