"""Runs of programs on numpy arrays by the CPU evaluator."""
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._library import Error, Tensor
from ._program import Graph, Declared, Plan, Program, describe, product

NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "f8e4m3": np.uint8,
         "f8e5m2": np.uint8, "i64": np.int64, "i32": np.int32, "i8": np.int8, "u8": np.uint8, "bool": np.bool_}
# Of the package ml_dtypes, whose arrays are taken as they are.
OTHER_NAMES = {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}


def to_bf16(array: NDArray[Any]) -> NDArray[np.uint16]:
    """The bits of f32 values rounded to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(array), np.uint32(0x7FC0), rounded).astype(np.uint16)


def from_bf16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def stored(graph: Graph, tensor: Declared, given: Any) -> NDArray[Any]:
    """The array as the graph's dtype is stored."""
    array = np.asarray(given)
    have, want = array.dtype, np.dtype(NUMPY[tensor.dtype])
    if OTHER_NAMES.get(have.name) == tensor.dtype:
        return array.view(want)
    if tensor.dtype == "bf16" and have == np.float32:
        return to_bf16(array)
    if tensor.dtype == "bf16" or have != want:
        takes = "float32 or bfloat16" if tensor.dtype == "bf16" else want.name
        raise Error(f"{graph.name}: {tensor.name} is {tensor.dtype} and takes an array of {takes}, not {have.name}",
                    "INVALID_TENSOR")
    return array


def collapse(array: NDArray[Any], rank: int) -> NDArray[Any]:
    """The leading axes as one, and the last axis dense."""
    if array.ndim > rank:
        extra = array.ndim - rank
        array = array.reshape(product(array.shape[:extra + 1]), *array.shape[extra + 1:])
    dense = array.ndim == 0 or array.shape[-1] <= 1 or array.strides[-1] == array.itemsize
    even = all(stride % array.itemsize == 0 for stride in array.strides)
    return array if dense and even else np.ascontiguousarray(array)


def described(array: NDArray[Any], dtype: str) -> Tensor:
    return describe(array.ctypes.data if array.size else None, dtype, array.shape,
                    [stride // array.itemsize for stride in array.strides])


def run(program: Program, graph: Graph, arguments: Sequence[Any], named: Mapping[str, Any],
        wanted: Sequence[str] | None) -> Any:
    inputs, scalars = graph.bind(arguments, named)
    arrays = [stored(graph, tensor, given) for tensor, given in zip(graph.inputs, inputs, strict=True)]
    sizes, leading = graph.sizes([array.shape for array in arrays])
    arrays = [collapse(array, len(tensor.axes)) for tensor, array in zip(graph.inputs, arrays, strict=True)]
    by_name = {axis.name: size for axis, size in zip(graph.axes, sizes, strict=True)}
    if len(leading) > 1:
        check_leading(program, graph, by_name)
    results: dict[str, NDArray[Any]] = {
        tensor.name: np.empty([sizes[axis] for axis in tensor.axes], NUMPY[tensor.dtype]) for tensor in graph.outputs}
    with Plan(program, graph.name, by_name, outputs=wanted) as plan:
        plan.launch([described(array, t.dtype) for array, t in zip(arrays, graph.inputs, strict=True)],
                    [described(results[t.name], t.dtype) for t in graph.outputs], [float(s) for s in scalars])
    found = [results[t.name].reshape(graph.shape(t, sizes, leading)) for t in graph.outputs
             if wanted is None or t.name in wanted]
    found = [from_bf16(array) if t.dtype == "bf16" else array
             for array, t in zip(found, [t for t in graph.outputs if wanted is None or t.name in wanted], strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def check_leading(program: Program, graph: Graph, sizes: Mapping[str, int]) -> None:
    """Leading axes stand for rows: the first axis must not be one of the columns."""
    with Plan(program, graph.name, sizes) as plan:
        if plan.axes()[0].is_fixed:
            raise Error(f"{graph.name}: its first axis, {graph.axes[0].name}, is no axis of rows: tensors have the "
                        "axes that the graph declares", "INVALID_TENSOR")
