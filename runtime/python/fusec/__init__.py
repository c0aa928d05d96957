"""fusec: a fusion compiler for normalization graphs, from Python.

    program = fusec.Program.open("layernorm.fuse")
    print(program.cuda(N=4096, arch="sm_90a"))          # the CUDA C of its graph
    y, mean, rstd = program(x, gamma, beta, eps=1e-6)   # on numpy arrays, by the CPU evaluator

`fusec.torch` makes PyTorch operators and modules of programs. It needs torch; this module does not.
"""
from ._library import Error, library
from ._program import Axis, Graph, Declared, Program, Scalar

__version__ = library.c.fusec_version().decode()
__all__ = ["Axis", "Error", "Graph", "Declared", "Program", "Scalar", "__version__", "graph_path"]


def graph_path(name: str) -> str:
    """The path of a program that this package ships: graph_path("layernorm") is .../graphs/layernorm.fuse."""
    from pathlib import Path
    path = Path(__file__).resolve().parent / "graphs" / f"{name}.fuse"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.fuse")))
        raise Error(f"fusec ships no graph {name}; it has {known}")
    return str(path)
