#!/usr/bin/env python3
"""pytorch.py: a graph on PyTorch's tensors: the heads of q in a fused tensor of q, k and v, normalized.

    make
    python3 examples/pytorch.py

No copy is made: a view goes to the C API with its strides. The launch is a kernel in PyTorch's
current stream like any other, in a CUDA graph as well. Without a GPU the CPU evaluator computes it.
"""
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/bench"))
from fusec_ctypes import Library

PROGRAM = """
graph head_norm[B, T, H, D](
    q     : bf16[B, T, H, D],
    gamma : bf16[D]
) -> (
    y : bf16[B, T, H, D]
) {
    y = q * rsqrt(mean[D](q * q) + 1e-6) * gamma
}
"""
DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


def given(tensor):
    return tensor.data_ptr(), DTYPES[tensor.dtype], tuple(tensor.shape), tensor.stride()


def main():
    gpu = torch.cuda.is_available()
    place = torch.device("cuda" if gpu else "cpu")
    B, T, H, D = 2, 64, 8, 128
    q = torch.randn(B, T, 3, H, D, device=place).bfloat16()[:, :, 0]     # of q, k and v
    gamma = torch.randn(D, device=place).bfloat16()
    y = torch.empty(B, T, H, D, device=place, dtype=torch.bfloat16)

    device = Library(ROOT / "build/libfusec.so").open_device(0 if gpu else None)
    plan = device.plan(PROGRAM, "head_norm.fuse", {"B": B, "T": T, "H": H, "D": D})
    workspace = torch.empty(plan.workspace(), device=place, dtype=torch.uint8)
    call = plan.call({"q": given(q), "gamma": given(gamma), "y": given(y)}, workspace.data_ptr())
    call.launch(torch.cuda.current_stream().cuda_stream if gpu else None)

    exact = q.double()
    exact = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + 1e-6) * gamma.double()
    error = ((y.double() - exact).abs() / exact.abs().clamp(min=1e-3)).max().item()
    print(f"head_norm on {place}: relative error at most {error:.1e}; rounding to bf16 alone makes up to 3.9e-03")
    return 0 if error <= 2.0 ** -8 else 1


if __name__ == "__main__":
    sys.exit(main())
