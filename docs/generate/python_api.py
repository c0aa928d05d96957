"""docs/reference/python.md, from the docstrings and signatures of runtime/python/fusec; no module is imported."""
import ast
import inspect
import re

from lists import ROOT, source

PACKAGE = "runtime/python/fusec"
HEAD = """\
# The Python package

<!-- Made by docs/generate from the docstrings of runtime/python/fusec: edit those, then `make pages`. -->

This page lists the public names of the package with their signatures. [pytorch.md](../howto/pytorch.md) shows how to install
and use it. `fusec` needs numpy only to run programs on arrays, and never torch; `fusec.torch` needs torch 2.7 or later.

Two environment variables choose what the package runs. `FUSEC_LIBRARY` is the path of a libfusec other than the package's own.
`FUSEC_TORCH_KERNELS=ctypes` makes torch operators call libfusec by ctypes instead of through the operator wrappers in C, which is slower.

"""


def module(name):
    return ast.parse(source(f"{PACKAGE}/{name}"))


def public(package):
    """The names of __all__, each with its node, in the order of the imports and definitions."""
    tree = module(f"{package}__init__.py")
    exported, where = [], {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            where.update({alias.name: node.module for alias in node.names})
        elif isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            exported = ast.literal_eval(node.value)
    trees = {name: module(f"{package}{name}.py") for name in dict.fromkeys(where.values())}
    for name, home in [("__init__", tree), *trees.items()]:
        for node in home.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in exported:
                yield f"{package}{name}.py", node
                exported.remove(node.name)
    assert set(exported) <= {"__version__"}, f"docs/generate/python_api.py: {exported} not found"


def signature(node, name):
    """def line without the annotation quotes; `self` and `cls` left out."""
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, )?", "", re.sub(r"'([^']*)'", unquote, arguments))
    arguments = re.sub(r"(?<=[\w\]])=", " = ", arguments)
    result = f" -> {ast.unparse(node.returns)}" if node.returns and name != "__init__" else ""
    return arguments, re.sub(r"'([^']*)'", unquote, result)


def unquote(match):
    """A quoted annotation without its quotes; texts keep theirs."""
    return match.group(1) if re.fullmatch(r"[A-Z][a-z]\w*|str \| os\.PathLike\[str\]", match.group(1)) else f'"{match.group(1)}"'


def call(prefix, node, name):
    """A call as code, broken at commas outside brackets where it is long."""
    arguments, result = signature(node, name)
    line = f"{prefix}({arguments}){result}"
    if len(line) <= 110:
        return line
    parts, depth, start = [], 0, 0
    for i, c in enumerate(arguments):
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth:
            parts.append(arguments[start:i + 1])
            start = i + 2
    return f"{prefix}(\n    " + "\n    ".join([*parts, arguments[start:]]) + f"\n){result}"


def prose(docstring):
    """A docstring as Markdown: code is indented by four, `name   meaning` begins an entry of a list."""
    out, code = [], False
    for line in inspect.cleandoc(docstring).split("\n"):
        named = re.match(r"(\w[\w, ]*?) {2,}(\S.*)", line)
        is_code = line.startswith("    ") and (code or not out or not out[-1])
        if code and not is_code and line:
            out[-1:] = ["```", ""]
            code = False
        if is_code:
            if not code:
                out.append("```python")
            out.append(line[4:])
            code = True
        elif named:
            if out and out[-1] and not out[-1].startswith("- "):
                out.append("")
            out.append(f"- `{named.group(1)}`: {named.group(2)}")
        elif line.startswith(" ") and out and out[-1].startswith("- "):
            out[-1] += " " + line.strip()
        elif line and out and out[-1] and not code and not out[-1].startswith("- "):
            out[-1] += " " + line
        elif line and out and out[-1].startswith("- "):
            out += ["", line]
        else:
            out.append(line)
    return "\n".join(out + ["```"] * code) + "\n"


def fields(node, lines):
    """The annotated attributes of a class, with the comments beside them."""
    text = ""
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_"):
            comment = lines[item.lineno - 1].partition("#")[2].strip()
            default = f" = {ast.unparse(item.value)}" if item.value else ""
            text += f"- `{item.target.id}: {ast.unparse(item.annotation)}{default}`" + (f": {comment}" if comment else "") + "\n"
    return text + "\n" if text else ""


def is_property(node):
    return any(ast.unparse(d) in ("property", "cached_property") for d in node.decorator_list)


def show_class(prefix, path, node):
    own = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
    bases = ", ".join(ast.unparse(b) for b in node.bases if ast.unparse(b) != "Protocol")
    is_data = any("dataclass" in ast.unparse(d) for d in node.decorator_list)
    head = call(f"class {prefix}.{node.name}", own["__init__"], "__init__") if "__init__" in own else \
        f"class {prefix}.{node.name}" + (f"({bases})" if bases else "")
    docstring = ast.get_docstring(node)
    assert docstring, f"docs/generate/python_api.py: {node.name} has no docstring"
    text = f"### {node.name}\n\n```python\n{head}\n```\n\n" + prose(docstring) + "\n"
    if "__init__" in own and bases:
        text += f"A subclass of {', '.join(f'`{b}`' for b in bases.split(', '))}.\n\n"
    listed = fields(node, source(f"{PACKAGE}/{path}").split("\n"))
    text += (("Its fields:\n\n" if is_data else "Its attributes:\n\n") + listed) * bool(listed)
    for method in own.values():
        docstring = ast.get_docstring(method)
        if method.name.startswith("_") and method.name != "__call__" or not (docstring or method.name in ("forward", "__call__")):
            continue
        name = f"{node.name[0].lower()}{node.name[1:]}"
        if is_property(method):
            line = f"{name}.{method.name}" + (f": {ast.unparse(method.returns)}" if method.returns else "")
        elif any(ast.unparse(d) == "classmethod" for d in method.decorator_list):
            line = call(f"{node.name}.{method.name}", method, method.name)
        else:
            line = call(name if method.name == "__call__" else method.name if method.name == "forward" else
                        f"{name}.{method.name}", method, method.name)
        text += f"```python\n{line}\n```\n\n" + (prose(docstring) + "\n" if docstring else "")
    return text


def show(prefix, path, node):
    if isinstance(node, ast.ClassDef):
        return show_class(prefix, path, node)
    docstring = ast.get_docstring(node)
    assert docstring, f"docs/generate/python_api.py: {node.name} has no docstring"
    return f"### {node.name}\n\n```python\n{call(f'{prefix}.{node.name}', node, node.name)}\n```\n\n{prose(docstring)}\n"


def graphs():
    """The programs that the package ships, with the first paragraph of their comments."""
    rows = ""
    for path in sorted((ROOT / PACKAGE / "graphs").glob("*.fuse")):
        comment = re.match(r"(#[^\n]*\n)+", path.read_text()).group()
        words = " ".join(line.lstrip("# ") for line in comment.strip().split("\n")).replace("|", "\\|")
        rows += f"| `{path.stem}` | {words} |\n"
    return "| name | program |\n| --- | --- |\n" + rows


def page():
    found = {title: list(public(folder)) for title, folder in (("fusec", ""), ("fusec.torch", "torch/"))}
    text, seen = HEAD, []
    for title, nodes in found.items():
        links = []
        for _, node in nodes:
            anchor = node.name.lower()
            links.append(f"[{node.name}](#{anchor}{f'-{seen.count(anchor)}' if anchor in seen else ''})")
            seen.append(anchor)
        text += f"- [{title}](#{title.replace('.', '')}): {', '.join(links)}\n"
    text += "- [Programs that the package ships](#programs-that-the-package-ships)\n\n"
    for title, nodes in found.items():
        folder = "" if title == "fusec" else "torch/"
        text += f"## {title}\n\n" + prose(ast.get_docstring(module(f"{folder}__init__.py"))) + "\n"
        if title == "fusec":
            text += "`fusec.__version__` is the version of libfusec.\n\n"
        text += "".join(show(title, path, node) for path, node in nodes)
    return text + ("## Programs that the package ships\n\n`fusec.graph_path(NAME)` is the path of each, to read, copy and change. "
                   "The modules and functions of `fusec.torch` run them.\n\n") + graphs()
