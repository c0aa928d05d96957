"""SwiGLU of one tensor that holds gate and up side by side: the gradient is written into the halves of one tensor as
well, where autograd would join two.

A pattern for other programs of this kind: operators whose outputs the caller allocates (`into`), and two operators in
Python around them.
"""
from typing import Any

import torch
from torch import Tensor

from .. import graph_path
from . import _kernels
from ._kernels import NAMES
from ._op import _keep, _library, define, explain, op, tags
from ._spec import Source, op_name, schema, to_program

_made: dict[torch.dtype, Any] = {}


def into(program: Source, graph: str, dtypes: dict[str, str]) -> Any:
    """A torch operator that writes the graph's outputs into tensors behind its inputs and scalars."""
    parsed = to_program(program, dtypes)
    declared = parsed.graph(graph)
    wanted = range(len(declared.outputs))
    name = op_name(parsed, declared, "into")
    _library.define(schema(name, declared, wanted, out=True), tags=tags())
    _kernels.register(_library, name, parsed, declared, _kernels.OUT, (1 << len(declared.outputs)) - 1)
    torch.library.register_fake(f"fusec::{name}", lambda *arguments: None, lib=_library)
    _keep.append(parsed)
    return getattr(torch.ops.fusec, name).default


def make(dtype: torch.dtype) -> Any:
    dtypes = {"bf16": NAMES[dtype]}
    path = graph_path("swiglu")
    forward = op(path, outputs=["y"], dtypes=dtypes)
    backward = into(path, "swiglu_bwd", dtypes)
    raw = define(forward.program, forward.graph, (0,))[0]

    def compute(x: Tensor) -> Tensor:
        gate, up = x.chunk(2, dim=-1)
        return raw._op(gate, up)

    def gradient(x: Tensor, dy: Tensor) -> Tensor:
        gate, up = x.chunk(2, dim=-1)
        dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        halves = dx.chunk(2, dim=-1)
        backward._op(gate, up, dy.contiguous(), *halves)
        return dx

    name = f"swiglu_packed_{NAMES[dtype]}"
    _library.define(f"{name}(Tensor x) -> Tensor", tags=tags())
    _library.define(f"{name}_bwd(Tensor x, Tensor dy) -> Tensor", tags=tags())
    for key in ("CPU", "CUDA"):
        _library.impl(name, compute, key)
        _library.impl(f"{name}_bwd", gradient, key)
    torch.library.register_fake(f"fusec::{name}", lambda x: x.new_empty((*x.shape[:-1], x.shape[-1] // 2)), lib=_library)
    torch.library.register_fake(f"fusec::{name}_bwd", lambda x, dy: x.new_empty(x.shape), lib=_library)
    public, public_gradient = getattr(torch.ops.fusec, name).default, getattr(torch.ops.fusec, f"{name}_bwd").default

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def formula(ctx: Any, dy: Tensor) -> Tensor:
        return public_gradient(*ctx.saved_tensors, dy)

    torch.library.register_autograd(f"fusec::{name}", formula, setup_context=setup_context, lib=_library)

    class SwiGLUPacked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return compute(x)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, dy: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return gradient(x, dy)

    _made[dtype] = public, SwiGLUPacked.apply, compute
    return _made[dtype]


@torch.compiler.assume_constant_result
def prepare(dtype: torch.dtype) -> bool:
    if dtype not in _made:
        make(dtype)
    return True


def swiglu_packed(x: Tensor) -> Tensor:
    """silu(x[..., :N]) * x[..., N:] of x : [..., 2 N], whose last axis is dense."""
    if torch.compiler.is_compiling() or x.dtype not in _made:
        prepare(x.dtype)
    public, apply, compute = _made[x.dtype]
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return public(x)
    try:
        return apply(x) if torch.is_grad_enabled() and x.requires_grad else compute(x)
    except RuntimeError as why:
        raise explain(why) from None
