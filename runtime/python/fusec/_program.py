"""Programs: parsed .fuse files, what their graphs declare, their CUDA text, and runs on numpy arrays."""
import ctypes
import os
import re
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_double, c_void_p
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ._library import (DTYPES, AxisInfo, Error, GradOptions, ParseOptions, PlanOptions, ScalarInfo, Size, Tensor, TensorInfo, library)

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Axis:
    """An axis of a graph. `size` is the default size that the program gives, or None."""
    name: str
    size: int | None


@dataclass(frozen=True)
class Declared:
    """An input or output of a graph. `axes` are indices into the graph's axes, outermost first."""
    name: str
    dtype: str
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Scalar:
    """A scalar of a graph, passed by value. `default` is None where a call must give the value."""
    name: str
    dtype: str
    default: float | int | bool | None


@dataclass(frozen=True)
class Graph:
    """What a graph declares. `index` is its place in the program."""
    name: str
    index: int
    axes: tuple[Axis, ...]
    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]
    scalars: tuple[Scalar, ...]

    def bind(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
        """The inputs and scalars of a call, in the order of the declaration. Inputs are given by position or name, scalars
        by name."""
        inputs, scalars = list(arguments[:len(self.inputs)]), []
        left = dict(named)
        declared = [tensor.name for tensor in self.inputs] + [scalar.name for scalar in self.scalars]
        for name in named:
            if name not in declared:
                free = [other for other in declared[len(inputs):] if other not in named]
                near = get_close_matches(name, free, n=1)
                raise Error(f"{self.name} has no input or scalar {name}" +
                            (f"; did you mean {near[0]}?" if near else f"; there are {', '.join(declared)}"))
        if len(arguments) > len(self.inputs):
            raise Error(f"{self.name} takes {len(self.inputs)} tensors ({', '.join(t.name for t in self.inputs)}), "
                        f"not {len(arguments)}" + (", and scalars by keyword" if self.scalars else ""))
        for place, tensor in enumerate(self.inputs):
            if place < len(inputs):
                if tensor.name in left:
                    raise Error(f"{self.name}: {tensor.name} is given twice")
            elif tensor.name in left:
                inputs.append(left.pop(tensor.name))
            else:
                raise Error(f"{self.name}: {tensor.name} is missing")
        for scalar in self.scalars:
            value = left.pop(scalar.name, scalar.default)
            if value is None:
                raise Error(f"{self.name}: the scalar {scalar.name} is missing and has no default")
            scalars.append(value)
        return inputs, scalars

    def sizes(self, shapes: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
        """The size of each axis, and the leading axes that the first one stands for, from the inputs' shapes.

        An input may have more leading axes than the graph declares. They count as rows: together with the axis that
        follows them they are the graph's first axis. For [M, N], x of [2, 3, 64] gives M = 6, N = 64, leading (2, 3):
        ([6, 64], [2, 3]).
        """
        sizes = [-1 if axis.size is None else axis.size for axis in self.axes]
        known: set[int] = set()
        leading: list[int] | None = None
        for tensor, shape in zip(self.inputs, shapes, strict=True):
            extra = len(shape) - len(tensor.axes)
            has_rows = bool(tensor.axes) and tensor.axes[0] == 0
            if extra < 0 or (extra and not has_rows):
                names = ", ".join(self.axes[number].name for number in tensor.axes)
                raise Error(f"{self.name}: {tensor.name} has {count_axes(len(shape))}, the graph declares "
                            f"{len(tensor.axes)}: view it as [{names}]", "INVALID_TENSOR")
            if has_rows:
                lead = list(shape[:extra + 1])
                if leading is not None and lead != leading:
                    raise Error(f"{self.name}: axis {self.axes[0].name} is {times(lead)} in {tensor.name} but "
                                f"{times(leading)} in {self.first_with(0)}", "INVALID_TENSOR")
                leading = lead
                sizes[0] = product(lead)
            for number, size in zip(tensor.axes, shape[extra:], strict=True):
                if number == 0 and has_rows:
                    continue
                if number in known and sizes[number] != size:
                    raise Error(f"{self.name}: axis {self.axes[number].name} is {size} in {tensor.name} but "
                                f"{sizes[number]} in {self.first_with(number)}", "INVALID_TENSOR")
                sizes[number] = size
                known.add(number)
        for number, size in enumerate(sizes):
            if size < 0:
                raise Error(f"{self.name}: no input has axis {self.axes[number].name}, and it has no default size")
        return sizes, leading if leading is not None else sizes[:1]

    def first_with(self, axis: int) -> str:
        return next(tensor.name for tensor in self.inputs if axis in tensor.axes)

    def shape(self, tensor: Declared, sizes: Sequence[int], leading: Sequence[int]) -> tuple[int, ...]:
        """The shape of an output, from what sizes() gives."""
        return tuple(size for number in tensor.axes
                     for size in (leading if number == 0 else (sizes[number],)))


def count_axes(count: int) -> str:
    return f"{count} axis" if count == 1 else f"{count} axes"


def times(numbers: Sequence[int]) -> str:
    """2 x 3"""
    return " x ".join(str(number) for number in numbers)


def product(numbers: Sequence[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def retype(text: str, dtypes: Mapping[str, str]) -> str:
    """A program with other dtypes: each key is a dtype, replaced wherever it stands, or the name of a tensor or
    scalar, whose declaration gets the dtype."""
    for name, dtype in dtypes.items():
        if dtype not in DTYPES:
            raise Error(f"unknown dtype {dtype}; there are {', '.join(DTYPES)}")
        pattern = rf"\b{re.escape(name)}\b" if name in DTYPES else rf"(?<=\W){re.escape(name)}(\s*:\s*)\w+"
        with_ = dtype if name in DTYPES else rf"{name}\g<1>{dtype}"
        parts = re.split(r"(#[^\n]*)", text)
        found = 0
        for i in range(0, len(parts), 2):
            parts[i], count = re.subn(pattern, with_, parts[i])
            found += count
        if not found:
            raise Error(f"the program declares no {name}")
        text = "".join(parts)
    return text


class Program:
    """A parsed and checked .fuse program. It never changes, and needs no GPU.

    `name` is the name of the file in diagnostics. Program(text) can import "std" alone; with imports=True, as in
    Program.open(path), it can import files, relative to `name`. A program with errors raises fusec.Error with the
    compiler's diagnostics.
    """

    def __init__(self, text: str, name: str | None = None, *, imports: bool = False) -> None:
        self._handle, self.text, self.name, self._imports = c_void_p(), text, name, imports
        if text.endswith(".fuse") and len(text.split()) == 1:
            raise Error(f"{text} is a path and no program: Program.open(path) reads a file")
        options = ParseOptions(struct_size=ctypes.sizeof(ParseOptions))
        if imports:
            options.import_function = ctypes.cast(library.c.fusec_import_file, c_void_p)
            options.release = ctypes.cast(library.c.fusec_release_file, c_void_p)
        encoded = text.encode()
        library.check("fusec_program_parse_with", encoded, len(encoded), name.encode() if name else None,
                      byref(options), byref(self._handle))
        self._runs: dict[Any, "Plan"] = {}

    @classmethod
    def open(cls, path: "str | os.PathLike[str]") -> "Program":
        """Reads a program from a file. Its imports are relative to that file."""
        name = os.fspath(path)
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as why:
            raise Error(f"{name}: {why.strerror if isinstance(why, OSError) else 'is no UTF-8 text'}",
                        "IO_ERROR") from None
        return cls(text, name, imports=True)

    def with_dtypes(self, dtypes: Mapping[str, str]) -> "Program":
        """The same program with other dtypes. {"bf16": "f16"} replaces a dtype everywhere, {"gamma": "f32"} changes
        the dtype of one tensor or scalar."""
        return Program(retype(self.text, dtypes), self.name, imports=self._imports) if dtypes else self

    def __repr__(self) -> str:
        return f"<fusec.Program {self.name or '<memory>'}: {', '.join(self.graphs) or 'no graphs'}>"

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and library is not None:
            library.c.fusec_program_destroy(self._handle)

    @property
    def handle(self) -> c_void_p:
        """The fusec_program, for the C API. It lives as long as this object."""
        return self._handle

    @property
    def graphs(self) -> tuple[str, ...]:
        """The names of the graphs, in order."""
        return tuple(graph.name for graph in self.declared)

    @property
    def warnings(self) -> str:
        """The compiler's warnings as text; "" if there are none."""
        return str(library.c.fusec_program_warnings(self._handle).decode())

    @cached_property
    def declared(self) -> tuple[Graph, ...]:
        """What each graph declares: axes, inputs, outputs, scalars."""
        count = library.c.fusec_program_graph_count(self._handle)
        return tuple(self._read_graph(index) for index in range(count))

    def graph(self, name: str | None = None) -> Graph:
        """What the graph of that name declares. A program with one graph needs no name."""
        if name is None and len(self.declared) == 1:
            return self.declared[0]
        for graph in self.declared:
            if graph.name == name:
                return graph
        have = ", ".join(self.graphs) or "none"
        raise Error(f"no graph {name}; the program has {have}" if name else
                    f'the program has the graphs {have}: name one, as graph="{self.graphs[0]}"' if self.graphs else
                    "the program has no graph")

    def _read_graph(self, index: int) -> Graph:
        axes = [Axis(a.name.decode(), None if a.size < 0 else a.size)
                for a in self._ask("fusec_program_axis", index, AxisInfo)]
        tensors = [(t.is_output, Declared(t.name.decode(), DTYPES[t.dtype], tuple(t.axes[:t.rank])))
                   for t in self._ask("fusec_program_tensor", index, TensorInfo)]
        scalars = [Scalar(s.name.decode(), DTYPES[s.dtype], default_of(s))
                   for s in self._ask("fusec_program_scalar", index, ScalarInfo)]
        return Graph(library.c.fusec_program_graph(self._handle, index).decode(), index, tuple(axes),
                     tuple(t for is_output, t in tensors if not is_output),
                     tuple(t for is_output, t in tensors if is_output), tuple(scalars))

    def _ask(self, entry: str, graph: int, kind: type[Any]) -> list[Any]:
        found: list[Any] = []
        while True:
            info = kind(struct_size=ctypes.sizeof(kind))
            if getattr(library.c, entry)(self._handle, graph, len(found), byref(info)):
                return found
            found.append(info)

    # ---- texts ----

    def grad(self, graph: str | None = None, *, of: Sequence[str] | None = None, wrt: Sequence[str] | None = None,
             save: Sequence[str] | str = "auto") -> "Program":
        """The backward pass as a program with one graph, NAME_bwd, as `fusec grad` prints it. Its text is `.text`.

        of      the outputs that are differentiated; None: all of floats but statistics. A statistic is the result of a
                reduction that other outputs are computed from, such as mean or rstd
        wrt     the inputs that get a gradient; None: all tensors of floats
        save    the outputs that the backward pass takes as inputs, or "none"; "auto": those with which it costs least

        Raises fusec.Error for a graph that has no gradient."""
        if not hasattr(library.c, "fusec_program_grad"):
            raise Error("this libfusec derives no gradients", "UNSUPPORTED")
        options = GradOptions(struct_size=ctypes.sizeof(GradOptions))
        options.of, options.wrt = (",".join(names).encode() if names is not None else None for names in (of, wrt))
        options.save = (save if isinstance(save, str) else ",".join(save) or "none").encode()
        backward = c_void_p()
        library.check("fusec_program_grad", self._handle, self.graph(graph).name.encode(), byref(options), byref(backward))
        try:
            return Program(library.c.fusec_program_text(backward).decode())
        finally:
            library.c.fusec_program_destroy(backward)

    def cuda(self, graph: str | None = None, *, arch: str = "sm_90a", outputs: Sequence[str] | None = None,
             schedule: str | None = None, **sizes: int) -> str:
        """The CUDA C of a graph: program.cuda(N=4096, arch="sm_90a"). Column axes need a size, here or in the
        program. Row axes need none. `outputs` are those wanted, None: all. `schedule` is as for `--schedule`."""
        with Plan(self, graph, sizes, arch=arch, outputs=outputs, schedule=schedule) as plan:
            return str(library.c.fusec_plan_text(plan.handle).decode())

    def explain(self, graph: str | None = None, *, arch: str = "sm_90a", outputs: Sequence[str] | None = None,
                schedule: str | None = None, json: bool = False, **sizes: int) -> str:
        """What `fusec explain` says of a graph: axes, reductions, kernels, traffic, and why they were chosen. json=True
        gives it as JSON."""
        with Plan(self, graph, sizes, arch=arch, outputs=outputs, schedule=schedule) as plan:
            length = library.c.fusec_plan_explain(plan.handle, json, None, 0)
            text = ctypes.create_string_buffer(length + 1)
            library.c.fusec_plan_explain(plan.handle, json, text, length + 1)
            return text.value.decode()

    # ---- numpy ----

    def __call__(self, *arguments: Any, graph: str | None = None, outputs: Sequence[str] | None = None,
                 **named: Any) -> Any:
        """Runs a graph on numpy arrays by the CPU evaluator, which computes in f64 and rounds what it stores as declared.

        Inputs are given by position or name, scalars by keyword. Leading axes beyond those that the graph declares
        are more rows. An array has the declared dtype. numpy has no bf16: give float32, which is rounded to nearest
        even, or ml_dtypes.bfloat16. For f8 give the bytes as uint8. Returns the output, or a tuple of several; bf16
        comes back as float32. Raises fusec.Error for a wrong dtype, rank or size.
        """
        try:
            from ._numpy import run
        except ModuleNotFoundError as error:
            if error.name != "numpy":
                raise
            raise Error("a run on arrays needs numpy: pip install numpy", "UNSUPPORTED") from error
        return run(self, self.graph(graph), arguments, named, outputs)


def default_of(scalar: ScalarInfo) -> float | int | bool | None:
    if not scalar.has_default:
        return None
    dtype = DTYPES[scalar.dtype]
    value = scalar.default_value
    return bool(value) if dtype == "bool" else float(value) if dtype[0] in "fb" else int(value)


class _Devices:
    """The devices of this process: the CPU evaluator under -1, GPUs under their number."""

    def __init__(self) -> None:
        self._open: dict[int, c_void_p] = {}

    def get(self, ordinal: int) -> c_void_p:
        if ordinal not in self._open:
            handle = c_void_p()
            if ordinal < 0:
                library.check("fusec_device_cpu", byref(handle))
            else:
                library.check("fusec_device_open", ordinal, byref(handle))
            self._open[ordinal] = handle
        return self._open[ordinal]


devices = _Devices()


class Plan:
    """A graph compiled for sizes; a context manager that destroys it."""

    def __init__(self, program: Program, graph: str | None, sizes: Mapping[str, int], *, ordinal: int = -1,
                 arch: str | None = None, outputs: Sequence[str] | None = None, schedule: str | None = None) -> None:
        self.handle, self.program = c_void_p(), program
        options = PlanOptions(struct_size=ctypes.sizeof(PlanOptions))
        options.outputs = ",".join(outputs).encode() if outputs is not None else None
        options.arch = arch.encode() if arch else None
        options.schedule = schedule.encode() if schedule else None
        name = program.graph(graph).name
        given = (Size * len(sizes))(*[Size(axis.encode(), size) for axis, size in sizes.items()])
        library.check("fusec_plan_create", devices.get(ordinal), program.handle, name.encode(), given, len(sizes),
                      byref(options), byref(self.handle))

    def __enter__(self) -> "Plan":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        library.c.fusec_plan_destroy(self.handle)
        self.handle = c_void_p()

    def axes(self) -> list[AxisInfo]:
        found: list[AxisInfo] = []
        while True:
            info = AxisInfo(struct_size=ctypes.sizeof(AxisInfo))
            if library.c.fusec_plan_axis(self.handle, len(found), byref(info)):
                return found
            found.append(info)

    def tensors(self) -> list[TensorInfo]:
        found: list[TensorInfo] = []
        while True:
            info = TensorInfo(struct_size=ctypes.sizeof(TensorInfo))
            if library.c.fusec_plan_tensor(self.handle, len(found), byref(info)):
                return found
            found.append(info)

    def workspace(self, sizes: Mapping[str, int]) -> int:
        given = (Size * len(sizes))(*[Size(axis.encode(), size) for axis, size in sizes.items()])
        return int(library.c.fusec_plan_workspace(self.handle, given, len(sizes)))

    def launch(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], scalars: Sequence[float],
               workspace: int | None = None, stream: int | None = None) -> None:
        library.check("fusec_plan_launch", self.handle, (Tensor * max(1, len(inputs)))(*inputs),
                      (Tensor * max(1, len(outputs)))(*outputs),
                      (c_double * max(1, len(scalars)))(*scalars) if scalars else None, workspace, stream)


def describe(data: int | None, dtype: str, sizes: Sequence[int], strides: Sequence[int]) -> Tensor:
    """A fusec_tensor; strides in elements."""
    tensor = Tensor(data=data, dtype=DTYPES.index(dtype), rank=len(sizes))
    tensor.sizes[:len(sizes)] = sizes
    tensor.strides[:len(sizes)] = strides
    return tensor


