"""te_ctypes.py: what a benchmark needs of Transformer Engine's core library, by ctypes.

    norm = Norm("layernorm", {"x": (pointer, "bf16", (16384, 4096)), ...}, 1e-5, sms)
    norm.set_workspace(pointer)                     # of norm.workspace bytes
    norm.launch(stream)

The library is the one in the wheels transformer_engine_cu12 and _cu13, which need no compiler; the
PyTorch extension, which does, calls it in the same way. Its C API is documented by the headers
transformer_engine.h and normalization.h in transformer_engine/common/include/transformer_engine
of the sources; what is declared here is the same in 2.9 to 2.17. Later versions compile their
norms at run time, and are not taken.

Importing this loads the library, after torch; ImportError or OSError where there is none. What it
refuses it throws as C++ exceptions, which end the process: what is known to be refused has to be
refused before a call.
"""
import ctypes
import importlib
import importlib.util
import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_float, c_int, c_size_t, c_void_p
from importlib import metadata
from pathlib import Path

VERSIONS = (2, 9), (2, 17)
# Of the enums NVTEDType, NVTETensorParam, NVTEScalingMode.
BYTE, DTYPES = 0, {"f32": 4, "f16": 5, "bf16": 6}
ROWWISE_DATA = 0
UNSCALED = 0                                           # NVTE_DELAYED_TENSOR_SCALING
# The widest kernel of each backward pass for any size takes so much of a row; longer rows are cut
# among CTAs, all of which have to be resident.
PIECE = 4096


class Shape(ctypes.Structure):
    _fields_ = [("sizes", c_size_t * 15), ("rank", c_size_t)]


class BasicTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int), ("shape", Shape)]


# name: result, arguments
SIGNATURES = {
    "nvte_create_tensor": (c_void_p, [c_int]),
    "nvte_destroy_tensor": (None, [c_void_p]),
    "nvte_set_tensor_param": (None, [POINTER(c_void_p), c_int, POINTER(BasicTensor)]),
    "nvte_tensor_shape": (Shape, [c_void_p]),
    "nvte_enable_cudnn_norm_fwd": (None, [c_bool]),
    "nvte_enable_cudnn_norm_bwd": (None, [c_bool]),
}
# Each norm: its function and that one's first arguments, all of them tensors but epsilon. The rest
# are the workspace, the number of SMs, whether gamma is off by one, and the stream.
NORMS = {
    "layernorm": ("nvte_layernorm_fwd", "x gamma beta epsilon y mean rstd"),
    "layernorm_bwd": ("nvte_layernorm_bwd", "dy x mean rstd gamma dx dgamma dbeta"),
    "rmsnorm": ("nvte_rmsnorm_fwd", "x gamma epsilon y rstd"),
    "rmsnorm_bwd": ("nvte_rmsnorm_bwd", "dy x rstd gamma dx dgamma"),
}
for _function, _arguments in NORMS.values():
    SIGNATURES[_function] = (None, [c_float if name == "epsilon" else c_void_p
                                    for name in _arguments.split()]
                             + [c_void_p, c_int, c_bool, c_void_p])


# ---- the library ----

def find_version():
    for package in ("transformer_engine_cu13", "transformer_engine_cu12"):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return "unknown"                                   # unpacked by hand


def check_version(version):
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if version != "unknown" and not VERSIONS[0] <= numbers <= VERSIONS[1]:
        raise ImportError(f"transformer_engine {version} has another interface")


def find_in_package(package, pattern):
    """Files below a package, which is not imported: that would demand more than its library."""
    spec = importlib.util.find_spec(package)
    return [path for folder in (spec and spec.submodule_search_locations or [])
            for path in sorted(Path(folder).glob(pattern))]


def open_lazily(path):
    """ctypes resolves all symbols at once, but this library's GEMMs may want a newer cuBLAS than
    torch's, which its norms do not."""
    c = ctypes.CDLL(None)
    c.dlopen.restype, c.dlopen.argtypes = c_void_p, [c_char_p, c_int]
    c.dlerror.restype = c_char_p
    handle = c.dlopen(os.fsencode(path), os.RTLD_LAZY)
    if not handle:
        raise OSError(c.dlerror().decode(errors="replace"))
    return ctypes.CDLL(str(path), handle=handle)


def load():
    paths = find_in_package("transformer_engine", "**/libtransformer_engine.so")
    if not paths:
        raise ImportError("there is no libtransformer_engine.so in a package transformer_engine")
    importlib.import_module("torch")                   # loads CUDA's libraries, to be shared
    # but the parts of cuDNN only when it needs them, from where the loader does not look
    for part in find_in_package("nvidia", "cudnn/lib/libcudnn*.so.*"):
        open_lazily(part)
    library = open_lazily(paths[0])
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.nvte_enable_cudnn_norm_fwd(False)          # whatever the environment says: cuDNN's
    library.nvte_enable_cudnn_norm_bwd(False)          # norms refuse sizes of their own
    return library


__version__ = find_version()
check_version(__version__)
LIBRARY = load()


# ---- a norm ----

class Norm:
    """A call with its arguments. `tensors`: name to (pointer, dtype, shape), dense; the caller
    keeps their memory. Asks at once for the size of the workspace, in bytes."""

    def __init__(self, name, tensors, epsilon, sms):
        self.handles = []
        if tensors["x"][2][1] > PIECE * sms:
            raise ValueError(f"rows of more than {PIECE * sms} elements need more CTAs than fit")
        function, names = NORMS[name]
        self.function = getattr(LIBRARY, function)
        described = {tensor: basic_tensor(pointer, DTYPES[dtype], shape)
                     for tensor, (pointer, dtype, shape) in tensors.items()}
        arguments = [epsilon if argument == "epsilon" else self.create(described[argument])
                     for argument in names.split()]
        empty = self.create(None)
        self.arguments = *arguments, empty, sms, False
        self.launch(None)                              # an empty workspace: no more than a query
        self.workspace = LIBRARY.nvte_tensor_shape(empty).sizes[0]

    def create(self, tensor):
        handle = c_void_p(LIBRARY.nvte_create_tensor(UNSCALED))
        self.handles.append(handle)
        if tensor:
            LIBRARY.nvte_set_tensor_param(byref(handle), ROWWISE_DATA, byref(tensor))
        return handle

    def set_workspace(self, pointer):
        tensor = basic_tensor(pointer, BYTE, (self.workspace,))
        LIBRARY.nvte_set_tensor_param(byref(self.handles[-1]), ROWWISE_DATA, byref(tensor))

    def launch(self, stream):
        self.function(*self.arguments, stream)

    def __del__(self):
        for handle in self.handles:
            LIBRARY.nvte_destroy_tensor(handle)


def basic_tensor(pointer, dtype, shape):
    tensor = BasicTensor(data=pointer, dtype=dtype)
    tensor.shape.rank = len(shape)
    for axis, size in enumerate(shape):
        tensor.shape.sizes[axis] = size
    return tensor
