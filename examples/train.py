#!/usr/bin/env python3
"""A custom norm with its own backward pass, trained: a small character model whose norms are one program below. On a
GPU where there is one.

    pip install ./runtime/python
    python3 examples/train.py [--steps 200] [--compile]

The norm is none of torch's: it divides by a power of the root mean square, and the power is learned:
y = x * (mean(x^2) + eps)^(-power / 2) * gamma. The forward and the backward pass are graphs of one program. torch
compares the backward pass with differences in f64 before anything is trained.
"""
import argparse

import torch
from torch import nn

import fusec.torch as ft

NORM = """
graph power_norm[M, N](
    x     : bf16[M, N],
    gamma : bf16[N],
    power : f32[],
    eps   : f32 = 1e-6
) -> (
    y      : bf16[M, N],
    square : f32[M]
) {
    square = mean[N](x * x) + eps
    y      = x * exp(-0.5 * power * log(square)) * gamma
}

graph power_norm_bwd[M, N](
    x      : bf16[M, N],
    dy     : bf16[M, N],
    gamma  : bf16[N],
    power  : f32[],
    square : f32[M]
) -> (
    dx     : bf16[M, N],
    dgamma : bf16[N],
    dpower : f32[]
) {
    scale  = exp(-0.5 * power * log(square))
    wdy    = dy * gamma
    along  = mean[N](wdy * x)
    dx     = scale * (wdy - power * x * along / square)
    dgamma = sum[M](dy * x * scale)
    dpower = sum[M](-0.5 * log(square) * scale * sum[N](wdy * x))
}
"""


class PowerNorm(nn.Module):
    norm = staticmethod(ft.op(NORM, outputs=["y"], dtypes={"bf16": torch.float32}))

    def __init__(self, width):
        super().__init__()
        self.gamma, self.power = nn.Parameter(torch.ones(width)), nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return self.norm(x, self.gamma, self.power)


class Model(nn.Module):
    """Predicts a character from the eight before it."""

    def __init__(self, characters, width=64):
        super().__init__()
        self.embed, self.first = nn.Embedding(characters, width), nn.Linear(8 * width, 2 * width, bias=False)
        self.norms, self.last = nn.ModuleList(PowerNorm(width) for _ in range(2)), nn.Linear(width, characters)

    def forward(self, before, after):
        x = self.norms[0](self.embed(before)).flatten(-2)
        return ft.cross_entropy(self.last(self.norms[1](ft.swiglu(self.first(x)))), after, z_loss=1e-4)


def check_backward():
    exact = ft.op(NORM, outputs=["y"], dtypes={"bf16": torch.float64, "f32": torch.float64})
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((5, 7), (7,), ())]
    assert torch.autograd.gradcheck(exact, tensors)
    print("power_norm_bwd is the derivative of power_norm")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--compile", action="store_true", help="through torch.compile(fullgraph=True)")
    options = parser.parse_args()
    torch.manual_seed(0)
    check_backward()
    place = "cuda" if torch.cuda.is_available() else "cpu"
    text = torch.tensor(list(open(__file__, "rb").read()), device=place)
    model = Model(256).to(place)
    call = torch.compile(model, fullgraph=True) if options.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(options.steps + 1):
        at = torch.randint(len(text) - 9, (64, 1), device=place) + torch.arange(9, device=place)
        loss = call(text[at[:, :8]], text[at[:, 8]])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(f"step {step:4}: loss {loss.item():.3f}")
    print("powers", [round(norm.power.item(), 3) for norm in model.norms])


if __name__ == "__main__":
    main()
