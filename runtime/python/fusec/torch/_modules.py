"""Modules and functions in place of torch's, each a program of fusec/graphs that can be read, copied and changed.

They compute in f32 (f64 for f64 tensors) and round once, when a result is stored. Weights may have another dtype than
the rows. State dicts are those of torch's modules.
"""
from typing import Any

import torch
from torch import Tensor

from .. import graph_path
from .._library import Error
from .._program import Program
from ._kernels import NAMES
from ._op import Operator, op
from ._packed import swiglu_packed
from ._spec import to_program

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


_made: dict[Any, Operator] = {}


def rows_of(program: Program, dtype: torch.dtype) -> Program:
    """A shipped program with rows of another dtype than bf16. With f64 it computes and returns f64 alone."""
    return to_program(program, {"f32": "f64", "bf16": "f64"} if dtype == torch.float64 else {"bf16": NAMES[dtype]}, True)


@torch.compiler.assume_constant_result    # traced code may ask for an operator that is yet to be made
def make(name: str, outputs: tuple[str, ...], rows: torch.dtype, weights: torch.dtype, others: tuple[str, ...]) -> bool:
    key = name, outputs, rows, weights, others
    if key in _made:
        return True
    program = Program.open(graph_path(name))
    for wrong, tensor in ((rows, program.declared[0].inputs[0].name), (weights, "weight" if "gamma" in others else others[-1:])):
        if wrong not in FLOATS:
            raise Error(f"{''.join(tensor)} is {NAMES.get(wrong, wrong)}: {name} takes f64, f32, f16 or bf16", "INVALID_TENSOR")
    _made[key] = op(rows_of(program, rows), outputs=outputs,
                    dtypes={other: NAMES[weights] for other in others if weights != rows})
    return True


def shipped(name: str, outputs: tuple[str, ...], rows: torch.dtype, weights: torch.dtype | None = None,
            others: tuple[str, ...] = ()) -> Operator:
    """The operator of a shipped graph with rows of one dtype; the tensors `others` may have another."""
    key = name, outputs, rows, rows if weights is None else weights, others
    if torch.compiler.is_compiling() or key not in _made:
        make(*key)
    return _made[key]


def dense(x: Tensor) -> Tensor:
    """With a dense last axis, as programs want it."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def as_rows(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The normalized axes as one, behind at least one axis of rows."""
    if len(shape) == 1 and x.dim() > 1 and x.size(-1) == shape[0]:    # nearly always
        return dense(x)
    if tuple(x.shape[-len(shape):]) != tuple(shape):
        raise Error(f"a norm over {list(shape)} was given rows of {list(x.shape[-len(shape):])}", "INVALID_TENSOR")
    rows = dense(x) if len(shape) == 1 else x.flatten(-len(shape))
    return rows if rows.dim() > 1 else rows[None]


def flat(weight: Tensor) -> Tensor:
    return weight if weight.dim() == 1 else weight.flatten()


# ---- norms ----

class LayerNorm(torch.nn.LayerNorm):
    """In place of torch.nn.LayerNorm. x : [..., *normalized_shape]; the result has its shape and dtype."""

    def forward(self, x: Tensor) -> Tensor:
        rows = as_rows(x, self.normalized_shape)
        weight, bias = self.weight, self.bias    # once: torch searches for them
        if weight is None:
            return shipped("layernorm_plain", ("y",), x.dtype)(rows, eps=self.eps).view_as(x)
        if bias is None:
            y = shipped("layernorm_weight", ("y",), x.dtype, weight.dtype, ("gamma",))(
                rows, flat(weight), eps=self.eps)
        else:
            y = shipped("layernorm", ("y",), x.dtype, weight.dtype, ("gamma", "beta"))(
                rows, flat(weight), flat(bias), eps=self.eps)
        return y.view(x.shape) if len(self.normalized_shape) > 1 or x.dim() == 1 else y


class RMSNorm(torch.nn.RMSNorm):
    """In place of torch.nn.RMSNorm. x : [..., *normalized_shape]; the result has its shape and dtype.

    With zero_centered=True y = x / rms * (1 + weight), and the weight begins at 0."""

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None, *, zero_centered: bool = False) -> None:
        self.zero_centered = zero_centered
        super().__init__(normalized_shape, eps, elementwise_affine, device, dtype)

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            torch.nn.init.constant_(self.weight, 0.0 if self.zero_centered else 1.0)

    def epsilon(self, x: Tensor) -> float:
        return self.eps if self.eps is not None else torch.finfo(x.dtype).eps

    def graph(self) -> str:
        return "rmsnorm_zero" if self.zero_centered else "rmsnorm"

    def forward(self, x: Tensor) -> Tensor:
        rows, weight = as_rows(x, self.normalized_shape), self.weight
        if weight is None:
            return shipped("rmsnorm_plain", ("y",), x.dtype)(rows, eps=self.epsilon(x)).view_as(x)
        y = shipped(self.graph(), ("y",), x.dtype, weight.dtype, ("gamma",))(
            rows, flat(weight), eps=self.epsilon(x))
        return y.view(x.shape) if len(self.normalized_shape) > 1 or x.dim() == 1 else y

    def extra_repr(self) -> str:
        return super().extra_repr() + (", zero_centered=True" if self.zero_centered else "")


def added(module: Any, graph: str, x: Tensor, residual: Tensor, bias: Tensor | None, weights: list[Tensor],
          others: tuple[str, ...], eps: float) -> tuple[Tensor, Tensor]:
    """h and y of a norm behind an addition."""
    shape = module.normalized_shape
    name = f"add_{graph}" if bias is None else f"add_bias_{graph}"
    rows, rest = as_rows(x, shape), as_rows(residual, shape)
    biases = [] if bias is None else [flat(bias)]
    operator = shipped(name, ("h", "y"), x.dtype, weights[0].dtype, others + (("bias",) if biases else ()))
    h, y = operator(rows, rest, *biases, *map(flat, weights), eps=eps)
    return h.view(x.shape), y.view(x.shape)


class AddLayerNorm(LayerNorm):
    """Residual, bias and layer norm in one program: h = x + bias + residual, y = layer_norm(h). Returns h, y.

    x, residual : [..., *normalized_shape]; bias : normalized_shape, or None. h is the residual of the next layer."""

    def forward(self, x: Tensor, residual: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:    # type: ignore[override]
        if self.weight is None or self.bias is None:
            h = x + residual if bias is None else x + bias + residual
            return h, super().forward(h)
        return added(self, "layernorm", x, residual, bias, [self.weight, self.bias], ("gamma", "beta"), self.eps)


class AddRMSNorm(RMSNorm):
    """Residual, bias and RMS norm in one program: h = x + bias + residual, y = rms_norm(h). Returns h, y.

    x, residual : [..., *normalized_shape]; bias : normalized_shape, or None. h is the residual of the next layer."""

    def forward(self, x: Tensor, residual: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor]:    # type: ignore[override]
        if self.weight is None:
            h = x + residual if bias is None else x + bias + residual
            return h, super().forward(h)
        return added(self, self.graph(), x, residual, bias, [self.weight], ("gamma",), self.epsilon(x))


def group_norm(x: Tensor, groups: int, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """In place of torch.nn.functional.group_norm. x : [B, C, ...]; weight, bias : [C]. The result has x's shape."""
    if x.dim() < 2 or x.shape[1] % groups:
        raise Error(f"group_norm: {list(x.shape)} has no axis of channels in {groups} groups", "INVALID_TENSOR")
    image = dense(x.reshape(x.shape[0], groups, x.shape[1] // groups, -1))
    operator = shipped("group_norm", ("y",), x.dtype, weight.dtype, ("gamma", "beta"))
    return operator(image, weight.view(groups, -1), bias.view(groups, -1), eps=eps).view(x.shape)


class GroupNorm(torch.nn.GroupNorm):
    """In place of torch.nn.GroupNorm. It must have weight and bias: without them a call raises fusec.Error."""

    def forward(self, x: Tensor) -> Tensor:
        if self.weight is None:
            raise Error("fusec.torch.GroupNorm needs weight and bias")
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


def ada_layer_norm(x: Tensor, shift: Tensor, scale: Tensor, eps: float = 1e-6) -> Tensor:
    """Adaptive layer norm: (x - mean) * rstd * (1 + scale) + shift. x : [B, T, C]; shift, scale : [B, C]."""
    return shipped("adaln", ("y",), x.dtype, scale.dtype, ("shift", "scale"))(dense(x), dense(shift), dense(scale), eps=eps)


def gate_ada_layer_norm(x: Tensor, residual: Tensor, gate: Tensor, shift: Tensor, scale: Tensor,
                        eps: float = 1e-6) -> tuple[Tensor, Tensor]:
    """h = residual + gate * x, and y, the adaptive layer norm of h. Returns h, y. x, residual : [B, T, C];
    gate, shift, scale : [B, C]."""
    operator = shipped("adaln_gate", ("h", "y"), x.dtype, scale.dtype, ("gate", "shift", "scale"))
    return operator(dense(x), dense(residual), dense(gate), dense(shift), dense(scale), eps=eps)


class AdaLayerNorm(torch.nn.Module):
    """Adaptive layer norm of rows of `width` elements. It has no weights. forward(x, shift, scale) returns y, as
    ada_layer_norm does; with gate and residual it returns h, y, as gate_ada_layer_norm does."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.width, self.eps = width, eps

    def forward(self, x: Tensor, shift: Tensor, scale: Tensor, gate: Tensor | None = None,
                residual: Tensor | None = None) -> Any:
        if gate is None or residual is None:
            return ada_layer_norm(x, shift, scale, self.eps)
        return gate_ada_layer_norm(x, residual, gate, shift, scale, self.eps)


# ---- activations ----

def bias_gelu(x: Tensor, bias: Tensor, approximate: str = "none") -> Tensor:
    """gelu(x + bias). x : [..., N], bias : [N]; approximate: "none" or "tanh"."""
    if approximate not in ("none", "tanh"):
        raise Error(f"bias_gelu: approximate is none or tanh, not {approximate}")
    if x.dim() == 1:
        return bias_gelu(x[None], bias, approximate)[0]
    name = "bias_gelu" if approximate == "none" else "bias_gelu_tanh"
    return shipped(name, ("y",), x.dtype, bias.dtype, ("bias",))(dense(x), dense(bias))


def swiglu(gate: Tensor, up: Tensor | None = None) -> Tensor:
    """silu(gate) * up. gate, up : [..., N]. With one tensor [..., 2 N] its halves are gate and up; they are not copied."""
    if up is None and gate.shape[-1] % 2:
        raise Error(f"swiglu: {gate.shape[-1]} columns have no halves", "INVALID_TENSOR")
    if gate.dim() == 1:
        return swiglu(gate[None], None if up is None else up[None])[0]
    if up is None and type(gate) is Tensor and gate.dtype in FLOATS:
        return swiglu_packed(dense(gate))
    if up is None:
        gate, up = gate.chunk(2, dim=-1)
    return shipped("swiglu", ("y",), gate.dtype)(dense(gate), dense(up))


class BiasGELU(torch.nn.Module):
    """gelu(x + bias) with a bias that it owns, to follow a linear layer without one. x : [..., width]."""

    def __init__(self, width: int, approximate: str = "none", device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.approximate = approximate
        self.bias = torch.nn.Parameter(torch.zeros(width, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return bias_gelu(x, self.bias, self.approximate)


class SwiGLU(torch.nn.Module):
    """silu(gate) * up, as swiglu computes it: of two tensors, or of both in one tensor [..., 2 N]."""

    def forward(self, gate: Tensor, up: Tensor | None = None) -> Tensor:
        return swiglu(gate, up)


# ---- softmax and loss ----

def plain_mask(x: Tensor, mask: Tensor, causal: bool) -> Tensor:
    """A mask [Q, K], [B, Q, K] or [B, 1, Q, K] as [B, Q, K]."""
    batch, _, queries, keys = x.shape
    if mask.dtype != torch.bool or mask.dim() not in (2, 3, 4) or (mask.dim() == 4 and mask.shape[1] != 1):
        raise Error("softmax: a mask is a bool tensor [Q, K], [B, Q, K] or [B, 1, Q, K], true where a key is seen",
                    "INVALID_TENSOR")
    if mask.dim() == 4:
        mask = mask[:, 0]
    if causal:
        mask = mask & torch.ones(queries, keys, dtype=torch.bool, device=mask.device).tril(keys - queries)
    return dense(mask.expand(batch, queries, keys))


def softmax(x: Tensor, scale: float = 1.0, *, causal: bool = False, mask: Tensor | None = None,
            sink: Tensor | None = None) -> Tensor:
    """Softmax of x * scale over the last axis. x : [..., K].

    causal   x : [..., Q, K]. A query sees no later key, and the last query sees all
    mask     a bool tensor [Q, K], [B, Q, K] or [B, 1, Q, K], true where a query sees a key, with x : [B, H, Q, K]. A
             query that sees no key has zeros
    sink     [H], with x : [B, H, Q, K]: an extra learned score per head that only joins the denominator"""
    if (mask is not None or sink is not None) and x.dim() != 4:
        raise Error(f"softmax with a mask or sink takes scores [B, H, Q, K], not {list(x.shape)}", "INVALID_TENSOR")
    if x.dim() == 1 + causal:
        return softmax(x[None], scale, causal=causal)[0]
    kind = "_masked" if mask is not None else "_causal" if causal else ""
    others = [] if mask is None else [plain_mask(x, mask, causal)]
    if sink is not None:
        operator = shipped(f"softmax_sink{kind}", ("y",), x.dtype, sink.dtype, ("sink",))
        return operator(dense(x), *others, dense(sink), scale=scale)
    return shipped(f"softmax{kind}", ("y",), x.dtype)(dense(x), *others, scale=scale)


def cross_entropy(logits: Tensor, target: Tensor, *, ignore_index: int = -100, label_smoothing: float = 0.0,
                  z_loss: float = 0.0, reduction: str = "mean") -> Tensor:
    """Cross entropy of logits [..., V] with class numbers [...], in f32: one number for reduction "mean" and "sum",
    [...] for "none".

    ignore_index     rows with that target have no loss and no gradient, and do not count in the mean
    label_smoothing  the share of the target's weight that is divided evenly among all classes
    z_loss           the loss of a row has this times logsumexp(logits) ** 2 added

    A target that is no class makes the loss NaN."""
    if reduction not in ("mean", "sum", "none"):
        raise Error(f"cross_entropy: reduction is mean, sum or none, not {reduction}")
    if logits.dim() == 1:
        loss = cross_entropy(logits[None], target[None], ignore_index=ignore_index, label_smoothing=label_smoothing,
                             z_loss=z_loss, reduction=reduction)
        return loss[0] if reduction == "none" else loss
    name = "cross_entropy" if reduction == "mean" else "cross_entropy_rows"
    loss = shipped(name, ("loss",), logits.dtype)(
        dense(logits), dense(target), ignore_index=ignore_index, smoothing=label_smoothing, z_loss=z_loss)
    return loss.sum() if reduction == "sum" else loss


class CrossEntropyLoss(torch.nn.Module):
    """In place of torch.nn.CrossEntropyLoss, for logits [..., V], classes last, and targets [...]. It has z_loss too."""

    def __init__(self, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0,
                 z_loss: float = 0.0) -> None:
        super().__init__()
        self.ignore_index, self.reduction = ignore_index, reduction
        self.label_smoothing, self.z_loss = label_smoothing, z_loss

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(logits, target, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
                             z_loss=self.z_loss, reduction=self.reduction)
