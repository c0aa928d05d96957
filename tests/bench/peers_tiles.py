"""peers_tiles.py: programs beyond rows along the last axis, by fusec beside the same formulas by torch.compile and by
PyTorch as they stand ("eager", in f32). `peers.py --tiles` runs it and says what it skips.

A program is a file of examples/ or tests/bench/tiles/, at the sizes that it declares. Its formula is here once: in f64 it is the
reference, in f32 what torch.compile gets. Bytes are each input once and each output once. Any other file FILE.fuse can be named,
too: its formula is then made from its graph (graph_formula.py).
"""
import json
import math
import os
import re
import subprocess
import time
from collections import namedtuple
from pathlib import Path

from fusec_ctypes import Library

try:
    import graph_formula
    import torch
except ImportError:                                    # says peers.py
    torch = None

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, TILES = ROOT / "examples", Path(__file__).resolve().parent / "tiles"
PEERS = ("fusec", "compile", "eager")
# What of an output may lie beyond the tolerance: where a scale is a step of what f32 rounds, a whole block is another.
STRAY = 1e-5

# ---- the formulas, of tensors in the order of the program's inputs ----


def rms(x, axes, eps=1e-6):
    return torch.rsqrt((x * x).mean(axes, keepdim=True) + eps)


def moments(x, axes):
    mean = x.mean(axes, keepdim=True)
    return mean, ((x - mean) ** 2).mean(axes, keepdim=True)


def block_scaled(y):
    scale = y.abs().amax(-1, keepdim=True).clamp(min=1e-4) / 448.0
    return y / scale, scale.squeeze(-1)


def rms_block_fp8(x, gamma):
    return block_scaled(x * rms(x, (1, 2)) * gamma)


def add_rms_block_fp8(x, residual, gamma):
    h = x + residual
    return h, *block_scaled(h * rms(h, (1, 2)) * gamma)


def rms_mxfp8(x, gamma):
    y = x * rms(x, (1, 2)) * gamma
    p = torch.ceil(torch.log2(y.abs().amax(-1, keepdim=True).clamp(min=1e-30) / 448.0))
    return y * torch.exp2(-p), (p + 127).squeeze(-1)


def head_norm_gated(x, z, gamma):
    y = x * rms(x, (2,)) * gamma * (z * torch.sigmoid(z))
    scale = y.abs().amax((1, 2), keepdim=True).clamp(min=1e-4) / 448.0
    return y / scale, scale.reshape(-1)


def layernorm2d(x, gamma, beta):
    mean, var = moments(x, (1,))
    rstd = torch.rsqrt(var + 1e-6)
    return (x - mean) * rstd * gamma[:, None] + beta[:, None], mean.squeeze(1), rstd.squeeze(1)


def layernorm2d_bwd(x, dy, gamma, mean, rstd):
    mean, rstd = mean[:, None], rstd[:, None]
    xhat, wdy = (x - mean) * rstd, dy * gamma[:, None]
    c1, c2 = wdy.mean((1,), keepdim=True), (wdy * xhat).mean((1,), keepdim=True)
    return (wdy - c1 - xhat * c2) * rstd, (dy * xhat).sum((0, 2)), dy.sum((0, 2))


def softmax_classes(x):
    e = torch.exp(x - x.amax((1,), keepdim=True))
    return (e / e.sum((1,), keepdim=True),)


def softmax_classes_bwd(y, dy):
    return (y * (dy - (y * dy).sum((1,), keepdim=True)),)


def batchnorm(x, gamma, beta, running_mean, running_var):
    n = x.shape[0] * x.shape[2]
    mean, var = moments(x, (0, 2))
    rstd = torch.rsqrt(var + 1e-5)
    y = (x - mean) * rstd * gamma[:, None] + beta[:, None]
    mean, var, rstd = mean.reshape(-1), var.reshape(-1), rstd.reshape(-1)
    return (y, mean, rstd, running_mean + 0.1 * (mean - running_mean),
            running_var + 0.1 * (var * n / (n - 1) - running_var))


def batchnorm_bwd(x, dy, gamma, mean, rstd):
    n = x.shape[0] * x.shape[2]
    xhat = (x - mean[:, None]) * rstd[:, None]
    dgamma, dbeta = (dy * xhat).sum((0, 2)), dy.sum((0, 2))
    inner = dy - dbeta[:, None] / n - xhat * dgamma[:, None] / n
    return (gamma * rstd)[:, None] * inner, dgamma, dbeta


def batchnorm_nhwc(x, gamma, beta):
    mean, var = moments(x, (0,))
    rstd = torch.rsqrt(var + 1e-5)
    y = ((x - mean) * rstd * gamma + beta).clamp(min=0)
    return y, mean.squeeze(0), rstd.squeeze(0)


def group_norm_silu_nhwc(x, gamma, beta):
    mean, var = moments(x, (1, 3))
    rstd = torch.rsqrt(var + 1e-5)
    y = (x - mean) * rstd * gamma + beta
    return y * torch.sigmoid(y), mean[:, 0, :, 0], rstd[:, 0, :, 0]


def group_norm_nhwc_bwd(x, dy, gamma, mean, rstd):
    mean, rstd = mean[:, None, :, None], rstd[:, None, :, None]
    xhat, wdy = (x - mean) * rstd, dy * gamma
    c1, c2 = wdy.mean((1, 3), keepdim=True), (wdy * xhat).mean((1, 3), keepdim=True)
    return (wdy - c1 - xhat * c2) * rstd, (dy * xhat).sum((0, 1)), dy.sum((0, 1))


def grn(x, gamma, beta):
    g = torch.sqrt((x * x).sum((1,), keepdim=True))
    return (gamma * (x * (g / (g.mean((2,), keepdim=True) + 1e-6))) + beta + x,)


def columns_standardized(x):
    mean, var = moments(x, (0,))
    return ((x - mean) * torch.rsqrt(var + 1e-8),)


def weights_standardized(w):
    mean, var = moments(w, (1, 2))
    return ((w - mean) * torch.rsqrt((var * (w.shape[1] * w.shape[2])).clamp(min=1e-10)),)


def pooled(x, mask):
    m = mask.to(x.dtype)
    y = (x * m[:, :, None]).sum((1,)) / m.sum((1,)).clamp(min=1e-9)[:, None]
    return (y / torch.sqrt((y * y).sum((1,), keepdim=True)).clamp(min=1e-12),)


def sinkhorn_small(x):
    a = torch.exp(x - x.amax((1, 2), keepdim=True))
    for _ in range(20):
        b = a / (a.sum((2,), keepdim=True) + 1e-6)
        a = b / (b.sum((1,), keepdim=True) + 1e-6)
    return (a,)


def clipped(g, h, w):
    norm = torch.sqrt((g * g).sum() + (h * h).sum() + (w * w).sum())
    scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
    return g * scale, h * scale, w * scale, norm


def q_and_k(q, k, gq, gk):
    return q * rms(q, (2,)) * gq, k * rms(k, (2,)) * gk


def scaled_by_row(x, t):
    return (t * rms(x, (1,)),)


def main_grad(x, dy, rstd, acc):
    return (acc + (dy * x * rstd[:, None]).sum((0,)),)


def window_softmax(x, sink):
    q, k = x.shape[2], x.shape[3]
    back = (torch.arange(q, device=x.device)[:, None] + k - q
            - torch.arange(k, device=x.device)[None, :])
    s = torch.where((back >= 0) & (back < 256), x * 0.125, -math.inf)
    sink = sink[:, None, None]
    m = torch.maximum(s.amax((3,), keepdim=True), sink)
    e = torch.exp(s - m)
    return (e / (e.sum((3,), keepdim=True) + torch.exp(sink - m)),)


def distill(student, teacher):
    ls, lt = torch.log_softmax(student / 2.0, -1), torch.log_softmax(teacher / 2.0, -1)
    p = torch.exp(lt)
    return (p * (lt - ls)).sum((1,)) * 2.0 * 2.0, (torch.exp(ls) - p) * 2.0


# In the order of the table; those of examples/ have another name there.
RENAMED = {"rms_block_fp8": "rmsnorm_block_fp8", "rms_mxfp8": "rmsnorm_mxfp8",
           "layernorm2d": "layernorm_channels", "layernorm2d_bwd": "layernorm_channels_bwd",
           "batchnorm": "batchnorm", "batchnorm_bwd": "batchnorm_bwd",
           "group_norm_silu_nhwc": "group_norm_nhwc_silu"}
FORMULAS = {f.__name__: f for f in (
    rms_block_fp8, add_rms_block_fp8, rms_mxfp8, head_norm_gated, layernorm2d, layernorm2d_bwd,
    softmax_classes, softmax_classes_bwd, batchnorm, batchnorm_bwd, batchnorm_nhwc,
    group_norm_silu_nhwc, group_norm_nhwc_bwd, grn, columns_standardized, weights_standardized,
    pooled, sinkhorn_small, clipped, q_and_k, scaled_by_row, main_grad, window_softmax, distill)}

# ---- programs ----

Tensor = namedtuple("Tensor", "name dtype shape")
Program = namedtuple("Program", "name path text sizes inputs outputs")


def read_program(name, tiny=False):
    """A program with its sizes; `tiny`: the sizes from 40 on are cut, for tests of this script."""
    path = Path(name) if name.endswith(".fuse") else EXAMPLES / f"{RENAMED[name]}.fuse" if name in RENAMED else TILES / f"{name}.fuse"
    text = path.read_text()
    axes, inputs, outputs = re.search(r"^graph \w+\[(.*?)\]\((.*?)\)\s*->\s*\((.*?)\)\s*\{", text,
                                      re.DOTALL | re.MULTILINE).groups()
    sizes = {axis: int(size) for axis, size in re.findall(r"(\w+) = (\d+)", axes)}
    if tiny:
        sizes = {axis: size if size < 40 else 40 + size % 3 for axis, size in sizes.items()}
    return Program(name, path, text, sizes, tensors_of(inputs, sizes), tensors_of(outputs, sizes))


def tensors_of(parameters, sizes):
    return [Tensor(name, dtype, tuple(sizes[axis] for axis in re.findall(r"\w+", axes)))
            for name, dtype, axes in re.findall(r"(\w+)\s*:\s*(\w+)\[([^\]]*)\]", parameters)]


def formula_of(program, kind, device):
    """The function of its inputs that computes floats as `kind`, which those of the inputs have."""
    if program.name in FORMULAS:
        return FORMULAS[program.name]
    sizes = [f"{axis}={size}" for axis, size in program.sizes.items()]
    graph = subprocess.run([ROOT / "build/fusec", program.path, *sizes, "--emit=graph"], check=True, capture_output=True, text=True)
    scalars = {name: float(value) for name, value in re.findall(r"(\w+)\s*:\s*\w+\s*=\s*([-+.\de]+)", program.text)}
    return graph_formula.formula(graph.stdout, program.sizes, scalars, kind, device)


def bytes_of(program):
    return sum(math.prod(t.shape) * kind_of(t.dtype).itemsize
               for t in program.inputs + program.outputs)


def kind_of(dtype):
    return getattr(torch, graph_formula.DTYPES[dtype])


def make_input(tensor, device):
    """Random, and such as the formulas are used with."""
    if not kind_of(tensor.dtype).is_floating_point:
        return torch.randint(2, tensor.shape, dtype=kind_of(tensor.dtype), device=device)
    value = torch.randn(tensor.shape, dtype=torch.float32, device=device)
    if tensor.name in ("rstd", "running_var", "v"):
        value = value.abs_().add_(0.5)
    elif tensor.name == "mean":
        value = value.mul_(0.1)
    elif tensor.name == "y":                           # of a softmax
        value = torch.softmax(value, 1)
    elif tensor.name in ("x", "w", "gamma"):
        value = value.add_(0.5)
    return value.to(kind_of(tensor.dtype))


def as_floats(tensors, kind):
    return [t.to(kind) if t.is_floating_point() else t for t in tensors]


# ---- the peers: each gives a function that computes the outputs ----

def fusec_work(device, program, inputs, stream):
    plan = device.plan(program.text, str(program.path), program.sizes)
    outputs = [torch.empty(t.shape, dtype=kind_of(t.dtype), device=inputs[0].device)
               for t in program.outputs]
    for output in outputs:
        output.reshape(-1).view(torch.uint8).fill_(0xFF)    # a NaN of every float
    workspace = torch.empty(plan.workspace(), dtype=torch.uint8, device=inputs[0].device)
    call = plan.call({t.name: (value.data_ptr(), t.dtype, t.shape) for t, value in
                      zip(program.inputs + program.outputs, [*inputs, *outputs])},
                     workspace.data_ptr() or None)

    def work():
        call.launch(stream)
        return outputs
    work.keep = inputs, workspace                      # the call has their addresses alone
    work.kernels = plan.kernels()
    return work


def torch_work(program, inputs, compiled):
    formula = formula_of(program, torch.float32, inputs[0].device)
    kinds = [kind_of(t.dtype) for t in program.outputs]

    def computed_in_f32(*tensors):
        return [output.to(kind) for output, kind in
                zip(formula(*as_floats(tensors, torch.float32)), kinds)]
    if not compiled:
        return lambda: computed_in_f32(*inputs)
    torch._dynamo.reset()
    function = torch.compile(computed_in_f32, dynamic=False)
    return lambda: function(*inputs)


# ---- correctness ----

def worst_error(program, outputs, exact):
    """The largest error as a fraction of the tolerance, but for STRAY of the elements."""
    from peers_ops import UNIT
    worst = 0.0
    for tensor, got, want in zip(program.outputs, outputs, exact, strict=True):
        if tuple(got.shape) != tensor.shape:
            raise ValueError(f"{tensor.name} has the shape {tuple(got.shape)}")
        unit = UNIT.get(got.dtype, 2.0**-10)           # integers are the same
        for part, right in zip(got.reshape(-1).split(1 << 26), want.reshape(-1).split(1 << 26)):
            rms_ = right.double().square().mean().sqrt()
            share = (part.double() - right).abs_() / (unit * (right.abs() + rms_) + 1e-30)
            share = torch.nan_to_num(share, nan=math.inf)
            stray = int(STRAY * share.numel())
            worst = max(worst, share.kthvalue(share.numel() - stray).values.item()
                        if share.numel() < 1 << 20 else threshold(share, stray))
    return worst


def threshold(share, stray):
    """The error that no more than `stray` elements exceed, up to a factor of 2; kthvalue takes its time for many."""
    bound = 1.0
    while bound < 1e30 and (share > bound).sum().item() > stray:
        bound *= 2
    return bound if bound > 1 else min(1.0, share.max().item())


# ---- running ----

def measure_program(program, args, device, fusec, timer):
    """Records of all peers: checked, then timed in turns."""
    inputs = [make_input(t, device) for t in program.inputs]
    exact = formula_of(program, torch.float64, device)(*as_floats(inputs, torch.float64))
    stream = torch.cuda.current_stream().cuda_stream if device.type == "cuda" else None
    works, records = {}, []
    for peer in PEERS:
        record = {"program": program.name, "sizes": program.sizes, "peer": peer}
        records.append(record)
        if peer not in args.tile_peers:
            record["status"] = "skipped"
            continue
        begin = time.perf_counter()
        try:
            work = fusec_work(fusec, program, inputs, stream) if peer == "fusec" else \
                torch_work(program, inputs, peer == "compile")
            record["error"] = worst_error(program, work(), exact)
            record["first_s"] = round(time.perf_counter() - begin, 2)
            record["status"] = "ok" if record["error"] <= 1 else "wrong"
            if record["status"] == "ok":
                works[peer] = work
        except Exception as error:                     # whatever a peer may raise
            record |= {"status": "failed", "message": f"{type(error).__name__}: {error}"[:200]}
    del exact
    if "fusec" in works:
        records[0]["kernels"] = works["fusec"].kernels
    if timer:
        torch.cuda.empty_cache()
        for peer, times in timer.time_all(works, 3).items():
            record = records[PEERS.index(peer)]
            ordered = sorted(times)
            record |= {"us": round(ordered[len(ordered) // 2], 2), "runs": len(times),
                       "gbps": round(1e-3 * bytes_of(program) / ordered[len(ordered) // 2], 1)}
    return records


def cell_text(record):
    return f"{record['us']:.1f}" if "us" in record else record["status"]


def report(results):
    """A Markdown table: µs, fusec over the fastest other, launches."""
    print("| program | " + " | ".join(PEERS) + " | of the fastest other | GB/s | kernels |")
    print("|---" + "|---:" * (len(PEERS) + 3) + "|")
    behind = []
    for name, records in results.items():
        ours, others = records[0], [r["us"] for r in records[1:] if "us" in r]
        ratio = min(others) / ours["us"] if others and "us" in ours else None
        if ratio and ratio < 0.99:
            behind.append(name)
        ends = [f"{ratio:.2f}" + (" ◀" if ratio < 0.99 else "") if ratio else "–",
                str(ours.get("gbps", "–")), str(len(ours.get("kernels", [])) or "–")]
        print("| " + " | ".join([name, *map(cell_text, records), *ends]) + " |")
    print(f"\n{len(results)} programs; fusec is behind in {len(behind)}" +
          (": " + ", ".join(behind) if behind else "") + ".")
    for name, records in results.items():
        for r in records:
            if r["status"] in ("failed", "wrong"):
                why = r.get("message") or f"{r['error']:.3g} of the tolerance"
                print(f"- {name}, {r['peer']}: {r['status']}, {why}")


def run(args, timer_type):
    """Measures the programs of --tiles, prints the table and returns the exit status; fusec must be right in all."""
    begin = time.monotonic()
    device = torch.device("cuda", 0) if args.device == "cuda" else torch.device("cpu")
    args.tile_peers = [p for p in PEERS if p == "eager" or p in args.peers]
    fusec, timer = None, None
    if "fusec" in args.tile_peers:
        library = Library(os.environ.get("FUSEC_LIBRARY", ROOT / "build/libfusec.so"))
        fusec = library.open_device(None if device.type == "cpu" else 0)
    for peer in PEERS:
        if peer not in args.tile_peers:
            print(f"peers: {peer} skipped, it was not asked for")
    print("peers: Liger, quack and Transformer Engine skipped, they have none of these programs")
    if device.type == "cuda":
        timer = timer_type(device, args.flush, args.budget)
        timer.sample(timer.clear_cache, 2000, 10)      # brings the clocks up
    else:
        print("peers: times skipped, there is no GPU; sizes are cut")
    torch.manual_seed(args.seed if args.seed is not None else time.time_ns() & 0xFFFFFFFF)
    results = {}
    if args.resume and args.json and args.json.exists():
        results = json.loads(args.json.read_text())["results"]
    for name in [name for name in args.tiles or FORMULAS if name not in results]:
        if time.monotonic() - begin > args.limit:
            print(f"peers: {name} and what follows skipped, the limit of {args.limit:.0f} s; --resume goes on with them")
            break
        results[name] = measure_program(read_program(name, timer is None), args, device, fusec, timer)
        print(f"{name}: " + " | ".join(f"{r['peer']} {cell_text(r)}" for r in results[name]), flush=True)
        if args.json:
            args.json.write_text(json.dumps({
                "device": torch.cuda.get_device_name(device) if timer else "CPU",
                "torch": torch.__version__, "results": results}, indent=1) + "\n")
        if timer:
            torch.cuda.empty_cache()
    print()
    report(results)
    print(f"peers: {time.monotonic() - begin:.0f} s")
    return any(records[0]["status"] in ("wrong", "failed") for records in results.values())
