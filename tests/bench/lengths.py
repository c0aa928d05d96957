#!/usr/bin/env python3
"""lengths.py: of which lengths a graph's kernels leave an SM half empty. Needs NVRTC, no GPU.

    lengths.py FILE.fuse AXIS=SIZE,SIZE,… | AXIS=FIRST:LAST:STEP … [fusec options]     FUSEC=… names the program

One line for each length whose first kernel spills, replaces one that does, is alone on its SM, or has few bytes of rows
under way: its CTAs by registers, threads and shared memory, times the row that each has. Rules that are fitted on some
lengths or graphs fail on others in just this way (docs/log/, twelfth and fifteenth round). Kernels with a
ring are not judged by this, for their bytes under way are the ring's.
"""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

REGISTERS, THREADS, CTAS, SMEM = 65536, 2048, 32, 227 << 10    # of an SM of sm_90
FEW_BYTES = 56 << 10    # under way, below which 0.35 to 0.93 of the best was measured; from 72 kB on 0.95 and more
STATIC_SMEM = 2 << 10   # at most what kernels declare, and what the system takes of each CTA


def lengths_of(text):
    if ":" not in text:
        return [int(n) for n in text.split(",")]
    first, last, step = map(int, text.split(":"))
    return list(range(first, last + 1, step))


def explain(file, sizes, options):
    command = [os.environ.get("FUSEC", "build/fusec"), "explain", file, *sizes, *options, "--json", "--no-tuning"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def resident(kernel):
    """CTAs that an SM holds at once."""
    registers = -(-kernel["registers"] // 8) * 8 * kernel["threads"]
    return min(REGISTERS // registers, THREADS // kernel["threads"], CTAS,
               SMEM // (kernel["smem_bytes"] + STATIC_SMEM))


def judge(plan, rows):
    kernel = plan["kernels"][0]
    ctas = resident(kernel)
    under_way = ctas * kernel["rows"] * plan["traffic"]["read"] / rows / kernel["cluster"]
    marks = []
    if kernel["stages"] == 1 and under_way < FEW_BYTES:
        marks.append("few bytes under way")
    if kernel["stages"] == 1 and ctas == 1:
        marks.append("alone")
    if kernel["spill_bytes"]:
        marks.append(f"spills {kernel['spill_bytes']} bytes")
    marks += [f"in place of {r['schedule']}, which {r['reason']}" for r in plan["rejected"] if "spills" in r["reason"]]
    return (f"{kernel['schedule']}, cluster {kernel['cluster']}, {ctas} CTAs an SM of {kernel['threads']} threads with "
            f"{kernel['registers']} registers, {under_way / 1024:.0f} kB of rows", marks)


def main(arguments):
    if len(arguments) < 2 or "=" not in arguments[1]:
        sys.exit(__doc__)
    file, (axis, text), options = arguments[0], arguments[1].split("=", 1), arguments[2:]
    lengths = lengths_of(text)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plans = pool.map(lambda n: explain(file, [f"{axis}={n}"], options), lengths)
        found = 0
        for length, plan in zip(lengths, plans):
            rows = 1
            for name in plan["axes"]["rows"]:
                rows *= plan["sizes"][name]
            line, marks = judge(plan, rows)
            if marks:
                print(f"{axis}={length}: {line}: {'; '.join(marks)}", flush=True)
                found += 1
    print(f"{found} of {len(lengths)} lengths")


main(sys.argv[1:])
