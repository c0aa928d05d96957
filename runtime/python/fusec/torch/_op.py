"""fusec.torch.op: a torch operator of a graph.

A call takes the shortest way there is:

    torch.compile, export        the registered operator, with its autograd formula where a gradient is wanted
    an input that wants a grad   an autograd.Function over the operator's kernel
    else                         the operator's kernel

Each graph has up to four operators in torch's namespace fusec: the outputs that are returned, those and what the
backward pass needs, the same with an autograd formula, and the backward pass. Their names end in a hash of the
program, for a name is registered once a process.
"""
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol, cast

import torch
from torch.autograd import forward_ad

from .._library import Error
from .._program import Graph, Program
from . import _kernels
from ._kernels import DTYPES
from ._spec import Backward, Source, dtype_names, fake, join, op_name, schema, to_program, written

_library = torch.library.Library("fusec", "FRAGMENT")
_operators: dict[str, Any] = {}
_keep: list[Program] = []                   # the kernels point to them
# Those for which DTensor has no rules yet: (operator, program, graph, outputs, whether it has a mask).
unsharded: list[tuple[Any, Program, Graph, tuple[int, ...], bool]] = []


class Operator(Protocol):
    """What `op` returns: a function of the graph's inputs and scalars, and these attributes."""
    program: Program
    graph: Graph
    operator: Any               # the torch.ops.fusec overload, with the autograd formula where there is one
    backward_operator: Any      # None without a backward pass
    kernels: str                # "c" or "ctypes"

    def __call__(self, *inputs: torch.Tensor, **named: Any) -> Any: ...


def tags() -> tuple[torch.Tag, ...]:
    return tuple(tag for tag in (torch.Tag.pt2_compliant_tag, getattr(torch.Tag, "needs_exact_strides", None))
                 if tag is not None)


def define(program: Program, graph: Graph, wanted: Sequence[int], kind: int = _kernels.FORWARD) -> tuple[Any, str]:
    """The torch operator for some outputs of a graph, and which kernels it has."""
    name = op_name(program, graph, (kind, tuple(wanted)))
    if name not in _operators:
        mask = kind == _kernels.BACKWARD
        _library.define(schema(name, graph, wanted, mask=mask), tags=tags())
        which = _kernels.register(_library, name, program, graph, kind, sum(1 << i for i in wanted))
        torch.library.register_fake(f"fusec::{name}", fake(graph, wanted, mask), lib=_library)
        _keep.append(program)
        _operators[name] = getattr(torch.ops.fusec, name).default, which
        unsharded.append((_operators[name][0], program, graph, tuple(wanted), mask))
    return cast("tuple[Any, str]", _operators[name])


# ---- the backward pass ----

def picker(places: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Takes the elements at some places of a tuple."""
    if len(places) > 1:
        return cast("Callable[[tuple[Any, ...]], tuple[Any, ...]]", itemgetter(*places))
    return lambda given: tuple(given[place] for place in places)


class Join:
    """A forward graph and its backward pass as torch calls them: which results are saved, returned, wanted."""

    def __init__(self, program: Program, graph: Graph, wanted: Sequence[int], back: Backward) -> None:
        self.program, self.graph, self.back, self.wanted = program, graph, back, tuple(wanted)
        saved = {feed.index for feed in back.feeds if feed.kind == "output"}
        self.computed = tuple(sorted(saved | set(wanted)))
        self.inputs = len(graph.inputs)
        place = {number: i for i, number in enumerate(self.computed)}
        results = self.inputs + len(graph.scalars)
        # Of (inputs, scalars, results): what is saved; of (results): what is returned.
        self.to_save = picker([results + place[feed.index] if feed.kind == "output" else feed.index
                               for feed in back.feeds if feed.kind != "gradient"])
        self.returned = tuple(place[number] for number in wanted)
        self.constant = tuple(i for i in wanted if not back.differentiable[i])
        self.without = [i for i, number in enumerate(back.gradients) if number is None]
        self.forward, self.kernels = define(program, graph, self.computed)
        self.backward, _ = define(back.program, back.graph, range(len(back.graph.outputs)), _kernels.BACKWARD)
        self.several = sum(back.differentiable[i] for i in wanted) > 1
        self.masks: dict[tuple[bool, ...], tuple[int, Any]] = {}
        self.scalars = [s for s in back.scalars]
        self.casts = any(feed.kind == "gradient" and graph.outputs[feed.index].dtype != tensor.dtype
                         for feed, tensor in zip(back.feeds, back.graph.inputs, strict=True))

    def check(self, inputs: Sequence[torch.Tensor]) -> None:
        for i in self.without:
            if inputs[i].requires_grad:
                _kernels.check_tensors(self.graph, inputs)    # another dtype is the likelier mistake
                raise Error(f"{self.graph.name}: {self.graph.inputs[i].name} requires grad, but {self.back.graph.name} "
                            f"has no output d{self.graph.inputs[i].name}")

    def need(self, needs: tuple[bool, ...]) -> tuple[int, Any]:
        """The mask of the gradients that are needed, and what picks them, for the inputs and scalars, from the
        backward pass's results with a None behind."""
        if needs not in self.masks:
            mask, places, behind = 0, [], len(self.back.graph.outputs)
            for number, needed in zip(self.back.gradients, needs, strict=False):
                wanted = needed and number is not None
                mask |= 1 << number if wanted and number is not None else 0
                places.append(number if wanted and number is not None else behind)
            self.masks[needs] = mask, picker(places + [behind] * len(self.graph.scalars))
        return self.masks[needs]

    def order(self, gradients: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
        """Of (saved tensors, gradients): the inputs of the backward pass. `gradients`: the outputs that those are of."""
        place = {number: i for i, number in enumerate(gradients)}
        saved = sum(feed.kind != "gradient" for feed in self.back.feeds)
        kept = iter(range(saved))
        for feed in self.back.feeds:
            if feed.kind == "gradient" and feed.index not in place:
                raise Error(f"{self.graph.name}: {self.graph.outputs[feed.index].name} has a gradient in "
                            f"{self.back.graph.name}: it must be among the outputs that calls return")
        return picker([saved + place[feed.index] if feed.kind == "gradient" else next(kept)
                       for feed in self.back.feeds])

    def cast(self, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Gradients in the dtypes that the backward graph declares."""
        return tuple(tensor.to(DTYPES[t.dtype]) if feed.kind == "gradient" else tensor
                     for tensor, feed, t in zip(tensors, self.back.feeds, self.back.graph.inputs, strict=True))

    def scalar_values(self, scalars: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(scalars[s] if isinstance(s, int) else s for s in self.scalars)

    def select(self, found: tuple[Any, ...]) -> Any:
        if len(self.returned) == 1:
            return found[self.returned[0]]
        return found if len(self.returned) == len(found) else tuple(found[i] for i in self.returned)


def as_tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,) if isinstance(found, torch.Tensor) else tuple(found)


def differentiable(join: Join, again: Callable[..., Any]) -> Any:
    """The autograd.Function of eager calls. `again` is the backward pass for a gradient of a gradient."""
    forward, backward = join.forward._op, join.backward._op
    count, several, constant, casts, save = join.inputs, join.several, join.constant, join.casts, join.to_save
    place = {number: i for i, number in enumerate(join.wanted)}
    constants = [place[i] for i in constant]
    floating = [place[i] for i in join.wanted if i not in constant]
    nothing = (None,) * (count + len(join.graph.scalars))
    order, need, scalar_values, select = join.order(join.wanted), join.need, join.scalar_values, join.select
    grad_enabled = torch.is_grad_enabled

    class Differentiable(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            found = as_tuple(forward(*arguments))
            ctx.save_for_backward(*save(arguments + found))
            ctx.scalars = arguments[count:]
            result = select(found)
            if constants:
                ctx.mark_non_differentiable(*[result[i] for i in constants])
                ctx.set_materialize_grads(False)
            if several:
                ctx.like = [(t.shape, t.dtype, t.device) for t in result]
            return result

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            for i in floating:
                if gradients[i] is not None:
                    break
            else:
                return nothing
            if several and constants:
                gradients = tuple(zeros(like) if given is None and i not in constants else given
                                  for i, (given, like) in enumerate(zip(gradients, ctx.like, strict=True)))
            tensors = order(ctx.saved_tensors + gradients)
            if casts:
                tensors = join.cast(tensors)
            mask, pick = need(ctx.needs_input_grad)
            if grad_enabled():
                return pick(again(tensors, ctx.scalars) + (None,))
            try:
                return pick(as_tuple(backward(*tensors, *scalar_values(ctx.scalars), mask)) + (None,))
            except RuntimeError as why:
                raise explain(why) from None

    Differentiable.__name__ = Differentiable.__qualname__ = join.graph.name
    # What Function.apply calls where no functorch transform is active, without asking again.
    return super(torch.autograd.Function, Differentiable).apply


def zeros(like: Any) -> torch.Tensor:
    shape, dtype, device = like
    return torch.zeros(shape, dtype=dtype, device=device)


def with_formula(join: Join, again: Callable[..., Any]) -> Any:
    """The operator with an autograd formula: for compiled and exported graphs, and functorch."""
    graph, back = join.graph, join.back
    name = op_name(join.program, graph, ("grad", join.computed, back.program.text, back.graph.name))
    if name in _operators:
        return _operators[name][0]
    _library.define(schema(name, graph, join.computed), tags=tags())
    _kernels.register(_library, name, join.program, graph, _kernels.FORWARD, sum(1 << i for i in join.computed))
    torch.library.register_fake(f"fusec::{name}", fake(graph, join.computed), lib=_library)
    place = {number: i for i, number in enumerate(join.computed)}
    constant = [place[i] for i in join.computed if not back.differentiable[i]]
    order = join.order(join.computed)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        found = as_tuple(output)
        ctx.save_for_backward(*join.to_save(tuple(inputs) + found))
        ctx.scalars = inputs[join.inputs:]
        if constant:
            ctx.mark_non_differentiable(*[found[i] for i in constant])

    def backward(ctx: Any, *gradients: Any) -> Any:
        tensors = order(tuple(ctx.saved_tensors) + gradients)
        if join.casts:
            tensors = join.cast(tensors)
        mask, pick = join.need(tuple(ctx.needs_input_grad))
        if torch.is_grad_enabled():
            return pick(again(tensors, ctx.scalars) + (None,))
        return pick(as_tuple(join.backward(*tensors, *join.scalar_values(ctx.scalars), mask)) + (None,))

    torch.library.register_autograd(f"fusec::{name}", backward, setup_context=setup_context, lib=_library)
    _operators[name] = getattr(torch.ops.fusec, name).default, join.kernels
    unsharded.append((_operators[name][0], join.program, graph, join.computed, False))
    return _operators[name][0]


def free_form(join: Join) -> Operator | None:
    """The backward pass that saves nothing, as the library derives it; None where it needs what was not saved."""
    try:
        program = join.program.grad(join.graph.name, save="none")
    except Error:
        return None
    have = {t.name for t, feed in zip(join.back.graph.inputs, join.back.feeds, strict=True) if feed.kind != "output"}
    return op(program) if all(t.name in have for t in program.graph().inputs) else None


def second(join: Join) -> Callable[..., Any]:
    """The backward pass for a gradient of a gradient: an operator with a backward pass of its own, made when it is first
    asked for; where there can be none, one whose gradient is an error."""
    made: list[Operator | None] = []
    hidden = [join.graph.outputs[feed.index].name for feed in join.back.feeds
              if feed.kind == "output" and not (join.back.differentiable[feed.index] and feed.index in join.wanted)]
    every = (1 << len(join.back.graph.outputs)) - 1

    class Once(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*arguments: Any) -> Any:
            return as_tuple(join.backward(*arguments, every))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise Error(f"{join.graph.name}: no gradient of its gradient: " + (
                f"{join.back.graph.name} takes {hidden[0]}, which autograd does not follow; a backward graph of the "
                "inputs alone has one" if hidden else f"{join.back.graph.name} has no backward pass"))

    def again(tensors: Sequence[torch.Tensor], scalars: Sequence[Any]) -> tuple[Any, ...]:
        # A gradient may be a view of any kind; operators without a mask copy none.
        tensors = [tensor.contiguous() if feed.kind == "gradient" else tensor
                   for feed, tensor in zip(join.back.feeds, tensors, strict=True)]
        if not made:
            made.append(free_form(join) if hidden else op(join.back.program, graph=join.back.graph.name))
        twice = made[0]
        if twice is None or twice.backward_operator is None:
            return as_tuple(Once.apply(*tensors, *join.scalar_values(scalars)))    # type: ignore[no-untyped-call]
        known = {t.name: tensor for t, tensor in zip(join.back.graph.inputs, tensors, strict=True)}
        values = {s.name: value for s, value in zip(join.graph.scalars, scalars, strict=True)}
        found = as_tuple(twice(*[known[t.name] for t in twice.graph.inputs],
                               **{s.name: values[s.name] for s in twice.graph.scalars if s.name in values}))
        results = {t.name: result for t, result in zip(twice.graph.outputs, found, strict=True)}
        return tuple(results.get(t.name) for t in join.back.graph.outputs)

    return again


def functional(join: Join, again: Callable[..., Any]) -> Any:
    """The autograd.Function under functorch's transforms, which want the context set up apart; returns all results."""
    constants = [i for i, number in enumerate(join.computed) if not join.back.differentiable[number]]
    order = join.order(join.computed)

    class Functional(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*arguments: Any) -> Any:
            return as_tuple(join.forward(*arguments))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*join.to_save(tuple(inputs) + output))
            ctx.scalars = inputs[join.inputs:]
            if constants:
                ctx.mark_non_differentiable(*[output[i] for i in constants])

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            tensors = order(tuple(ctx.saved_tensors) + gradients)
            pick = join.need((True,) * join.inputs)[1]
            return pick(again(join.cast(tensors) if join.casts else tensors, ctx.scalars) + (None,))

    return Functional.apply


# ---- the front ----

def explain(why: Exception, graph: Graph | None = None, inputs: Sequence[Any] = ()) -> Exception:
    """fusec's own errors as fusec.Error; torch's stay what they are."""
    if graph is not None:
        for declared, given in zip(graph.inputs, inputs, strict=False):
            if not isinstance(given, torch.Tensor):
                return Error(f"{graph.name}: {declared.name} is a {type(given).__name__}, not a tensor")
        if isinstance(why, NotImplementedError) and "jvp" in str(why):    # of an autograd.Function under hessian
            return no_forward_mode(graph)
    return Error(str(why), "INVALID_TENSOR") if type(why) is RuntimeError else why


def autocast(graph: Graph, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Floating inputs in the dtypes that the graph declares."""
    plain = (torch.float32, torch.float16, torch.bfloat16)
    return [tensor.to(want) if tensor.dtype in plain and want in plain and tensor.dtype != want else tensor
            for tensor, want in zip(inputs, [DTYPES[t.dtype] for t in graph.inputs], strict=True)]


def no_forward_mode(graph: Graph) -> Error:
    return Error(f"{graph.name}: forward-mode derivatives (torch.func.jvp, jacfwd, hessian) are not supported; "
                 "torch.func.vjp and jacrev are", "UNSUPPORTED")


def refuse_tangents(graph: Graph, inputs: Sequence[Any]) -> None:
    """No operator has a rule for forward mode: torch would take its derivative for zero."""
    for tensor in inputs:
        if isinstance(tensor, torch.Tensor) and forward_ad.unpack_dual(tensor).tangent is not None:
            raise no_forward_mode(graph)


def shard_rules() -> None:
    from . import _sharding
    while unsharded:
        _sharding.register(*unsharded.pop())


def front(graph: Graph, raw: Any, join: Join | None, ways: tuple[Any, Any, Any] | None,
          refusal: str) -> Callable[..., Any]:
    """The function that is called. `ways`: the operator with a formula, the eager Function, the one for functorch."""
    formula, apply, transformed = ways or (raw, raw, raw)    # those are never asked: the refusal comes first
    kernel, count = raw._op, len(graph.inputs)
    defaults = tuple(scalar.default for scalar in graph.scalars)
    complete = None not in defaults
    scalars = [(scalar.name, scalar.default) for scalar in graph.scalars]
    scalar_names = frozenset(scalar.name for scalar in graph.scalars)
    is_compiling, grad_enabled = torch.compiler.is_compiling, torch.is_grad_enabled
    any_autocast = torch._C._is_any_autocast_enabled
    functorch = torch._C._are_functorch_transforms_active
    modules = sys.modules

    def traced(inputs: Sequence[torch.Tensor], values: Sequence[Any], differentiated: Callable[..., Any]) -> Any:
        if torch.is_autocast_enabled(inputs[0].device.type):
            inputs = autocast(graph, inputs)
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
            if join is None:
                raise Error(refusal)
            join.check(inputs)
            return join.select(as_tuple(differentiated(*inputs, *values)))
        return raw(*inputs, *values)

    def with_grad(inputs: Sequence[torch.Tensor], values: Sequence[Any]) -> Any:
        if join is None:
            raise Error(refusal)
        if join.without:
            join.check(inputs)
        return apply(*inputs, *values)

    def call(*inputs: Any, **named: Any) -> Any:
        values: Sequence[Any] = defaults
        if named or not complete or len(inputs) != count:
            if len(inputs) == count and named.keys() <= scalar_names:
                values = [named.get(name, default) for name, default in scalars]
            if len(inputs) != count or None in values or not named.keys() <= scalar_names:
                inputs, values = graph.bind(inputs, named)    # type: ignore[assignment]
            for value in values:
                if type(value) is not float and type(value) is not int:
                    check_scalars(graph, values)
        if is_compiling():
            return traced(inputs, values, formula)
        if unsharded and "torch.distributed.tensor" in modules:
            shard_rules()
        if forward_ad._current_level >= 0:
            refuse_tangents(graph, inputs)
        try:
            if functorch():
                return traced(inputs, values, transformed)
            if any_autocast():
                inputs = autocast(graph, inputs)    # type: ignore[assignment]
            if grad_enabled():
                for tensor in inputs:
                    if tensor.requires_grad:
                        return with_grad(inputs, values)
            return kernel(*inputs, *values)
        except (RuntimeError, AttributeError, TypeError) as why:
            raise explain(why, graph, inputs) from None

    return call


def check_scalars(graph: Graph, values: Sequence[Any]) -> None:
    """Scalars are numbers, also torch's symbolic ones; of tensors only those that want no gradient."""
    for scalar, value in zip(graph.scalars, values, strict=True):
        if isinstance(value, torch.Tensor) and value.requires_grad:
            raise Error(f"{graph.name}: {scalar.name} requires grad, but it is a scalar, which has no gradient: declare it "
                        f"as a tensor, {scalar.name} : {scalar.dtype}[]")
        if isinstance(value, str) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
            raise Error(f"{graph.name}: {scalar.name} is a {type(value).__name__}, not a number")


def numbers(graph: Graph, outputs: Sequence[str] | None) -> tuple[int, ...]:
    names = [t.name for t in graph.outputs]
    for name in outputs or ():
        if name not in names:
            raise Error(f"{graph.name} has no output {name}; it has {', '.join(names)}")
    if outputs is not None and not outputs:
        raise Error(f"{graph.name}: outputs names no output")
    return tuple(i for i, name in enumerate(names) if outputs is None or name in outputs)


def op(program: Source, backward: Source | None = None, *, graph: str | None = None,
       backward_graph: str | None = None, outputs: Sequence[str] | None = None,
       dtypes: Mapping[Any, str | torch.dtype] | None = None) -> Operator:
    """A torch operator of a graph.

        layer_norm = fusec.torch.op("layernorm.fuse", backward="layernorm_bwd.fuse")
        y, mean, rstd = layer_norm(x, gamma, beta, eps=1e-5)

    program         a path, a text, or a fusec.Program
    backward        the same for the backward pass. Its inputs are inputs and outputs of the forward graph, under
                    their names, and dy for output y; its output dx is the gradient of x. Without this argument op
                    takes the graph NAME_bwd of the same program, or else derives a backward pass. If fusec cannot
                    derive one, a call with an input that requires grad fails
    graph           the graph's name, where the program has several
    backward_graph  that of the backward program
    outputs         the names of the outputs that calls return, in the graph's order; None: all. Others are computed
                    only where the backward pass needs them
    dtypes          other dtypes than those declared: {"bf16": torch.float16} replaces one everywhere,
                    {"gamma": "f32"} changes one tensor and its gradient. A key that the program does not have is an
                    error

    A call takes tensors by position or name and scalars by keyword. All tensors are on one device and have the
    dtypes that the graph declares. Leading axes beyond those declared are more rows. The last axis of a tensor must
    have stride 1. Other views are read in place, but if the leading axes cannot be merged into one with a single
    stride, the call copies the view. The call returns the output, or a tuple of several. The CPU evaluator computes CPU tensors.
    Raises fusec.Error for a program with errors, tensors that do not fit, or a gradient that does not exist.
    """
    given = dtype_names(dtypes or {})
    forward = to_program(program, given)
    declared = forward.graph(graph or forward_graph(forward))
    wanted = numbers(declared, outputs)
    raw, kernels = define(forward, declared, wanted)
    back, refusal = find_backward(forward, declared, backward, backward_graph, given)
    pair = Join(forward, declared, wanted, back) if back else None
    ways = None
    if pair is not None:
        again = second(pair)
        ways = with_formula(pair, again), differentiable(pair, again), functional(pair, again)
    if "torch.distributed.tensor" in sys.modules:
        shard_rules()
    call = cast(Any, front(declared, raw, pair, ways, refusal))
    call.__name__ = call.__qualname__ = declared.name
    call.__doc__ = describe(declared, wanted, pair.constant if pair else ())
    call.program, call.graph, call.kernels = forward, declared, kernels
    call.operator = ways[0] if ways else raw
    call.backward_operator = pair.backward if pair else None
    return cast(Operator, call)


def forward_graph(program: Program) -> str | None:
    """The only graph that is no backward pass of another; None: there are several."""
    names = [name for name in program.graphs if not (name.endswith("_bwd") and name[:-4] in program.graphs)]
    return names[0] if len(names) == 1 else None


def find_backward(forward: Program, graph: Graph, backward: Source | None, name: str | None,
                  dtypes: Mapping[str, str]) -> tuple[Backward | None, str]:
    """The backward pass, given or derived; else why there is none."""
    if backward is not None:
        program = to_program(backward, dtypes, optional=True)
        return join(graph, program, program.graph(name)), ""
    if f"{graph.name}_bwd" in forward.graphs:
        return join(graph, forward, forward.graph(f"{graph.name}_bwd")), ""
    try:
        program = forward.grad(graph.name)
    except Error as why:
        return None, f"{graph.name}: an input requires grad, and there is no backward pass: {why}"
    return join(graph, program, program.graph()), ""


def describe(graph: Graph, wanted: Sequence[int], constant: Sequence[int]) -> str:
    """The docstring of an operator. `constant`: the outputs that the backward pass does not differentiate."""
    def tensor(t: Any) -> str:
        return f"{t.name} : {written(graph, t)}"

    lines = [f"{graph.name} of fusec, inputs by position or name, scalars by keyword.", ""]
    lines += [f"    {tensor(t)}" for t in graph.inputs]
    lines += [f"    {s.name} : {s.dtype}" + (f" = {s.default:g}" if s.default is not None else "") for s in graph.scalars]
    lines += ["", "Returns " + ", ".join(tensor(graph.outputs[i]) for i in wanted) + "."]
    if without := [graph.outputs[i].name for i in constant if DTYPES[graph.outputs[i].dtype].is_floating_point]:
        lines.append("Without gradient: " + ", ".join(without) + ".")
    return "\n".join(lines)


def kernels_in_c() -> bool:
    """Whether operators run by C kernels here, rather than by ctypes."""
    return _kernels.load() is not None and os.environ.get("FUSEC_TORCH_KERNELS") != "ctypes"
