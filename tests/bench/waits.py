#!/usr/bin/env python3
"""waits.py: where a kernel waits for the loads that it starts in a loop. Needs nvdisasm, no GPU.

    waits.py FILE.fuse [AXIS=SIZE …] [fusec options]     FUSEC=… NVDISASM=… name the programs

A warp has six scoreboards. Whatever takes unknown time, a load above all, counts on one of them, and
a later instruction waits until it is at zero: for all that counts on it, its own operand or not. So
a value that is read a row ahead may still be waited for at once, by an instruction that has nothing to
do with it. One line for each load within a loop:

    distance   instructions from the load to the first that waits for its scoreboard
    * …        that instruction, where it does not use what was loaded

Before it, of kernels without a loop over rows, loads that wait for a load: they take over its
scoreboard, and a row is then asked for when something else has come (forty-second round).

Distances below about 100 are a memory latency in every pass (docs/log/2026-11-22-what-an-instruction-waits-for.md).
The fields of an instruction's control bits are those that public disassemblers agree on for sm_70 to sm_90.
"""
import os
import re
import subprocess
import sys
import tempfile

LEAST_LOOP = 60        # instructions: shorter loops are not the rows'


class Instruction:
    def __init__(self, text, words):
        self.text = re.sub(r"\s+", " ", text)
        control = words >> (64 + 41)
        self.writes = control >> 5 & 7           # the scoreboard of its result; 7: none
        self.waits = control >> 11 & 0x3f        # a bit for each scoreboard

    def registers(self):
        return {int(r) for r in re.findall(r"\bR(\d+)", self.text)}

    def loaded(self):
        """The registers that a load fills; empty: it is none, or one to shared memory."""
        match = re.search(r"\bLDG\.E(\.\S+)? R(\d+)", self.text)
        if not match:
            return set()
        bits = re.search(r"\.(64|128)\b", match[1] or "")
        first = int(match[2])
        return set(range(first, first + (int(bits[1]) // 32 if bits else 1)))


def read_functions(listing):
    """{name: [Instruction or label]} of nvdisasm -hex -c."""
    functions, body, text = {}, None, None
    for line in listing.splitlines():
        if match := re.match(r"\.text\.(\S+):", line):
            body = functions.setdefault(match[1], [])
        elif body is None:
            continue
        elif match := re.match(r"(\.L_x_\d+):", line):
            body.append(match[1])
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;?\s*/\* 0x([0-9a-f]{16}) \*/", line):
            text, low = match[1], int(match[2], 16)
        elif (match := re.match(r"\s+/\* 0x([0-9a-f]{16}) \*/", line)) and text is not None:
            body.append(Instruction(text, int(match[1], 16) << 64 | low))
            text = None
    return functions


def find_loops(body):
    """(first, last) of the long loops: branches back to a label."""
    places = {item: i for i, item in enumerate(body) if isinstance(item, str)}
    for i, item in enumerate(body):
        match = isinstance(item, Instruction) and re.search(r"\bBRA\S* .*?(\.L_x_\d+)", item.text)
        if match and places.get(match[1], i) < i - LEAST_LOOP:
            yield places[match[1]], i


def first_wait(body, loop, load):
    """How far from it, and which instruction, in the order of the text and then round the loop."""
    begin, end = loop
    order = list(range(load + 1, end + 1)) + list(range(begin, load))
    for distance, i in enumerate(order, 1):
        if isinstance(body[i], Instruction) and body[i].waits >> body[load].writes & 1:
            return distance, body[i]
    return len(order), None


def wide(item):
    return isinstance(item, Instruction) and re.search(r"\bLDG\.E\.(64|128)\b", item.text)


def loads_that_wait(body):
    """(load, what it waits for), in the order of the text and of loads by vectors alone: those by elements
    stand in branches beside them."""
    owner = {}
    for item in body:
        if isinstance(item, str):
            continue
        for scoreboard in range(6):
            earlier = item.waits >> scoreboard & 1 and owner.pop(scoreboard, None)
            if earlier and wide(item) and not earlier.loaded() & item.registers():
                yield item, earlier
        if wide(item) and item.writes != 7:
            owner[item.writes] = item


def report(body):
    seen = {}
    if not any(find_loops(body)):
        for load, earlier in loads_that_wait(body):
            print(f"  waits   {load.text}    * {earlier.text}")
    for loop in find_loops(body):
        for i in range(*loop):
            item = body[i]
            if isinstance(item, str) or not item.loaded() or item.writes == 7:
                continue
            distance, waiter = first_wait(body, loop, i)
            if i not in seen or distance < seen[i][0]:
                seen[i] = distance, waiter
    for i, (distance, waiter) in sorted(seen.items()):
        uses = waiter and body[i].loaded() & waiter.registers()
        other = "" if uses else f"    * {waiter.text if waiter else 'none'}"
        print(f"{distance:8d}  {body[i].text}{other}")


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    fusec, nvdisasm = os.environ.get("FUSEC", "build/fusec"), os.environ.get("NVDISASM", "nvdisasm")
    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, "kernels.cubin")
        subprocess.run([fusec, "emit", *sys.argv[1:], "--emit=cubin", "-o", cubin], check=True)
        listing = subprocess.run([nvdisasm, "-hex", "-c", cubin], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
    for name, body in read_functions(listing).items():
        print(f"{name}: {sum(isinstance(item, Instruction) for item in body)} instructions")
        report(body)


if __name__ == "__main__":
    try:
        main()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"waits: {error}")
