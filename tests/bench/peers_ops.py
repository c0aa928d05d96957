"""peers_ops.py: what peers.py measures: the operations and their sizes, the peers' calls of them,
and what counts as right. One formula an operation is the f64 reference and torch.compile's input.
"""
import importlib
import math
import os
import random
import re
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

from fusec_ctypes import Library

try:
    import torch
except ImportError:                                    # a report needs none
    torch = None

ROOT = Path(__file__).resolve().parents[2]
EPS = 1e-5
HEADS = 4608 * 48
DECODE = [(m, n) for n in (4096, 8192) for m in (1, 8, 64)]
GROUPS = {
    "table": [(16384, n) for n in (1024, 2048, 4096, 8192, 12288, 16384)]
             + [(8192, 24576), (8192, 32768), (4096, 65536), (2048, 131072), (1024, 262144)],
    "short": [(4096, n) for n in (1024, 2048, 4096, 8192, 16384)],
    "heads": [(HEADS, 64), (HEADS, 128)],
    "decode": DECODE,
    "busy": DECODE + [(512, 4096)],
    "classes": [(16384, 4096), (16384, 8192), (8192, 32000), (4096, 50304), (4096, 65536),
                (2048, 128256), (2048, 151936), (1024, 256000)],
}
TINY = [(8, 64), (5, 100), (3, 1023), (1, 4096)]
PEERS = ["fusec", "torch", "compile", "liger", "quack", "te"]
MODULES = {"liger": "liger_kernel.ops.layer_norm", "quack": "quack", "te": "te_ctypes"}
PACKAGES = {"triton": "triton", "liger_kernel": "liger-kernel", "quack": "quack-kernels",
            "te_ctypes": "transformer_engine"}

# ---- the operations: tensors in and out, the formula, the groups of sizes ----

Op = namedtuple("Op", "inputs outputs formula groups")
BY_ROW, BY_COLUMN = {"mean", "rstd", "scale", "label", "loss"}, {"gamma", "beta", "dgamma", "dbeta"}
STATISTICS = {"mean", "rstd", "scale", "loss"}         # f32 whatever the op's dtype
QUANTIZED, LARGEST = {"q"}, 448                        # f8e4m3 whatever the op's dtype
CLASSES = {"label"}                                    # i64: a column of each row


def layernorm(x, gamma, beta):
    mean = x.mean(-1, keepdim=True)
    rstd = torch.rsqrt((x - mean).square().mean(-1, keepdim=True) + EPS)
    return (x - mean) * rstd * gamma + beta, mean.squeeze(-1), rstd.squeeze(-1)


def layernorm_bwd(x, dy, gamma, mean, rstd):
    mean, rstd = mean[:, None], rstd[:, None]
    xhat, wdy = (x - mean) * rstd, dy * gamma
    c1, c2 = (wdy * xhat).mean(-1, keepdim=True), wdy.mean(-1, keepdim=True)
    return (wdy - xhat * c1 - c2) * rstd, (dy * xhat).sum(0), dy.sum(0)


def rmsnorm(x, gamma):
    rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)
    return x * rstd * gamma, rstd.squeeze(-1)


def rmsnorm_bwd(x, dy, gamma, rstd):
    rstd = rstd[:, None]
    xhat, wdy = x * rstd, dy * gamma
    c1 = (wdy * xhat).mean(-1, keepdim=True)
    return (wdy - xhat * c1) * rstd, (dy * xhat).sum(0)


def layernorm_residual(x, residual, gamma, beta):
    h = x + residual
    return h, layernorm(h, gamma, beta)[0]


def rmsnorm_residual(x, residual, gamma):
    h = x + residual
    return h, *rmsnorm(h, gamma)


def rmsnorm_quantized(x, gamma):
    y = rmsnorm(x, gamma)[0]
    scale = (y.abs().amax(-1, keepdim=True) / LARGEST).clamp(min=1e-12)
    return y * (1 / scale), scale.squeeze(-1)


def softmax(x):
    return (torch.softmax(x, -1),)


def softmax_bwd(y, dy):
    return (y * (dy - (y * dy).sum(-1, keepdim=True)),)


def cross_entropy(x, label):
    logs = torch.log_softmax(x, -1)
    is_label = torch.arange(x.shape[-1], device=x.device) == label[:, None]
    return logs.exp() - is_label.to(x.dtype), -logs.gather(-1, label[:, None]).squeeze(-1)


OPS = {
    "layernorm_bwd": Op(("x", "dy", "gamma", "mean", "rstd"), ("dx", "dgamma", "dbeta"),
                        layernorm_bwd, ("table", "short", "heads")),
    "rmsnorm_bwd": Op(("x", "dy", "gamma", "rstd"), ("dx", "dgamma"), rmsnorm_bwd,
                      ("table", "short", "heads")),
    "layernorm": Op(("x", "gamma", "beta"), ("y", "mean", "rstd"), layernorm,
                    ("table", "heads", "decode", "busy")),
    "rmsnorm": Op(("x", "gamma"), ("y", "rstd"), rmsnorm, ("table", "heads", "decode", "busy")),
    "softmax": Op(("x",), ("y",), softmax, ("table", "decode", "busy")),
    "softmax_bwd": Op(("y", "dy"), ("dx",), softmax_bwd, ("table",)),
    "layernorm_residual": Op(("x", "residual", "gamma", "beta"), ("h", "y"), layernorm_residual,
                             ("table", "busy")),
    "rmsnorm_residual": Op(("x", "residual", "gamma"), ("h", "y", "rstd"), rmsnorm_residual,
                           ("table", "busy")),
    "rmsnorm_quantized": Op(("x", "gamma"), ("q", "scale"), rmsnorm_quantized, ("table",)),
    "cross_entropy": Op(("x", "label"), ("dx", "loss"), cross_entropy, ("classes",)),
}
# What the memory allows: measured at every size that is visited.
CEILINGS = {
    "add": Op(("x", "dy"), ("y",), lambda x, dy: (x + dy,), ()),
    "copy": Op(("x",), ("y",), lambda x: (x,), ()),
}
ALL_OPS = {**CEILINGS, **OPS}


def shape_of(name, m, n):
    return (m,) if name in BY_ROW else (n,) if name in BY_COLUMN else (m, n)


def dtype_of(name, dtype):
    if name in STATISTICS:
        return torch.float32
    if name in CLASSES:
        return torch.int64
    return torch.float8_e4m3fn if name in QUANTIZED else TORCH_DTYPES[dtype]


def bytes_of(op, m, n, dtype):
    return sum(math.prod(shape_of(name, m, n)) * dtype_of(name, dtype).itemsize
               for name in op.inputs + op.outputs)


def converted(tensor, kind):
    return tensor.to(kind) if tensor.is_floating_point() else tensor


def make_inputs(name, m, n, dtype, device):
    """Random tensors of one cell. x is off zero, so that a mean is no mere rounding error."""
    op, kind = ALL_OPS[name], TORCH_DTYPES[dtype]
    t = SimpleNamespace(n=n, dtype=dtype, kind=kind, device=device)
    for tensor in op.inputs:
        shape = shape_of(tensor, m, n)
        if tensor in ("x", "gamma"):
            setattr(t, tensor, torch.randn(shape, dtype=kind, device=device).add_(0.5))
        elif tensor == "y":
            t.y = torch.softmax(torch.randn(shape, dtype=kind, device=device), -1)
        elif tensor == "label":
            t.label = torch.randint(n, shape, device=device)
        elif tensor not in BY_ROW:
            setattr(t, tensor, torch.randn(shape, dtype=kind, device=device))
    if "mean" in op.inputs:
        variance, t.mean = torch.var_mean(t.x.float(), -1, correction=0)
        t.rstd = torch.rsqrt(variance + EPS)
    elif "rstd" in op.inputs:
        t.rstd = torch.rsqrt(t.x.float().square().mean(-1) + EPS)
    return t


def move_inputs(op, t):
    """Puts the inputs elsewhere, and what is allocated next. What it returns keeps their old places taken."""
    held = [getattr(t, tensor) for tensor in op.inputs]
    for _ in range(8):                                 # of both of the allocator's pools
        held.append(torch.empty(random.randrange(1 << 12, 1 << 22), dtype=torch.uint8,
                                device=t.device))
    for tensor in op.inputs:
        setattr(t, tensor, getattr(t, tensor).clone())
    return held


# ---- the peers: each gives a function that computes the op's outputs, None if it has not the op;
# ---- an output that a peer does not return is None ----

def torch_work(name, t):
    aten, n = torch.ops.aten, [t.n]
    if name == "layernorm":
        return lambda: aten.native_layer_norm(t.x, n, t.gamma, t.beta, EPS)
    if name == "layernorm_bwd":
        mean, rstd = t.mean[:, None], t.rstd[:, None]
        return lambda: aten.native_layer_norm_backward(t.dy, t.x, n, mean, rstd, t.gamma, t.gamma,
                                                       [True, True, True])
    if name == "rmsnorm":
        if hasattr(aten, "_fused_rms_norm"):
            return lambda: aten._fused_rms_norm(t.x, n, t.gamma, EPS)
        return lambda: (torch.nn.functional.rms_norm(t.x, n, t.gamma, EPS), None)
    if name == "rmsnorm_bwd" and hasattr(aten, "_fused_rms_norm_backward"):
        rstd = t.rstd[:, None]
        return lambda: aten._fused_rms_norm_backward(t.dy, t.x, n, rstd, t.gamma, [True, True])
    if name == "layernorm_residual":
        def work():
            h = t.x + t.residual
            return h, aten.native_layer_norm(h, n, t.gamma, t.beta, EPS)[0]
        return work
    if name == "rmsnorm_residual" and hasattr(aten, "_fused_rms_norm"):
        def work():
            h = t.x + t.residual
            return h, aten._fused_rms_norm(h, n, t.gamma, EPS)[0], None    # rstd: of rounded h
        return work
    if name == "softmax":
        return lambda: (aten._softmax(t.x, -1, False),)
    if name == "softmax_bwd":
        return lambda: (aten._softmax_backward_data(t.dy, t.y, -1, t.kind),)
    if name == "cross_entropy":
        def work():
            logs = aten._log_softmax(t.x, -1, False)
            loss, total = aten.nll_loss_forward(logs, t.label, None, 0, -100)
            ones = torch.ones_like(loss)
            grad = aten.nll_loss_backward(ones, logs, t.label, None, 0, -100, total)
            return aten._log_softmax_backward_data(grad, logs, -1, t.kind), loss
        return work
    if name == "add":
        return lambda: (torch.add(t.x, t.dy),)
    if name == "copy":
        return lambda: (t.x.clone(),)
    return None


def compile_work(name, t):
    """Reset first: earlier shapes would lead to dynamic code, then to the recompile limit."""
    if name in CEILINGS:
        return None
    op = ALL_OPS[name]
    kinds = [dtype_of(tensor, t.dtype) for tensor in op.outputs]

    def computed_in_f32(*tensors):
        outputs = op.formula(*[converted(tensor, torch.float32) for tensor in tensors])
        return tuple(output.to(kind) for output, kind in zip(outputs, kinds))

    torch._dynamo.reset()
    # Each process times its own autotuning choices: those kept by workers come from a busy GPU.
    torch._inductor.config.autotune_local_cache = False
    compiled = torch.compile(computed_in_f32, dynamic=False)
    return lambda: compiled(*[getattr(t, tensor) for tensor in op.inputs])    # they may move


def liger_work(name, t):
    from liger_kernel.ops import fused_add_rms_norm, layer_norm, rms_norm, softmax as soft
    from liger_kernel.ops.utils import calculate_settings
    if name in ("rmsnorm_bwd", "softmax_bwd"):
        try:
            block, warps = calculate_settings(t.n)
        except RuntimeError:                           # longer than its largest block
            if name == "rmsnorm_bwd":
                raise
            block, warps = 65536, 32
    if name == "layernorm":
        def work():
            y, _, mean, rstd, *_ = layer_norm.layer_norm_forward(t.x, t.gamma, t.beta, EPS)
            return y, mean, rstd
        return work
    if name == "layernorm_bwd":
        return lambda: layer_norm.layer_norm_backward(t.dy, t.x, t.gamma, t.gamma, t.mean, t.rstd)
    if name == "rmsnorm":
        def work():
            y, _, rstd, *_ = rms_norm.rms_norm_forward(t.x, t.gamma, EPS, 0.0, "llama", None)
            return y, rstd
        return work
    if name == "rmsnorm_bwd":
        mode = rms_norm._CASTING_MODE_LLAMA.value
        return lambda: rms_norm.rms_norm_backward(t.dy, t.x, t.gamma, t.rstd, 0.0, mode, block,
                                                  warps, False, None)
    if name == "rmsnorm_residual":
        def work():
            y, h, *_ = fused_add_rms_norm.fused_add_rms_norm_forward(
                t.x, t.residual, t.gamma, EPS, 0.0, "llama")
            return h, y, None                          # rstd: of rounded h
        return work
    if name == "cross_entropy":
        return liger_cross_entropy(t)
    if name == "softmax":
        return lambda: soft._softmax_forward(t.x)[:1]
    if name == "softmax_bwd":
        return lambda: (soft._softmax_backward(t.dy, t.y, block, warps, t.n > block),)
    return None


def liger_cross_entropy(t):
    """The kernel alone: the function around it makes the host wait for sums of the labels. It
    leaves the gradient where the logits were, so only its first call has the cell's logits."""
    import triton
    from liger_kernel.ops import cross_entropy as ce
    x, m = t.x.clone(), t.x.shape[0]
    block = min(ce.MAX_FUSED_SIZE, triton.next_power_of_2(t.n))
    loss = torch.zeros(m, dtype=t.kind, device=t.device)

    def work():
        ce.liger_cross_entropy_kernel[(m,)](
            X_ptr=x, X_stride=t.n, Y_ptr=t.label, Y_stride=1, weight_ptr=None, loss_ptr=loss,
            z_loss_ptr=None, loss_stride=1, token_accuracy_ptr=None, token_accuracy_stride=0,
            predicted_tokens_ptr=None, predicted_tokens_stride=0, n_cols=t.n, n_non_ignore=m,
            sum_non_ignore_weight=m, ignore_index=-100, weight_sum=0.0, lse_square_scale=0.0,
            label_smoothing=0.0, reduction="none", softcap=None, RETURN_Z_LOSS=False,
            RETURN_TOKEN_ACCURACY=False, RETURN_PREDICTED_TOKENS=False, BLOCK_SIZE=block,
            HAS_WEIGHT=False, HAS_SOFTCAPPING=False, HAS_GRADIENTS=True, num_warps=32)
        return x, loss
    return work


def quack_work(name, t):
    # functions of the package have the names of these modules
    norm, soft = (importlib.import_module(f"quack.{part}") for part in ("rmsnorm", "softmax"))
    if name == "layernorm":                            # takes f32 weights alone
        gamma, beta = t.gamma.float(), t.beta.float()

        def work():
            y, rstd, mean = norm.layernorm_fwd(t.x, gamma, beta, EPS, True, True)
            return y, mean, rstd
        return work
    if name == "layernorm_bwd":
        gamma = t.gamma.float()
        return lambda: norm.layernorm_bwd(t.x, gamma, t.dy, t.rstd, t.mean)
    if name == "rmsnorm":
        def work():
            y, _, rstd = norm.rmsnorm_fwd(t.x, t.gamma, eps=EPS, store_rstd=True)
            return y, rstd
        return work
    if name == "rmsnorm_bwd":
        return lambda: norm.rmsnorm_bwd(t.x, t.gamma, t.dy, t.rstd)[:2]
    if name == "rmsnorm_residual":
        def work():
            y, h, rstd = norm.rmsnorm_fwd(t.x, t.gamma, residual=t.residual, eps=EPS,
                                          store_rstd=True)
            return h, y, rstd
        return work
    if name == "cross_entropy":
        ce = importlib.import_module("quack.cross_entropy")
        dx, loss = (nan_outputs(OPS[name], t.x.shape[0], t)[output] for output in ("dx", "loss"))

        def work():
            ce.cross_entropy_fwd_out(t.x, t.label, None, loss, None, dx, None)
            return dx, loss
        return work
    if name == "softmax":
        return lambda: (soft.softmax_fwd(t.x),)
    if name == "softmax_bwd":
        return lambda: (soft.softmax_bwd(t.dy, t.y),)
    return None


def te_work(name, t):
    import te_ctypes
    if name not in te_ctypes.NORMS:
        return None
    if t.device.type == "cpu":                         # which the library would not survive
        raise ValueError("needs a GPU")
    op, m = OPS[name], t.x.shape[0]
    outputs = nan_outputs(op, m, t)
    tensors = {tensor: getattr(t, tensor) for tensor in op.inputs} | outputs
    norm = te_ctypes.Norm(name, {tensor: (v.data_ptr(), NAMES[v.dtype], v.shape)
                                 for tensor, v in tensors.items()}, EPS,
                          torch.cuda.get_device_properties(t.device).multi_processor_count)
    workspace = torch.empty(norm.workspace, dtype=torch.uint8, device=t.device)
    norm.set_workspace(workspace.data_ptr())
    stream = torch.cuda.current_stream().cuda_stream

    def work():
        norm.launch(stream)
        return tuple(outputs.values())
    work.keep = tensors, workspace                     # the call has their addresses alone
    return work


def nan_outputs(op, m, t):
    """Outputs of a peer that allocates none, in the op's order; what it leaves out remains NaN."""
    return {tensor: torch.full(shape_of(tensor, m, t.n), math.nan, device=t.device,
                               dtype=dtype_of(tensor, t.dtype)) for tensor in op.outputs}


class Fusec:
    """The examples as they are in the repository, `bf16` in their text replaced by the dtype."""

    def __init__(self, device):
        self.binding = Library(os.environ.get("FUSEC_LIBRARY", ROOT / "build/libfusec.so"))
        self.device = self.binding.open_device(None if device.type == "cpu" else 0)

    def work(self, name, t):
        if name in CEILINGS:
            return None
        op, path = OPS[name], ROOT / f"examples/{name}.fuse"
        m = (t.y if "y" in op.inputs else t.x).shape[0]
        text = re.sub(r"\bbf16\b", t.dtype, path.read_text())
        plan = self.device.plan(text, str(path), {"M": m, "N": t.n})
        outputs = nan_outputs(op, m, t)
        tensors = {tensor: getattr(t, tensor) for tensor in op.inputs} | outputs
        workspace = torch.empty(plan.workspace(), dtype=torch.uint8, device=t.device)
        call = plan.call({tensor: (v.data_ptr(), NAMES[v.dtype], v.shape)
                          for tensor, v in tensors.items()}, workspace.data_ptr() or None)
        stream = torch.cuda.current_stream().cuda_stream if t.device.type == "cuda" else None

        def work():
            call.launch(stream)
            return tuple(outputs.values())
        work.keep = tensors, workspace                 # the call has their addresses alone
        work.kernels = plan.kernels()
        return work


if torch:
    TORCH_DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
    NAMES = {kind: name for name, kind in TORCH_DTYPES.items()} | {torch.float8_e4m3fn: "f8e4m3",
                                                                       torch.int64: "i64"}
    # Tolerance: UNIT (|reference| + its root mean square) + the smallest number stored. Three
    # roundings to bf16 pass; what was not written, or TF32 in f32, does not. Of f8e4m3 one rounding.
    UNIT = {torch.bfloat16: 2.0**-6, torch.float16: 2.0**-9, torch.float32: 2.0**-14,
            torch.float8_e4m3fn: 2.0**-4}

# ---- correctness ----


def compute_reference(op, t):
    """The outputs in f64, row block by row block; sums over the rows are added up."""
    inputs = [getattr(t, tensor) for tensor in op.inputs]
    m = inputs[0].shape[0]
    rows = max(1, (1 << 24) // t.n)
    blocks = {tensor: [] for tensor in op.outputs}
    for begin in range(0, m, rows):
        part = op.formula(*[converted(v if tensor in BY_COLUMN else v[begin:begin + rows],
                                      torch.float64)
                            for tensor, v in zip(op.inputs, inputs)])
        for tensor, value in zip(op.outputs, part):
            if tensor in BY_COLUMN and blocks[tensor]:
                blocks[tensor][0] += value
            else:
                blocks[tensor].append(value)
    return [torch.cat(blocks[tensor]) for tensor in op.outputs]


def worst_error(outputs, reference, n):
    """The largest error as a fraction of the tolerance; NaN if an output has one."""
    worst = []
    for output, exact in zip(outputs, reference, strict=True):
        if output is None:
            continue
        if output.numel() != exact.numel():
            raise ValueError(f"an output has {output.numel()} elements, not {exact.numel()}")
        unit, least = UNIT[output.dtype], torch.finfo(output.dtype).smallest_normal \
            * torch.finfo(output.dtype).eps
        rms = exact.square().mean().sqrt()
        rows = max(1, (1 << 24) // n) if exact.dim() > 1 else exact.numel()
        for got, want in zip(output.reshape(exact.shape).split(rows), exact.split(rows)):
            error = (got.double() - want).abs_()
            worst.append((error / (unit * (want.abs() + rms) + least)).max())
    return torch.stack(worst).max().item()             # max() passes NaN on


def poison(op, m, n, t):
    """Leaves NaN in freed memory of the outputs' sizes, which the peer's allocations get next."""
    held = [torch.full(shape_of(tensor, m, n), math.nan, dtype=dtype_of(tensor, t.dtype),
                       device=t.device) for tensor in op.outputs]
    held.clear()
