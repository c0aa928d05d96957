"""How a backward graph fits a forward one, by their names, and what torch is told of both."""
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .._library import Error
from .._program import Declared, Graph, Program, count_axes
from ._kernels import DTYPES, NAMES, check_tensors

Source = str | os.PathLike[str] | Program


def dtype_names(dtypes: Mapping[Any, Any]) -> dict[str, str]:
    """The argument `dtypes` of op with fusec's names for torch's dtypes."""
    for dtype in (*dtypes, *dtypes.values()):
        if not isinstance(dtype, str) and dtype not in NAMES:
            raise Error(f"dtypes: {dtype} is no dtype of fusec; there are {', '.join(DTYPES)}")
    return {key if isinstance(key, str) else NAMES[key]: value if isinstance(value, str) else NAMES[value]
            for key, value in dtypes.items()}


def to_program(source: Source, names: Mapping[str, str], optional: bool = False) -> Program:
    """A program from a path, a text (it has a brace), or a program; with other dtypes.

    `optional`: keys that the program does not have are passed over, and dx follows x."""
    if isinstance(source, Program):
        program = source
    elif isinstance(source, str) and "{" in source:
        program = Program(source)
    else:
        program = Program.open(source)
    if optional:
        declared = {t.name for graph in program.declared for t in (*graph.inputs, *graph.outputs)}
        tensors = {name: dtype for name, dtype in names.items() if name not in DTYPES}
        gradients = {f"d{name}": dtype for name, dtype in tensors.items()}
        present = set(re.findall(r"\w+", re.sub(r"#[^\n]*", "", program.text)))
        names = {name: dtype for name, dtype in names.items() if name in DTYPES and name in present} | {
            name: dtype for name, dtype in (gradients | tensors).items() if name in declared}
    return program.with_dtypes(names)


@dataclass(frozen=True)
class Feed:
    """Where an input of the backward graph comes from: "input", "output" or "gradient" (of an output)."""
    kind: str
    index: int


@dataclass(frozen=True)
class Backward:
    """A backward graph, joined to the forward graph by the names of its tensors."""
    program: Program
    graph: Graph
    feeds: tuple[Feed, ...]
    scalars: tuple[int | float, ...]     # an int: the number of the forward's scalar; a float: a value
    gradients: tuple[int | None, ...]    # for each input of the forward graph the output that is its gradient
    differentiable: tuple[bool, ...]     # whether an output of the forward graph has a gradient


def join(forward: Graph, program: Program, graph: Graph) -> Backward:
    inputs = {t.name: i for i, t in enumerate(forward.inputs)}
    outputs = {t.name: i for i, t in enumerate(forward.outputs)}
    feeds = []
    for tensor in graph.inputs:
        if tensor.name in inputs:
            feeds.append(Feed("input", inputs[tensor.name]))
        elif tensor.name in outputs:
            feeds.append(Feed("output", outputs[tensor.name]))
        elif (of := differentiated(tensor.name, outputs)) is not None:
            feeds.append(Feed("gradient", outputs[of]))
        else:
            raise Error(f"{graph.name}: {tensor.name} is neither an input nor an output of {forward.name}, nor the "
                        "gradient of an output")
    for feed, tensor in zip(feeds, graph.inputs, strict=True):
        check_alike(forward, graph, feed, tensor)
    gradients: list[int | None] = [None] * len(forward.inputs)
    for number, tensor in enumerate(graph.outputs):
        of = differentiated(tensor.name, inputs)
        number_of = differentiated(tensor.name, {s.name: i for i, s in enumerate(forward.scalars)})
        if of is None and number_of is not None:
            raise Error(f"{graph.name}: {tensor.name} is the gradient of a scalar of {forward.name}, which calls give as a "
                        f"number: declare it as a tensor there, {number_of} : f32[]")
        if of is None:
            raise Error(f"{graph.name}: {tensor.name} is the gradient of no input of {forward.name}")
        check_gradient(forward, graph, feeds, forward.inputs[inputs[of]], tensor)
        gradients[inputs[of]] = number
    for twin, other in twins(program, graph).items():
        gradients = [other if number == twin else number for number in gradients]
    given = {feed.index for feed in feeds if feed.kind == "gradient"}
    if not given:
        raise Error(f"{graph.name} takes the gradient of no output of {forward.name}")
    return Backward(program, graph, tuple(feeds), scalars_of(forward, graph), tuple(gradients),
                    tuple(i in given for i in range(len(forward.outputs))))


def differentiated(name: str, known: Mapping[str, int]) -> str | None:
    """What dx, or dx_2 where dx is taken, is the gradient of."""
    match = re.fullmatch(r"d(\w+?)(_\d+)?", name)
    found = [whole for whole in (name[1:], match.group(1)) if whole in known] if match else []
    return found[0] if found else None


def twins(program: Program, graph: Graph) -> dict[int, int]:
    """Outputs that are bound to another one (dresidual = dx): they are not computed, torch gets the other twice."""
    numbers = {t.name: i for i, t in enumerate(graph.outputs)}
    body = re.search(rf"\bgraph\s+{graph.name}\b.*?\{{(.*?)\}}", re.sub(r"#[^\n]*", "", program.text), re.DOTALL)
    found = {}
    for name, value in re.findall(r"^\s*(\w+)\s*=\s*(\w+)\s*$", body.group(1) if body else "", re.MULTILINE):
        if name in numbers and value in numbers:
            mine, other = graph.outputs[numbers[name]], graph.outputs[numbers[value]]
            if (mine.dtype, mine.axes) == (other.dtype, other.axes):
                found[numbers[name]] = numbers[value]
    return found


def check_alike(forward: Graph, graph: Graph, feed: Feed, tensor: Declared) -> None:
    theirs = (forward.inputs if feed.kind == "input" else forward.outputs)[feed.index]
    if feed.kind != "gradient" and theirs.dtype != tensor.dtype:
        raise Error(f"{graph.name}: {tensor.name} is {tensor.dtype}, {forward.name} has it as {theirs.dtype}")
    if len(theirs.axes) != len(tensor.axes):
        of = f"{theirs.name} has" if feed.kind == "gradient" else "it has"
        raise Error(f"{graph.name}: {tensor.name} has {count_axes(len(tensor.axes))}, in {forward.name} {of} "
                    f"{len(theirs.axes)}")


def check_gradient(forward: Graph, graph: Graph, feeds: Sequence[Feed], of: Declared, gradient: Declared) -> None:
    """A gradient has the axes of its tensor, whatever the backward graph calls them, and is of floats. torch casts it
    to the tensor's dtype."""
    if not DTYPES[of.dtype].is_floating_point:
        raise Error(f"{graph.name}: {gradient.name}: {of.name} is {of.dtype} in {forward.name}, which has no gradient")
    known: dict[int, set[int]] = {}    # axes of the backward graph: those of the forward graph
    for feed, tensor in zip(feeds, graph.inputs, strict=True):
        theirs = (forward.inputs if feed.kind == "input" else forward.outputs)[feed.index]
        for mine, other in zip(tensor.axes, theirs.axes, strict=True):
            known.setdefault(mine, set()).add(other)
    fits = len(of.axes) == len(gradient.axes) and all(
        other in known.get(mine, {other}) for mine, other in zip(gradient.axes, of.axes, strict=True))
    if not fits or not DTYPES[gradient.dtype].is_floating_point:
        raise Error(f"{graph.name}: {gradient.name} is {written(graph, gradient)}, but {of.name} is {written(forward, of)} "
                    f"in {forward.name}: a gradient has its tensor's axes and a dtype of floats")


def written(graph: Graph, tensor: Declared) -> str:
    """f32[M, N]"""
    return f"{tensor.dtype}[{', '.join(graph.axes[i].name for i in tensor.axes)}]"


def scalars_of(forward: Graph, graph: Graph) -> tuple[int | float, ...]:
    numbers = {scalar.name: i for i, scalar in enumerate(forward.scalars)}
    found: list[int | float] = []
    for scalar in graph.scalars:
        if scalar.name in numbers:
            found.append(numbers[scalar.name])
        elif scalar.default is not None:
            found.append(float(scalar.default))
        else:
            raise Error(f"{graph.name}: the scalar {scalar.name} is none of {forward.name} and has no default")
    return tuple(found)


# ---- what torch is told ----

TORCH_TYPES = {"f": "float", "i": "int", "u": "int", "b": "bool"}


def scalar_type(dtype: str) -> str:
    return "float" if dtype == "bf16" else TORCH_TYPES[dtype[0]]


def schema(name: str, graph: Graph, wanted: Sequence[int], *, mask: bool = False, out: bool = False) -> str:
    """The operator's signature in torch's notation. Names that torch reserves get an underscore."""
    arguments = [f"Tensor {argument_name(t.name)}" for t in graph.inputs]
    arguments += [f"{scalar_type(s.dtype)} {argument_name(s.name)}" for s in graph.scalars]
    if mask:
        arguments.append("int wanted_outputs")
    if out:
        arguments += [f"Tensor({chr(97 + i)}!) {argument_name('out_' + graph.outputs[number].name)}"
                      for i, number in enumerate(wanted)]
        return f"{name}({', '.join(arguments)}) -> ()"
    results = "Tensor" if len(wanted) == 1 else "(" + ", ".join(["Tensor"] * len(wanted)) + ")"
    return f"{name}({', '.join(arguments)}) -> {results}"


RESERVED = {"self", "out", "from", "in", "is", "def", "return", "lambda", "None", "True", "False", "class", "global", "int",
            "float", "bool", "str", "Tensor", "and", "or", "not", "if", "else", "for", "while", "with", "as", "del", "pass"}


def argument_name(name: str) -> str:
    return f"{name}_" if name in RESERVED else name


def op_name(program: Program, graph: Graph, what: object) -> str:
    """A name that no other program has: an operator is registered once a process."""
    key = repr((program.text, imported_from(program), graph.name, what))
    return f"{graph.name}_{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def imported_from(program: Program) -> str:
    imports = re.findall(r'^\s*import\s+"([^"]+)"', program.text, re.MULTILINE)
    return os.path.abspath(program.name or "") if set(imports) - {"std"} else ""


def fake(graph: Graph, wanted: Sequence[int], mask: bool = False) -> Any:
    """What the operator's results look like, without computing them: for fake and meta tensors."""
    inputs, scalars = len(graph.inputs), len(graph.scalars)

    def shapes_of(*arguments: Any) -> Any:
        tensors = arguments[:inputs]
        check_tensors(graph, tensors)
        sizes, leading = graph.sizes([tensor.shape for tensor in tensors])
        outputs = range(len(graph.outputs)) if mask else wanted
        results = [torch.empty(
            (0,) if mask and not arguments[inputs + scalars] >> i & 1 else graph.shape(graph.outputs[i], sizes, leading),
            dtype=DTYPES[graph.outputs[i].dtype], device=tensors[0].device) for i in outputs]
        return results[0] if len(results) == 1 else tuple(results)

    return shapes_of
