#!/usr/bin/env python3
"""A graph as a PyTorch operator: the heads of q in a fused tensor of q, k and v, normalized; on a GPU where there is one.

    pip install ./runtime/python
    python3 examples/pytorch.py
"""
import torch
import fusec.torch

head_norm = fusec.torch.op("""
graph head_norm[B, T, H, D](q : bf16[B, T, H, D], gamma : bf16[D]) -> (y : bf16[B, T, H, D]) {
    y = q * rsqrt(mean[D](q * q) + 1e-6) * gamma
}""")
place = "cuda" if torch.cuda.is_available() else "cpu"
qkv = torch.randn(2, 64, 3, 8, 128, device=place, dtype=torch.bfloat16)
q, gamma = qkv[:, :, 0], torch.randn(128, device=place, dtype=torch.bfloat16)    # a view: it is not copied
y, exact = head_norm(q, gamma), torch.nn.functional.rms_norm(q.double(), (128,), gamma.double(), 1e-6)
error = ((y.double() - exact).abs() / exact.abs().clamp(min=1e-3)).max().item()
print(f"head_norm on {place}: relative error at most {error:.1e}; rounding to bf16 alone makes up to 3.9e-03")
assert error <= 2.0 ** -8
