#!/usr/bin/env python3
"""peers.py: fusec beside what people use today: same tensors, same timer, same process.

    peers.py --json FILE [--ops …] [--sizes …]     measures; results accumulate in FILE
    peers.py --report FILE…                        prints FILEs as Markdown; needs no torch
    peers.py --data FILE…                          prints FILEs as docs/log/data has them (figures.py); needs no torch
    peers.py --busy --json FILE2                   the same in a stream that is never idle
    peers.py --device cpu                          correctness alone, tiny: tests this script
    peers.py --tiles [PROGRAM…] [FILE.fuse…]       programs beyond rows along the last axis, and any others: peers_tiles.py

Peers: ATen's native ops, torch.compile of the formula that is also the reference, and
Liger-Kernel, quack and Transformer Engine (its core library) where they can be imported.

Correctness comes first: a peer's outputs on fresh random inputs are compared with the formula in
f64; a peer that is wrong is reported so and not timed. A time is the median between two CUDA
events around everything that a peer launches; under 20 µs, where times come in steps of 32 ns and
in heaps 160 ns apart, the mean of the middle half of several hundred. What a few rows take depends
on where tensors lie, by up to 6 %, so there these move a dozen times, for all peers alike. L2 is
flushed before each run, by default as `fusec bench` does it, by overwriting twice its size: the
lines that this leaves dirty are written back at the cost of what runs next, which meets all alike.
`--flush read` evicts by reading and leaves none. Before it, lines that kernels asked L2 to keep are
made like all others. A spinning kernel ahead of the flush holds the GPU until the host has queued the run, so that no launch
overhead enters. Peers take turns, so that a drift of the clocks meets all.
Bytes are each input once and each output once.
"""
import argparse
import ctypes
import datetime
import importlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

sys.dont_write_bytecode = True
import peers_tiles
from fusec_ctypes import FusecError
from peers_ops import (ALL_OPS, CEILINGS, GROUPS, MODULES, OPS, PACKAGES, PEERS, TINY, Fusec,
                       bytes_of, compile_work, compute_reference, liger_work, make_inputs,
                       move_inputs, poison, quack_work, te_work, torch, torch_work, worst_error)

# ---- time ----

SHORT_US = 20


def typical(times):
    """The median or, of short times, which a clock rounds to steps, the mean of the middle half."""
    us, quarter = statistics.median(times), len(times) // 4
    return us if us >= SHORT_US else statistics.fmean(sorted(times)[quarter:len(times) - quarter])


class Timer:
    LEAST, MOST, MOST_SHORT = 30, 90, 600
    DONE, NOTHING_KEPT = 0, 801    # CUDA_SUCCESS, CUDA_ERROR_NOT_SUPPORTED

    def __init__(self, device, flush, budget):
        l2 = torch.cuda.get_device_properties(device).L2_cache_size
        self.buffer = torch.zeros(2 * l2, dtype=torch.uint8, device=device)
        self.read = self.buffer.view(torch.int32)
        self.flush, self.budget = flush, budget
        self.driver = ctypes.CDLL("libcuda.so.1")

    def reset_cache(self):
        """Lines that a kernel asked L2 to keep (fusec's do, and some of torch.compile's) outlive what overwrites the
        rest; so they would help whatever runs next, or be there still when their kernel runs again."""
        torch.cuda.synchronize()
        if self.driver.cuCtxResetPersistingL2Cache() not in (self.DONE, self.NOTHING_KEPT):
            sys.exit("peers: L2 cannot be reset")

    def clear_cache(self):
        if self.flush == "write":
            self.buffer.zero_()
        else:
            self.read.amax()

    def sample(self, work, runs, delay_us):
        """Microseconds of each run. The delay must cover the time that the host needs for one."""
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(runs)]
        for begin, end in events:
            self.reset_cache()
            torch.cuda._sleep(int(2000 * delay_us))    # cycles, at about 2 GHz
            self.clear_cache()
            begin.record()
            work()
            end.record()
        torch.cuda.synchronize()
        return [1e3 * begin.elapsed_time(end) for begin, end in events]

    def host_us(self, work):
        begin = time.perf_counter()
        work()
        elapsed = time.perf_counter() - begin
        torch.cuda.synchronize()
        return 1e6 * elapsed

    def cost(self, us, delay_us):
        """Microseconds that a run keeps the GPU, about."""
        return us + delay_us + 60

    def plan(self, work):
        """How often to run `work`, and the delay before each run."""
        delay = 30 + 1.5 * statistics.median(self.host_us(work) for _ in range(5))
        us = statistics.median(self.sample(work, 3, delay))
        most = self.MOST_SHORT if us < SHORT_US else self.MOST
        return max(self.LEAST, min(most, int(1e6 * self.budget / self.cost(us, delay)))), delay

    def time_all(self, works, rounds, move=None):
        """The times of each work, by name, the works taking turns; `move` makes those of the next
        round of them."""
        plans = {peer: self.plan(work) for peer, work in works.items()}
        times = {peer: [] for peer in works}
        for i in range(rounds):
            if i and move:
                works = move(works)
            for peer, work in works.items():
                runs, delay = plans[peer]
                times[peer] += self.sample(work, -(-runs // rounds), delay)
        return times


class BusyTimer(Timer):
    """Of work in a stream that is never idle: each run is several matrix products, whose weights are more than L2 holds, and
    then as many with the work behind each. What the second part takes longer is the work's."""
    BEHIND, REPEATS = (64, 4096, 11008), 10

    def __init__(self, device, flush, budget):
        super().__init__(device, flush, budget)
        m, k, n = self.BEHIND
        self.matrices = [torch.randn(m, k, dtype=torch.bfloat16, device=device),
                         torch.randn(k, n, dtype=torch.bfloat16, device=device)]
        self.product = torch.empty(m, n, dtype=torch.bfloat16, device=device)

    def multiply(self):
        torch.mm(*self.matrices, out=self.product)

    def cost(self, us, delay_us):
        return self.REPEATS * (us + delay_us + 100)

    def sample(self, work, runs, delay_us):
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(3)] for _ in range(runs)]
        for begin, middle, end in events:
            self.reset_cache()
            torch.cuda._sleep(int(2000 * self.REPEATS * (delay_us + 40)))
            begin.record()
            for _ in range(self.REPEATS):
                self.multiply()
            middle.record()
            for _ in range(self.REPEATS):
                self.multiply()
                work()
            end.record()
        torch.cuda.synchronize()
        return [1e3 * (middle.elapsed_time(end) - begin.elapsed_time(middle)) / self.REPEATS
                for begin, middle, end in events]


# ---- a cell: one op at one size in one dtype, all its peers ----

class Bench:
    ROUNDS, PLACES, SMALL_BYTES = 3, 12, 4 << 20

    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda", 0) if args.device == "cuda" else torch.device("cpu")
        self.fusec = Fusec(self.device) if "fusec" in args.peers else None
        self.timer = None
        self.makers = {"fusec": self.fusec and self.fusec.work, "torch": torch_work,
                       "compile": compile_work, "liger": liger_work, "quack": quack_work,
                       "te": te_work}

    def peers_of(self, name):
        return ["torch"] if name in CEILINGS else self.args.peers

    def measure(self, name, m, n):
        """Records of all peers: checked, then timed together."""
        op, dtype = ALL_OPS[name], self.args.dtype
        t = make_inputs(name, m, n, dtype, self.device)
        exact = compute_reference(op, t)
        works, records = {}, []
        for peer in self.peers_of(name):
            record = {"op": name, "size": f"{m}x{n}", "dtype": dtype, "peer": peer}
            try:
                work = self.makers[peer](name, t)
                if work is None:
                    records.append(record | {"status": "none"})
                    continue
                poison(op, m, n, t)
                record["error"] = float(f"{worst_error(work(), exact, n):.4g}")
                record["status"] = "ok" if record["error"] <= 1 else "wrong"
                if record["status"] == "ok":
                    works[peer] = work
                elif not math.isfinite(record["error"]):
                    record["error"] = str(record["error"])         # JSON has neither
            except Exception as error:                 # whatever a peer may raise
                record.update(status="failed", message=first_line(error))
                self.demand_working_gpu(name, peer, error)
            records.append(record)
        if self.timer:
            size = bytes_of(op, m, n, dtype)
            if size < self.SMALL_BYTES:
                times = self.time_moving(name, t, works, exact)
            else:
                exact = None                           # as large as the tensors
                times = self.timer.time_all(works, self.ROUNDS)
            for record in records:
                if record["peer"] in times:
                    record.update(figures(times[record["peer"]], size))
        if "fusec" in works:
            records[0]["kernels"] = works["fusec"].kernels
        return records

    def time_moving(self, name, t, works, exact):
        """The times where each round has its tensors elsewhere."""
        held = []

        def move(works):
            held.append(move_inputs(ALL_OPS[name], t))
            moved = {peer: work if peer == "compile" else self.makers[peer](name, t)
                     for peer, work in works.items()}
            for peer, work in moved.items():
                if not worst_error(work(), exact, t.n) <= 1:
                    sys.exit(f"peers: {peer} is wrong in {name} where its tensors have moved")
            return moved
        return self.timer.time_all(works, self.PLACES, move)

    def demand_working_gpu(self, name, peer, error):
        if self.device.type == "cuda":
            try:
                torch.cuda.synchronize()
            except RuntimeError:
                sys.exit(f"peers: {peer} broke the GPU's context in {name}: {error}")

    def warm(self, cells):
        """Compiles what the cells need into the compilers' disk caches."""
        for name, m, n in cells:
            t = make_inputs(name, m, n, self.args.dtype, self.device)
            for peer in self.peers_of(name):
                try:
                    work = self.makers[peer](name, t)
                    work and work()
                    torch.cuda.synchronize()
                except Exception:                      # said when it is measured
                    pass
            del t
            torch.cuda.empty_cache()


def figures(times, size):
    low, _, high = statistics.quantiles(times, n=4)
    us = typical(times)
    return {"us": round(us, 3), "spread": round((high - low) / us, 4), "runs": len(times),
            "bytes": size, "gbps": round(1e-3 * size / us, 3)}


def first_line(error):
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


# ---- running ----

def choose_cells(args):
    """(op, M, N) of the run, one size after the other, the ceilings of a size first."""
    chosen = {}
    for item in args.sizes:
        explicit = re.fullmatch(r"(\d+)x(\d+)", item)
        for size in [tuple(map(int, explicit.groups()))] if explicit else GROUPS[item]:
            ops = [name for name in args.ops if explicit or item in OPS[name].groups]
            chosen.setdefault(size, []).extend(name for name in ops
                                               if name not in chosen.get(size, []))
    return [(name, m, n) for (m, n), ops in chosen.items() if ops
            for name in list(CEILINGS) + ops]


def importable_peers(wanted):
    found = []
    for peer in wanted:
        try:
            if peer in MODULES:
                importlib.import_module(MODULES[peer])
            found.append(peer)
        except Exception as error:                     # a broken installation is no peer either
            print(f"peers: {peer} skipped, not importable: {first_line(error)}", file=sys.stderr)
    return found


def warm_caches(args):
    """Lets processes fill the disk caches of Inductor, Triton and fusec before the timing."""
    begin = time.monotonic()
    environment = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
    command = [sys.executable, __file__, *sys.argv[1:]]
    workers = [subprocess.Popen([*command, f"--warm={i}/{args.jobs}"], env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for i in range(args.jobs)]
    failed = sum(worker.wait() != 0 for worker in workers)
    print(f"peers: caches warmed by {args.jobs} processes in {time.monotonic() - begin:.0f} s"
          + (f"; {failed} FAILED, their cells compile when measured" if failed else ""),
          flush=True)


class Results:
    """The JSON file: `runs` say where and when, `results` are one for (op, size, dtype, peer)."""

    def __init__(self, path):
        self.path = path
        self.data = read_results(path) if path and path.exists() else {"runs": [], "results": []}
        self.run = None

    def start_run(self, facts):
        devices = {run["device"] for run in self.data["runs"]} | {facts["device"]}
        if len(devices) > 1:
            sys.exit(f"peers: {self.path} is of another device: {', '.join(sorted(devices))}")
        if {run.get("behind") for run in self.data["runs"]} - {facts.get("behind")}:
            sys.exit(f"peers: {self.path} has times of another kind: --busy goes into a file of its own")
        self.run = len(self.data["runs"])
        self.data["runs"].append(facts)

    def has(self, key):
        """Whether the file has that result; a failure of fusec is no result."""
        return any(identity(r) == key and (r["peer"] != "fusec" or r["status"] == "ok")
                   for r in self.data["results"])

    def add(self, records):
        for record in records:
            record["run"] = self.run
        new = {identity(record) for record in records}
        self.data["results"] = [record for record in self.data["results"]
                                if identity(record) not in new] + records
        if self.path:
            part = self.path.with_name(self.path.name + ".part")
            part.write_text("{\n" + ",\n".join(
                f' "{key}": [\n  ' + ",\n  ".join(json.dumps(v) for v in values) + "\n ]"
                for key, values in self.data.items()) + "\n}\n")
            part.replace(self.path)


def read_results(path):
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"peers: {path}: {error}")


def identity(record):
    return record["op"], record["size"], record["dtype"], record["peer"]


def run_facts(bench, seed):
    versions = {"torch": torch.__version__}
    for module, package in PACKAGES.items():
        if module in sys.modules:
            try:
                versions[package] = metadata.version(package)
            except metadata.PackageNotFoundError:      # unpacked by hand, or under another name
                versions[package] = getattr(sys.modules[module], "__version__", "unknown")
    if bench.fusec:
        versions["fusec"] = bench.fusec.binding.version()
        versions["driver"] = bench.fusec.device.info().driver_version
    facts = {"date": datetime.datetime.now().isoformat(timespec="seconds"), "seed": seed,
             "device": "CPU", "versions": versions}
    if bench.device.type == "cuda":
        facts |= {"device": torch.cuda.get_device_name(bench.device), "cuda": torch.version.cuda,
                  "flush": bench.args.flush,
                  "empty_kernel_us": round(typical(
                      bench.timer.sample(lambda: torch.cuda._sleep(0),
                                         Timer.MOST if bench.args.busy else Timer.MOST_SHORT, 60)), 3)}
        if bench.args.busy:
            facts["behind"] = "x".join(map(str, BusyTimer.BEHIND))
    return facts


def describe(records):
    return (f"{records[0]['op']} {records[0]['size']} {records[0]['dtype']}: "
            + " | ".join(f"{r['peer']} {outcome(r)}" for r in records if r["status"] != "none"))


def outcome(record):
    if "us" in record:
        return f"{record['us']:.1f} us {record['gbps']:.0f} GB/s"
    if record["status"] == "failed":
        return f"FAILED ({record['message']})"
    return f"{record['status']}, error {record['error']} of the tolerance"


def measure(args):
    begin = time.monotonic()
    cells = choose_cells(args)
    bench = Bench(args)
    if args.warm:
        part, of = map(int, args.warm.split("/"))
        return bench.warm([cell for cell in cells if cell[0] in OPS][part::of])
    results = Results(args.json)
    if args.resume:
        cells = [(name, m, n) for name, m, n in cells if not all(
            results.has((name, f"{m}x{n}", args.dtype, peer)) for peer in bench.peers_of(name))]
    if args.device == "cuda":
        if args.jobs and cells:
            warm_caches(args)
        bench.timer = Timer(bench.device, args.flush, args.budget)
        bench.timer.sample(bench.timer.clear_cache, 2000, 10)      # brings the clocks up
        if args.busy:
            bench.timer = BusyTimer(bench.device, args.flush, args.budget)
    seed = args.seed if args.seed is not None else time.time_ns() & 0xFFFFFFFF
    torch.manual_seed(seed)
    results.start_run(run_facts(bench, seed))
    bad = []
    for done, (name, m, n) in enumerate(cells):
        if time.monotonic() - begin > args.limit:
            print(f"peers: the limit of {args.limit:.0f} s: {len(cells) - done} of {len(cells)} "
                  "cells are left; --resume goes on with them")
            break
        records = bench.measure(name, m, n)
        results.add(records)
        bad += [r for r in records if r["peer"] == "fusec" and r["status"] not in ("ok", "none")
                or args.device == "cpu" and r["status"] == "wrong"]
        print(describe(records), flush=True)
        if args.device == "cuda":
            torch.cuda.empty_cache()
    print(f"peers: {time.monotonic() - begin:.0f} s")
    return 1 if bad else 0


# ---- the command line ----

def words(text):
    return [word for word in re.split(r"[\s,]+", text) if word]


def parse_arguments():
    p = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter,
                                description=__doc__)
    p.add_argument("--report", nargs="+", metavar="FILE", type=Path, help="print the tables of FILEs")
    p.add_argument("--data", nargs="+", metavar="FILE", type=Path, help="print FILEs as docs/log/data has them")
    p.add_argument("--json", metavar="FILE", type=Path, help="where results accumulate")
    p.add_argument("--ops", type=words, default=list(OPS), help="of " + ",".join(OPS))
    p.add_argument("--tiles", nargs="*", metavar="PROGRAM",
                   help="the programs of peers_tiles.py, or those named, or of files, beside torch.compile and eager PyTorch, at their own sizes")
    p.add_argument("--sizes", type=words,
                   help="of table (16384 rows of 1024 columns to 1024 of 262144), short (4096 rows), "
                        "heads (221184 rows of 64 and 128), decode (1, 8, 64 rows), busy (those and "
                        "512 rows), classes (cross entropy of vocabularies), or MxN; default: all groups")
    p.add_argument("--peers", type=words, default=PEERS, help="of " + ",".join(PEERS))
    p.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    p.add_argument("--dtype", choices=("bf16", "f16", "f32"), default="bf16")
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    p.add_argument("--flush", choices=("write", "read"), default="write",
                   help="how L2 is flushed; default: write")
    p.add_argument("--busy", action="store_true",
                   help="time each run behind a matrix product in a stream that is never idle; into a FILE of its own")
    p.add_argument("--budget", type=float, default=0.1, metavar="S",
                   help="seconds a peer in a cell; default: 0.1")
    p.add_argument("--limit", type=float, default=math.inf, metavar="S",
                   help="begin no cell after S seconds")
    p.add_argument("--resume", action="store_true", help="skip the cells that --json FILE has")
    p.add_argument("--jobs", type=int, default=min(8, (os.cpu_count() or 2) // 2),
                   help="processes that compile ahead; 0: none")
    p.add_argument("--seed", type=int, help="of the inputs; default: the clock")
    p.add_argument("--warm", help=argparse.SUPPRESS)
    args = p.parse_args()
    args.peers = [peer for peer in PEERS if peer in args.peers
                  and not (peer == "compile" and args.no_compile)]
    args.sizes = args.sizes or (list(GROUPS) if args.device == "cuda" else
                                [f"{m}x{n}" for m, n in TINY])
    for program in args.tiles or []:
        if program not in peers_tiles.FORMULAS and not (program.endswith(".fuse") and Path(program).exists()):
            p.error(f"no program {program}; there are {' '.join(peers_tiles.FORMULAS)}, and any FILE.fuse")
    for op in args.ops:
        if op not in OPS:
            p.error(f"no op {op}; there are {' '.join(OPS)}")
    for size in args.sizes:
        if size not in GROUPS and not re.fullmatch(r"[1-9]\d*x[1-9]\d*", size):
            p.error(f"no size {size}; there are {' '.join(GROUPS)} and MxN")
    return args


def main():
    args = parse_arguments()
    if args.report or args.data:
        import peers_report
        if args.report:
            peers_report.print_report(peers_report.merge(map(read_results, args.report)))
        if args.data:
            peers_report.print_data(peers_report.merge(map(read_results, args.data)))
        return 0
    if torch is None or (args.device == "cuda" and not torch.cuda.is_available()):
        print("peers: skipped, there is no " + ("GPU" if torch else "torch"), file=sys.stderr)
        return 0
    if args.tiles is not None:
        return int(peers_tiles.run(args, Timer))
    args.peers = importable_peers(args.peers)
    return measure(args) or 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FusecError as error:
        sys.exit(f"peers: {error}")
