"""docs/reference/operations.md, from the lists of operations, reductions and derivatives."""
import re

import lists

COSTS = {
    "CHEAP": "an instruction or two",
    "DIVIDE": "a division",
    "EXP": "an instruction of the special function unit and a few around it",
    "FUNCTION": "several instructions: a root, a logarithm",
    "SERIES": "dozens of instructions, and registers for them",
}
# Of integers, where it is neither the operation itself nor the same on floats.
INTEGERS = {"FLOOR": "unchanged", "CEIL": "unchanged", "ROUND": "unchanged", "ISNAN": "`false`", "CLAMP": "stay i64",
            "WHERE": "stay i64"}
COMPARISONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
RULES = {"SUM": "{0}u Σ\\|x\\|", "PRODUCT": "{0}u n \\|y\\|", "ENDS": "0"}

HEAD = """\
# Operations and reductions

<!-- Made by docs/generate from src/graph/ops.def and src/graph/derivatives.def: edit those, then `make pages`. -->

This page lists every operation of [the language](language.md) with what it computes, how far its result may be off, its
derivative, and what it costs. y stands for the result.

- **Error**: by how much one operation may be off in f32 if its operands are exact, as a multiple of u |y|, where
  u is 2^-24. In f64 u is 2^-53. 0 means exact. The CPU evaluator adds these errors up along a program. `--verify` allows
  four times their sum, and the rounding of the stored dtype ([trust.md](../explanation/trust.md)).
- **Integers**: what the operation does with integer operands. "stay i64" means i64 arithmetic, which wraps around; "become f32" means
  that they are converted first. "unchanged" means that the result is the operand.
- **Derivative**: the factors by which `fusec grad` multiplies the gradient of y to get those of the operands, in their order.
  "to ..." says which operand gets the gradient. "none" means that the operation has no derivative, because its result is a bool or an integer; "0" means that its derivative is 0. Neither passes a gradient. [Derivatives](language.md#derivatives) says what holds at kinks.
- **Cost**: the class by which the scheduler's model counts the operation: {costs}.

"""


def cell(text):
    return text.replace("|", "\\|")


def code(text):
    return f"`{cell(text)}`"


def table(rows, *heads):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines) + "\n"


def signature(op):
    if op.name == "POW":
        return "`a ** b`, `pow(a, b)`"
    if op.kind == "UNARY":
        return code(op.text + "x")
    if op.kind == "BINARY":
        return code(f"a {op.text} b")
    names = {"where": "c, a, b", "clamp": "x, lo, hi"}.get(op.text, "x" if op.arity == "1" else "a, b")
    return code(f"{op.text}({names})")


def integers(op):
    if op.name in INTEGERS:
        return INTEGERS[op.name]
    if op.name in COMPARISONS:
        return "compared as i64"
    if not op.f32:
        return "bools only"
    return "stay i64" if op.i64 else "become f32"


def derivative(name, known):
    text = known.get(name)
    if text is None or text == "0":
        return "none" if text is None else "0"
    formula, _, rest = re.sub(r": language\.md$", ": [language.md](language.md#derivatives)", text).partition(";")
    first, colon, more = formula.partition(": ")
    words = re.match(r"(to|the) ", first)
    return (cell(first) if words else ", ".join(code(part) for part in first.split(", "))) + colon + more + \
        (";" + rest if rest else "")


def operation_rows(kind, known):
    for op in lists.operations():
        if op.kind in kind:
            yield [signature(op), cell(op.doc), integers(op), op.error, derivative(op.name, known), op.cost.lower()]


def page():
    known = lists.derivatives()
    costs = "; ".join(f"*{cost.lower()}*, {text}" for cost, text in COSTS.items())
    assert {op.cost for op in lists.operations()} == set(COSTS), "docs/generate/operations.py: a class of cost without words"
    heads = ("operation", "result", "integers", "error", "derivative", "cost")
    text = HEAD.format(costs=costs)
    text += "## Operators\n\nComparisons give a bool. [Operators](language.md#operators) has their precedence.\n\n"
    text += table(operation_rows(("UNARY", "BINARY"), known), *heads)
    text += "## Element functions\n\n" + table(operation_rows(("CALL",), known), *heads)
    text += ("A schedule may compute the exponential of a softmax, `exp(x - max[K](x))`, with a quicker function, and its quotients as "
             "products with the inverse of the sum. [Element functions](language.md#element-functions) has the bounds of both.\n\n")
    text += "## Axes\n\n" + table(
        [[f"`{op.text}(AXIS)`", op.doc] for op in lists.operations() if op.name in ("INDEX", "SIZE")], "operation", "result")
    text += ("## Casts\n\nA cast rounds as a store of that dtype does, and the result goes on in the type that the dtype computes as. "
             "The gradient passes a cast to a float as if nothing were rounded; a cast to an integer passes none.\n\n")
    text += table([[f"`{d.text}(x)`", d.bytes, d.computes_as[5:].lower()] for d in lists.dtypes()],
                  "cast", "bytes of an element", "goes on as")
    text += ("## Reductions\n\n`sum[N](x)` reduces axis N, `sum[M, N](x)` two axes. n is the number of elements that are reduced. "
             "Partial results are f32, or f64 where x is, in an order that the plan fixes. "
             "Terms that repeat the one before may add to the error of a sum ([verdicts](../explanation/testing.md#verdicts)). "
             "Integers stay i64 except in `mean` and `var`.\n\n")
    rows = []
    for r in lists.reductions():
        error = RULES[lists.combiners()[r.combiner].rule].format(r.error)
        error = {"MEAN": f"{r.error}u Σ\\|x\\| / n + 2u \\|y\\|", "VAR": "[language.md](language.md#reductions)"}.get(r.name, error)
        rows.append([f"`{r.text}[N](x)`", r.doc, error, derivative(r.name, known)])
    text += table(rows, "reduction", "result", "error", "derivative")
    text += ("## Library functions\n\n`import \"std\"` has these, written in the language itself (`src/frontend/std.fuse`). Their errors, "
             "derivatives and costs follow from what they are made of.\n\n```\n" + library() + "```\n")
    return text


def library():
    return re.sub(r"^# frontend/std\.fuse:.*?\n\n", "", lists.source("src/frontend/std.fuse"), flags=re.S)
