"""libfusec's C API (runtime/fusec.h) by ctypes: the structs, the entries, and their errors as exceptions.

The library lies beside this file in an installed package, in build/ of a checkout; $FUSEC_LIBRARY names another.
"""
import ctypes
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any

# The order of the enum fusec_dtype.
DTYPES = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i8", "u8", "bool")
MAX_RANK = 8


class Error(ValueError, RuntimeError):
    """An error of the library, with its message. `status` is the name of the fusec_status: "INVALID_TENSOR".

    Under torch.compile an error is another RuntimeError with this message in it."""

    __module__ = "fusec"    # as tracebacks show it

    def __init__(self, message: str, status: str = "INVALID_ARGUMENT") -> None:
        super().__init__(message)
        self.status = status


class CError(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", c_char * 1024)]


class Size(ctypes.Structure):
    _fields_ = [("axis", c_char_p), ("size", c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int), ("rank", c_int32),
                ("sizes", c_int64 * MAX_RANK), ("strides", c_int64 * MAX_RANK)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("dtype", c_int), ("rank", c_int32),
                ("axes", c_int32 * MAX_RANK), ("is_output", c_int32), ("is_wanted", c_int32), ("summed", c_uint32)]


class ScalarInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("dtype", c_int), ("has_default", c_int32),
                ("default_value", c_double)]


class AxisInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("size", c_int64), ("is_fixed", c_int32),
                ("is_divisible", c_int32)]


class ParseOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("import_function", c_void_p), ("release", c_void_p), ("data", c_void_p),
                ("max_nodes", c_int64), ("max_bytes", c_int64), ("max_seconds", c_double), ("is_cancelled", c_void_p),
                ("cancel_data", c_void_p)]


class GradOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("of", c_char_p), ("wrt", c_char_p), ("save", c_char_p),
                ("max_nodes", c_int64), ("max_bytes", c_int64), ("max_seconds", c_double), ("is_cancelled", c_void_p),
                ("cancel_data", c_void_p)]


class PlanOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("outputs", c_char_p), ("schedule", c_char_p), ("arch", c_char_p),
                ("in_place", c_int32), ("no_cache", c_int32), ("no_tuning", c_int32), ("no_early_start", c_int32),
                ("max_nodes", c_int64), ("max_bytes", c_int64), ("max_seconds", c_double), ("is_cancelled", c_void_p),
                ("cancel_data", c_void_p)]


# The entries with a status and a fusec_error behind these arguments: calls of `check`.
CHECKED: dict[str, list[Any]] = {
    "fusec_program_parse_with": [c_char_p, c_size_t, c_char_p, POINTER(ParseOptions), POINTER(c_void_p)],
    "fusec_program_open": [c_char_p, POINTER(ParseOptions), POINTER(c_void_p)],
    "fusec_program_grad": [c_void_p, c_char_p, POINTER(GradOptions), POINTER(c_void_p)],
    "fusec_device_open": [c_int, POINTER(c_void_p)],
    "fusec_device_cpu": [POINTER(c_void_p)],
    "fusec_plan_create": [c_void_p, c_void_p, c_char_p, POINTER(Size), c_size_t, POINTER(PlanOptions),
                          POINTER(c_void_p)],
    "fusec_plan_launch": [c_void_p, POINTER(Tensor), POINTER(Tensor), POINTER(c_double), c_void_p, c_void_p],
}
# The others: result, arguments.
PLAIN: dict[str, tuple[Any, list[Any]]] = {
    "fusec_version": (c_char_p, []),
    "fusec_status_name": (c_char_p, [c_int]),
    "fusec_program_destroy": (None, [c_void_p]),
    "fusec_program_graph_count": (c_size_t, [c_void_p]),
    "fusec_program_graph": (c_char_p, [c_void_p, c_size_t]),
    "fusec_program_warnings": (c_char_p, [c_void_p]),
    "fusec_program_text": (c_char_p, [c_void_p]),
    "fusec_program_axis": (c_int, [c_void_p, c_size_t, c_size_t, POINTER(AxisInfo)]),
    "fusec_program_tensor": (c_int, [c_void_p, c_size_t, c_size_t, POINTER(TensorInfo)]),
    "fusec_program_scalar": (c_int, [c_void_p, c_size_t, c_size_t, POINTER(ScalarInfo)]),
    "fusec_plan_axis": (c_int, [c_void_p, c_size_t, POINTER(AxisInfo)]),
    "fusec_plan_tensor": (c_int, [c_void_p, c_size_t, POINTER(TensorInfo)]),
    "fusec_device_destroy": (None, [c_void_p]),
    "fusec_plan_destroy": (None, [c_void_p]),
    "fusec_plan_text": (c_char_p, [c_void_p]),
    "fusec_plan_explain": (c_size_t, [c_void_p, c_int32, c_char_p, c_size_t]),
    "fusec_plan_workspace": (c_size_t, [c_void_p, POINTER(Size), c_size_t]),
}


# What libraries without derivatives lack.
LATER = {"fusec_program_grad", "fusec_program_text"}


def find(name: str) -> Path:
    """The file of a library: beside this package, or in the build of the checkout that it lies in."""
    here = Path(__file__).resolve().parent
    for folder in (here, here.parent.parent.parent / "build"):
        if (folder / name).exists():
            return folder / name
    raise ImportError(f"{name} is neither in {here} nor in the build/ of a checkout: `make` builds it there")


class Library:
    """libfusec, loaded once."""

    def __init__(self) -> None:
        self.path = os.environ.get("FUSEC_LIBRARY") or str(find("libfusec.so.0"))
        self.c = ctypes.CDLL(self.path)
        for name, (result, arguments) in PLAIN.items():
            function: Any = getattr(self.c, name, None)
            if function is None and name in LATER:
                continue
            function.restype, function.argtypes = result, arguments
        for name, arguments in CHECKED.items():
            function = getattr(self.c, name, None)
            if function is None and name in LATER:
                continue
            function.restype, function.argtypes = c_int, [*arguments, POINTER(CError)]

    def check(self, name: str, *arguments: Any) -> None:
        """Calls an entry that takes a fusec_error; raises its message."""
        error = CError()
        status = getattr(self.c, name)(*arguments, byref(error))
        if status:
            raise Error(error.message.decode(errors="replace"), self.status_name(status))

    def status_name(self, status: int) -> str:
        return str(self.c.fusec_status_name(status).decode())


library = Library()
