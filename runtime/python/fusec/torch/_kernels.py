"""The kernels of fusec's torch operators: in C (libfusec_torch.so), or, where that cannot be used, by ctypes."""
import ctypes
import os
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Any

import torch

from .._library import Error, Tensor, find
from .._program import Declared, Graph, Plan, Program, describe

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i64": torch.int64, "i32": torch.int32,
          "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

FORWARD, BACKWARD, OUT = 0, 1, 2    # OpKind in kernels/ops.h

_define: Any = None


def load() -> Any:
    """fusec_torch_define of libfusec_torch.so; None without the library, or with FUSEC_TORCH_KERNELS=ctypes."""
    global _define
    if _define is None and os.environ.get("FUSEC_TORCH_KERNELS") != "ctypes":
        try:
            _define = ctypes.CDLL(str(find("libfusec_torch.so"))).fusec_torch_define
        except (ImportError, OSError, AttributeError):
            return None
        _define.restype = c_char_p
        _define.argtypes = [c_char_p, c_void_p, c_size_t, c_int, c_uint64]
    return _define


def register(library: torch.library.Library, name: str, program: Program, graph: Graph, kind: int, wanted: int) -> str:
    """Registers the kernel of an operator for the CPU and CUDA; returns which one: "c" or "ctypes"."""
    define = load()
    if define is not None:
        wrong = define(name.encode(), program.handle, graph.index, kind, wanted)
        if not wrong:
            return "c"
        if not wrong.startswith((b"aoti_torch_", b"libtorch", b"a process")):
            raise Error(wrong.decode())
    for key in ("CPU", "CUDA"):
        library.impl(name, by_ctypes(program, graph, kind, wanted), key)
    return "ctypes"


# ---- by ctypes ----

class Slow:
    """The plans of an operator, by device, outputs wanted and the sizes that are compiled in."""

    def __init__(self, program: Program, graph: Graph) -> None:
        self.program, self.graph = program, graph
        self.plans: list[tuple[int, int, dict[int, int], Plan]] = []

    def plan(self, ordinal: int, wanted: int, sizes: Sequence[int]) -> tuple[Plan, dict[int, int]]:
        for at, outputs, fixed, plan in self.plans:
            if at == ordinal and outputs == wanted and all(sizes[axis] == size for axis, size in fixed.items()):
                return plan, fixed
        names = [t.name for i, t in enumerate(self.graph.outputs) if wanted >> i & 1]
        plan = Plan(self.program, self.graph.name, self.by_name(sizes), ordinal=ordinal,
                    outputs=None if len(names) == len(self.graph.outputs) else names)
        fixed = {i: sizes[i] for i, axis in enumerate(plan.axes()) if axis.is_fixed}
        self.plans.append((ordinal, wanted, fixed, plan))
        return plan, fixed

    def by_name(self, sizes: Sequence[int]) -> dict[str, int]:
        return {axis.name: size for axis, size in zip(self.graph.axes, sizes, strict=True)}


def check_tensors(graph: Graph, tensors: Sequence[torch.Tensor]) -> None:
    """Devices and dtypes, with the messages of kernels/arguments.c."""
    for declared, tensor in zip(graph.inputs, tensors, strict=True):
        if tensor.device != tensors[0].device:
            raise Error(f"{graph.name}: {declared.name} is on another device than {graph.inputs[0].name}",
                        "INVALID_TENSOR")
        if tensor.dtype != DTYPES[declared.dtype]:
            given = NAMES.get(tensor.dtype, str(tensor.dtype))
            other = f': cast it, or make the operator with dtypes={{"{declared.name}": "{given}"}}'
            both = tensor.dtype.is_floating_point and DTYPES[declared.dtype].is_floating_point and given in DTYPES
            raise Error(f"{graph.name}: {declared.name} is {given}, the graph declares {declared.dtype}"
                        f"{other if both else ''}", "INVALID_TENSOR")


def view(tensor: torch.Tensor, declared: Declared) -> Tensor:
    return describe(tensor.data_ptr() or None, declared.dtype, tensor.shape, tensor.stride())


def flat(tensor: torch.Tensor, declared: Declared) -> torch.Tensor:
    """Leading axes as one; a copy where they cannot be one."""
    if tensor.dim() > len(declared.axes):
        tensor = tensor.flatten(0, tensor.dim() - len(declared.axes))
    return tensor


def flat_input(graph: Graph, tensor: torch.Tensor, declared: Declared, copies: bool) -> torch.Tensor:
    """An input as it is launched. A last axis that is not dense is copied, or else refused."""
    tensor = flat(tensor, declared)
    if not tensor.dim() or tensor.shape[-1] <= 1 or tensor.stride(-1) == 1 or not tensor.numel():
        return tensor
    if not copies:
        raise Error(f"{graph.name}: the last axis of {declared.name} has stride {tensor.stride(-1)}, it must be 1: "
                    f"pass {declared.name}.contiguous()", "INVALID_TENSOR")
    return tensor.contiguous()


def by_ctypes(program: Program, graph: Graph, kind: int, wanted_outputs: int) -> Callable[..., Any]:
    slow = Slow(program, graph)
    inputs, scalars = len(graph.inputs), len(graph.scalars)

    def results_of(wanted: int, given: Sequence[torch.Tensor], like: torch.Tensor, sizes: list[int],
                   leading: list[int]) -> list[torch.Tensor | None]:
        if kind == OUT:
            taken = iter(given)
            return [next(taken) if wanted >> i & 1 else None for i in range(len(graph.outputs))]
        return [torch.empty(graph.shape(t, sizes, leading) if wanted >> i & 1 else (0,), dtype=DTYPES[t.dtype],
                            device=like.device) if wanted >> i & 1 or kind == BACKWARD else None
                for i, t in enumerate(graph.outputs)]

    def kernel(*arguments: Any) -> Any:
        tensors = arguments[:inputs]
        wanted = arguments[inputs + scalars] if kind == BACKWARD else wanted_outputs
        check_tensors(graph, tensors)
        sizes, leading = graph.sizes([tensor.shape for tensor in tensors])
        results = results_of(wanted, arguments[inputs + scalars:], tensors[0], sizes, leading)
        if wanted:
            launch(slow, tensors, [float(s) for s in arguments[inputs:inputs + scalars]], results, wanted, sizes,
                   leading, kind)
        if kind == OUT:
            return None
        found = [result for result in results if result is not None]
        return found[0] if len(found) == 1 else tuple(found)

    return kernel


def launch(slow: Slow, tensors: Sequence[torch.Tensor], scalars: list[float],
           results: Sequence[torch.Tensor | None], wanted: int, sizes: list[int], leading: list[int],
           kind: int) -> None:
    graph, device = slow.graph, tensors[0].device
    ordinal = -1 if device.type == "cpu" else device.index
    plan, fixed = slow.plan(ordinal, wanted, sizes)
    if len(leading) > 1 and 0 in fixed:
        raise Error(f"{graph.name}: the graph's first axis, {graph.axes[0].name}, is no axis of rows: tensors have "
                    "the axes that it declares", "INVALID_TENSOR")
    kept = [flat_input(graph, tensor, t, kind == BACKWARD) for tensor, t in zip(tensors, graph.inputs, strict=True)]
    outputs = [describe(None, t.dtype, (), ()) if result is None or not wanted >> i & 1
               else view(flat(result, t), t)
               for i, (result, t) in enumerate(zip(results, graph.outputs, strict=True))]
    size = plan.workspace(slow.by_name(sizes))
    workspace = torch.empty(size, dtype=torch.uint8, device=device) if size else None
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None
    plan.launch([view(tensor, t) for tensor, t in zip(kept, graph.inputs, strict=True)], outputs, scalars,
                workspace.data_ptr() if workspace is not None else None, stream)
