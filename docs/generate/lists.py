"""The lists of the compiler, read from its sources: operations, derivatives, dtypes, words and operators, the library."""
import re
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

Operation = namedtuple("Operation", "name text arity kind precedence f32 f64 i64 error cost doc")
Reduction = namedtuple("Reduction", "name text combiner error doc")
Combiner = namedtuple("Combiner", "name helper functor identity identity_i64 accumulate i64 wrapping rule")
Dtype = namedtuple("Dtype", "name text safetensors cuda bytes computes_as")


def source(path):
    return (ROOT / path).read_text()


def calls(path, macro):
    """The arguments of each line `macro(...)`, strings without their quotes."""
    for line in re.findall(rf"^{macro}\((.*)\)$", source(path), flags=re.M):
        yield [cut.strip().strip('"') for cut in split(line)]


def split(arguments):
    """Cuts at commas outside strings and parentheses."""
    depth, quoted, start = 0, False, 0
    for i, c in enumerate(arguments):
        quoted ^= c == '"'
        depth += 0 if quoted else (c == "(") - (c == ")")
        if c == "," and not quoted and not depth:
            yield arguments[start:i]
            start = i + 1
    yield arguments[start:]


def operations():
    return [Operation(*a) for a in calls("src/graph/ops.def", "OP") if len(a) == 11]


def reductions():
    return [Reduction(*a) for a in calls("src/graph/ops.def", "REDUCTION") if len(a) == 5]


def combiners():
    return {a[0]: Combiner(*a) for a in calls("src/graph/ops.def", "COMBINER") if len(a) == 9}


def derivatives():
    """The formula in words of each operation that the table has."""
    return {a[0]: a[-1] for macro in ("D1", "D2", "RULE")
            for a in calls("src/graph/derivatives.def", macro) if len(a) > 1}


def dtypes():
    return [Dtype(*a) for a in calls("src/base/dtypes.def", "DTYPE")]


def functions():
    """Names before `(`: the element functions, and what src/frontend/call_hints.c adds to them."""
    special = re.search(r"special_names\[\] = \{(.*?)\}", source("src/frontend/call_hints.c"), re.S).group(1)
    return [o.text for o in operations() if o.kind == "CALL" and o.text.isalnum()] + re.findall(r'"(\w+)"', special)


def words():
    """The reserved words, each with the kind of its token."""
    return dict(re.findall(r'\{"(\w+)", TOKEN_(\w+)\}', source("grammar/fuse.re")))


def operators():
    """The operators that the scanner knows, longest first; no brackets."""
    found = re.findall(r'^ *"(\W+)" +\{ TOKEN\(TOKEN_(\w+)\); \}$', source("grammar/fuse.re"), flags=re.M)
    signs = [text for text, kind in found if not re.match(r"[LR](PAREN|BRACKET|BRACE)$|COMMA|COLON", kind)]
    return sorted(signs, key=lambda s: (-len(s), s))


def library():
    """The functions of `import "std"`."""
    return re.findall(r"^fn (\w+)", source("src/frontend/std.fuse"), flags=re.M)
