"""DTensor: how fusec's operators act on sharded tensors.

Rows may be sharded over any axis of the mesh: each device launches its own. Outputs that have the rows are sharded
alike, and sums over rows are partial sums, which torch.distributed adds. Columns may not: a row must be whole.
"""
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

from .._library import Error
from .._program import Declared, Graph, Plan, Program


@lru_cache(maxsize=1024)
def facts(program: Program, graph: Graph, sizes: tuple[int, ...]) -> tuple[list[str], list[int]]:
    """For each axis why it cannot be sharded, "" if it can; for each output the set of axes it is a sum over."""
    by_name = {axis.name: size for axis, size in zip(graph.axes, sizes, strict=True)}
    with Plan(program, graph.name, by_name) as plan:
        reasons = ["" if axis.is_divisible and not axis.is_fixed else
                   "a row is reduced along it, so each device needs whole rows" if axis.is_fixed else
                   "the graph asks for its size, for an index along it, or for more than a sum over it"
                   for axis in plan.axes()]
        return reasons, [tensor.summed for tensor in plan.tensors() if tensor.is_output]


def dimension(declared: Declared, axis: int, lead: int, leading: int) -> int:
    """Where a tensor has an axis, -1: nowhere. The first axis may be several: `lead` is one of them."""
    if axis not in declared.axes:
        return -1
    extra = leading - 1 if declared.axes[0] == 0 else 0
    return lead if axis == 0 else declared.axes.index(axis) + extra


def refuse_columns(graph: Graph, specs: Sequence[Any], reasons: Sequence[str], leading: int) -> None:
    for declared, spec in zip(graph.inputs, specs, strict=True):
        extra = leading - 1 if declared.axes and declared.axes[0] == 0 else 0
        for placement in spec.placements:
            if not isinstance(placement, Shard):
                continue
            axis = declared.axes[max(0, placement.dim - extra)]
            if reasons[axis]:
                raise Error(f"{graph.name}: {declared.name} is sharded along {graph.axes[axis].name}, which is not "
                            f"possible: {reasons[axis]}", "UNSUPPORTED")


def rules(program: Program, graph: Graph, wanted: Sequence[int], masked: bool) -> Callable[..., Any]:
    """For register_sharding: the placements of outputs and inputs that go together."""
    inputs, scalars = len(graph.inputs), len(graph.scalars)

    def placements(*arguments: Any) -> list[tuple[list[Any], list[Any]]]:
        specs = arguments[:inputs]
        mask = arguments[inputs + scalars] if masked else -1
        outputs = range(len(graph.outputs)) if masked else wanted
        sizes, lead = graph.sizes([tuple(spec.shape) for spec in specs])
        reasons, sums = facts(program, graph, tuple(sizes))
        refuse_columns(graph, specs, reasons, len(lead))
        rest: list[Any] = [None] * (scalars + masked)
        found: list[tuple[list[Any], list[Any]]] = [
            ([Replicate()] * len(outputs), [Replicate()] * inputs + rest)]

        def output(number: int, axis: int, at: int) -> Any:
            place = dimension(graph.outputs[number], axis, at, len(lead))
            if mask >= 0 and not mask >> number & 1:
                return Replicate()
            return Shard(place) if place >= 0 else Partial() if sums[number] >> axis & 1 else Replicate()

        for axis, reason in enumerate(reasons):
            for at in range(len(lead) if axis == 0 and not reason else not reason):
                places = [dimension(declared, axis, at, len(lead)) for declared in graph.inputs]
                if max(places) >= 0:
                    found.append(([output(number, axis, at) for number in outputs],
                                  [Shard(place) if place >= 0 else Replicate() for place in places] + rest))
        return found

    return placements


def register(operator: Any, program: Program, graph: Graph, wanted: Sequence[int], masked: bool) -> None:
    register_sharding(operator)(rules(program, graph, wanted, masked))
