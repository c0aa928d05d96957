"""graph_formula.py: any program as a PyTorch function, from the graph that `fusec FILE --emit=graph` prints.

    function = formula(program_graph, sizes, scalars, torch.float32)     # of a list of tensors: the outputs

Each value has all axes of the graph, in their order, with size 1 where it has none; so names of axes need no thought,
and what broadcasts does so by itself. PyTorch's own words are used, one for each node, as a user would write the
formula: torch.compile sees no more and no less.
"""
import re

import torch

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
         "ge": ">=", "and": "&", "or": "|"}
CALLS = {name: name for name in "abs sqrt rsqrt exp exp2 log log2 log1p expm1 sin cos tanh sigmoid erf floor ceil round sign isnan".split()}
CALLS |= {"not": "logical_not", "neg": "neg"}
REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}
DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
          "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i8": "int8", "u8": "uint8", "bool": "bool"}
LARGEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}         # a cast saturates
NODE = re.compile(r"%(\d+) (\w+)\[(.*?)\](?: (\w+))? = (.*)")
OUTPUT = re.compile(r"\w+ \w+\[(.*?)\] = %(\d+)")


class Unknown(Exception):
    """What has no word in PyTorch, or is not written here."""


def names(text):
    return [name for name in text.split(",") if name]


class Function:
    """The lines of the function, node by node."""

    def __init__(self, sizes, scalars, kind):
        self.axes, self.sizes, self.scalars = list(sizes), sizes, scalars
        self.kind = str(kind)                          # "torch.float32"
        self.parameters, self.lines, self.outputs = [], [], []

    def shape(self, axes):
        return tuple(self.sizes[axis] if axis in axes else 1 for axis in self.axes)

    def parameter(self, name, computed, axes, words):
        if "scalar" in words:
            return repr(int(self.scalars[name]) if computed == "i64" else self.scalars[name])
        self.parameters.append(f"t{len(self.parameters)}")
        kind = "torch.int64" if computed == "i64" else "torch.bool" if computed == "bool" else self.kind
        return f"{self.parameters[-1]}.reshape({self.shape(axes)}).to({kind})"

    def reduction(self, word, operand):
        name, axes = re.fullmatch(r"(\w+)\[(.*)\]", word).groups()
        dims = tuple(self.axes.index(axis) for axis in names(axes))
        if name == "var":
            return f"{operand}.var({dims}, correction=0, keepdim=True)"
        if name not in REDUCTIONS:
            raise Unknown(name)
        return f"{operand}.{REDUCTIONS[name]}({dims}, keepdim=True)"

    def cast(self, dtype, computed, operand):
        if dtype in LARGEST:
            operand = f"{operand}.clamp(-{LARGEST[dtype]}, {LARGEST[dtype]})"
        own = "torch.int64" if computed == "i64" else self.kind
        return f"{operand}.to(torch.{DTYPES[dtype]}).to({own})"

    def value(self, name, computed, axes, what):
        op, *rest = what.split()
        a = ["v" + word[1:] for word in rest if word[0] == "%"]
        if op == "param":
            return self.parameter(name, computed, axes, rest)
        if op == "const":
            return f"float('{rest[0]}')" if rest[0].strip("-") in ("inf", "nan") else rest[0]
        if op == "size":
            return str(self.sizes[rest[0]])
        if op == "index":
            return f"torch.arange({self.sizes[rest[0]]}, device=DEVICE).reshape({self.shape(axes)})"
        if "[" in op:
            return self.reduction(op, a[0])
        if op in INFIX:
            return f"{a[0]} {INFIX[op]} {a[1]}"
        if op in ("max", "min"):
            return f"torch.{op}imum(tensor({a[0]}), tensor({a[1]}))"
        if op == "clamp":
            return f"torch.minimum(torch.maximum(tensor({a[0]}), tensor({a[1]})), tensor({a[2]}))"
        if op == "where":
            return f"torch.where(tensor({a[0]}), {a[1]}, {a[2]})"
        if op == "convert":
            return f"tensor({a[0]}).to({self.kind if computed[0] == 'f' else 'torch.int64'})"
        if op == "cast":
            return self.cast(rest[0], computed, f"tensor({a[0]})")
        if op in CALLS:
            return f"torch.{CALLS[op]}(tensor({a[0]}))"
        raise Unknown(op)

    def add(self, line):
        node = NODE.fullmatch(line)
        if node:
            number, computed, axes, name, what = node.groups()
            self.lines.append(f"v{number} = {self.value(name, computed, names(axes), what)}")
            return
        axes, value = OUTPUT.fullmatch(line).groups()
        full = self.shape(names(axes))
        plain = tuple(self.sizes[axis] for axis in names(axes))
        self.outputs.append(f"tensor(v{value}).expand({full}).reshape({plain})")

    def text(self):
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def function({', '.join(self.parameters)}):\n{body}    return [{', '.join(self.outputs)}]\n"


def formula(graph, sizes, scalars, kind, device="cuda"):
    """The function of a graph's text, of tensors in the order of its inputs; floats are computed as `kind`."""
    made = Function(sizes, scalars, kind)
    for line in graph.strip().split("\n")[1:]:
        made.add(line)

    def tensor(value):
        if torch.is_tensor(value):
            return value
        return torch.full((), value, dtype=kind if isinstance(value, float) else None, device=device)

    space = {"torch": torch, "tensor": tensor, "DEVICE": device}
    exec(made.text(), space)                           # one line for each node
    return space["function"]
