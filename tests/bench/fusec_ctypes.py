"""fusec_ctypes.py: what benchmarks and examples/pytorch.py need of libfusec's C API (runtime/fusec.h), by ctypes.

    library = Library("build/libfusec.so")
    device = library.open_device(0)                 # None: the CPU evaluator
    plan = device.plan(text, "ln.fuse", {"M": 16384, "N": 4096})
    call = plan.call({"x": (pointer, "bf16", (16384, 4096)), ...}, workspace)
    call.launch(stream)

Tensors are given by their names in the graph, dense unless a fourth item has their strides in
elements; the caller keeps their memory. A failing call raises FusecError with the library's message.
"""
import ctypes
from ctypes import (POINTER, byref, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t,
                    c_uint64, c_void_p)

# The order of the enum fusec_dtype.
DTYPES = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i8", "u8", "bool")


class FusecError(RuntimeError):
    pass


class Error(ctypes.Structure):
    _fields_ = [("status", c_int), ("message", c_char * 1024)]


class Size(ctypes.Structure):
    _fields_ = [("axis", c_char_p), ("size", c_int64)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int), ("rank", c_int32),
                ("sizes", c_int64 * 8), ("strides", c_int64 * 8)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("dtype", c_int), ("rank", c_int32), ("axes", c_int32 * 8),
                ("is_output", c_int32), ("is_wanted", c_int32)]


class KernelInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("registers", c_int32), ("spill_bytes", c_int32),
                ("stack_bytes", c_int32), ("static_smem_bytes", c_int32), ("threads", c_int32),
                ("cluster", c_int32), ("dynamic_smem_bytes", c_int64), ("grid", c_int64 * 3)]


class DeviceInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char * 128), ("arch", c_char * 16), ("is_cpu", c_int32),
                ("ordinal", c_int32), ("major", c_int32), ("minor", c_int32), ("sms", c_int32),
                ("smem_per_cta", c_int32), ("l2_bytes", c_int32), ("driver_version", c_int32),
                ("memory_bytes", c_uint64)]


# name: result, arguments. Those that return a status take a fusec_error last.
STATUS = c_int
SIGNATURES = {
    "fusec_version": (c_char_p, []),
    "fusec_program_parse": (STATUS, [c_char_p, c_size_t, c_char_p, POINTER(c_void_p)]),
    "fusec_program_destroy": (None, [c_void_p]),
    "fusec_device_open": (STATUS, [c_int, POINTER(c_void_p)]),
    "fusec_device_cpu": (STATUS, [POINTER(c_void_p)]),
    "fusec_device_destroy": (None, [c_void_p]),
    "fusec_device_get_info": (c_int, [c_void_p, POINTER(DeviceInfo)]),
    "fusec_plan_create": (STATUS, [c_void_p, c_void_p, c_char_p, POINTER(Size), c_size_t, c_void_p,
                                   POINTER(c_void_p)]),
    "fusec_plan_destroy": (None, [c_void_p]),
    "fusec_plan_workspace": (c_size_t, [c_void_p, POINTER(Size), c_size_t]),
    "fusec_plan_tensor_count": (c_size_t, [c_void_p]),
    "fusec_plan_input_count": (c_size_t, [c_void_p]),
    "fusec_plan_tensor": (c_int, [c_void_p, c_size_t, POINTER(TensorInfo)]),
    "fusec_plan_launch": (STATUS, [c_void_p, POINTER(Tensor), POINTER(Tensor), POINTER(c_double),
                                   c_void_p, c_void_p]),
    "fusec_plan_kernel_count": (c_size_t, [c_void_p]),
    "fusec_plan_kernel": (c_int, [c_void_p, c_size_t, POINTER(KernelInfo)]),
    "fusec_plan_milliseconds": (c_double, [c_void_p]),
    "fusec_call_create": (STATUS, [c_void_p, POINTER(Tensor), POINTER(Tensor), POINTER(c_double),
                                   c_void_p, POINTER(c_void_p)]),
    "fusec_call_launch": (STATUS, [c_void_p, c_void_p]),
    "fusec_call_destroy": (None, [c_void_p]),
}
WITHOUT_ERROR = {"fusec_plan_tensor", "fusec_plan_kernel", "fusec_device_get_info"}


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.c, name)
            takes_error = result is STATUS and name not in WITHOUT_ERROR
            function.restype = result
            function.argtypes = arguments + ([POINTER(Error)] if takes_error else [])

    def check(self, name, *arguments):
        """Calls an entry that takes a fusec_error; raises its message."""
        error = Error()
        if getattr(self.c, name)(*arguments, byref(error)):
            raise FusecError(f"{name}: {error.message.decode(errors='replace')}")

    def version(self):
        return self.c.fusec_version().decode()

    def open_device(self, ordinal):
        return Device(self, ordinal)


class Device:
    def __init__(self, library, ordinal):
        self.fusec, self.handle = library, c_void_p()
        if ordinal is None:
            library.check("fusec_device_cpu", byref(self.handle))
        else:
            library.check("fusec_device_open", ordinal, byref(self.handle))

    def info(self):
        info = DeviceInfo(struct_size=ctypes.sizeof(DeviceInfo))
        self.fusec.c.fusec_device_get_info(self.handle, byref(info))
        return info

    def plan(self, text, name, sizes):
        return Plan(self, text.encode(), name.encode(), sizes)

    def __del__(self):
        self.fusec.c.fusec_device_destroy(self.handle)


class Plan:
    """The only graph of a program, compiled for the given sizes of its axes."""

    def __init__(self, device, text, name, sizes):
        self.fusec, self.handle = device.fusec, c_void_p()
        self.is_cpu = device.info().is_cpu
        self.sizes = (Size * len(sizes))(*[Size(axis.encode(), n) for axis, n in sizes.items()])
        program = c_void_p()
        self.fusec.check("fusec_program_parse", text, len(text), name, byref(program))
        try:
            self.fusec.check("fusec_plan_create", device.handle, program, None, self.sizes,
                               len(self.sizes), None, byref(self.handle))
        finally:
            self.fusec.c.fusec_program_destroy(program)

    def workspace(self):
        """Bytes that a launch with the plan's own sizes needs."""
        return self.fusec.c.fusec_plan_workspace(self.handle, self.sizes, len(self.sizes))

    def kernels(self):
        info, c = KernelInfo(struct_size=ctypes.sizeof(KernelInfo)), self.fusec.c
        result = []
        for index in range(c.fusec_plan_kernel_count(self.handle)):
            c.fusec_plan_kernel(self.handle, index, byref(info))
            result.append({"name": info.name.decode(), "ctas": info.grid[0] * info.grid[1] * info.grid[2],
                           "threads": info.threads, "cluster": info.cluster,
                           "registers": info.registers, "spill_bytes": info.spill_bytes,
                           "smem_bytes": info.dynamic_smem_bytes})
        return result

    def call(self, tensors, workspace=None):
        return Call(self, tensors, workspace)

    def __del__(self):
        self.fusec.c.fusec_plan_destroy(self.handle)


class Call:
    """Arguments of a launch, checked and kept. `tensors`: name to (pointer, dtype, shape, strides). The CPU
    device keeps no calls; there it is a launch like any other, arguments and all."""

    def __init__(self, plan, tensors, workspace):
        self.fusec, self.handle, self.plan = plan.fusec, c_void_p(), plan
        c = self.fusec.c
        count = c.fusec_plan_tensor_count(plan.handle)
        inputs = c.fusec_plan_input_count(plan.handle)
        described = (Tensor * count)()
        info = TensorInfo(struct_size=ctypes.sizeof(TensorInfo))
        for index in range(count):
            c.fusec_plan_tensor(plan.handle, index, byref(info))
            described[index] = describe(*tensors[info.name.decode()])
        outputs = ctypes.cast(byref(described, inputs * ctypes.sizeof(Tensor)), POINTER(Tensor))
        self.arguments = described, outputs, None, workspace
        if not plan.is_cpu:
            self.fusec.check("fusec_call_create", plan.handle, *self.arguments,
                               byref(self.handle))

    def launch(self, stream=None):
        if self.plan.is_cpu:
            self.fusec.check("fusec_plan_launch", self.plan.handle, *self.arguments, stream)
        else:
            self.fusec.check("fusec_call_launch", self.handle, stream)

    def __del__(self):
        self.fusec.c.fusec_call_destroy(self.handle)


def describe(pointer, dtype, shape, strides=None):
    tensor = Tensor(data=pointer, dtype=DTYPES.index(dtype), rank=len(shape))
    dense = 1
    for axis in reversed(range(len(shape))):
        tensor.sizes[axis] = shape[axis]
        tensor.strides[axis] = strides[axis] if strides else dense
        dense *= shape[axis]
    return tensor
