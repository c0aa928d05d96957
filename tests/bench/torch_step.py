#!/usr/bin/env python3
"""torch_step.py: a training step of four transformer blocks in bf16, with all between the matrix products by fusec,
beside eager torch and torch.compile, on a GPU.

    pip install build/fusec-*.whl
    python3 tests/bench/torch_step.py [--json FILE] [--sizes 2048:8x2048,4096:4x2048] [--losses 200]

All variants begin with the same weights and see the same tokens. Times are of forward, backward and AdamW, in rounds
that visit each variant; losses are of runs of their own.
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

import fusec.torch

VOCABULARY, BLOCKS, HEAD = 8192, 4, 128


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = max(1, width // HEAD)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        # unbind, not permute: its gradients are stacked where the product's backward pass reads them
        q, k, v = (t.transpose(1, 2) for t in self.qkv(x).view(batch, length, 3, self.heads, -1).unbind(2))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """Pre-norm. fusec's norms add the branch before them to the residual as they read both."""

    def __init__(self, width, norm):
        super().__init__()
        inner = (8 * width // 3 + 255) // 256 * 256
        self.norm1, self.norm2, self.attention = norm(width, eps=1e-6), norm(width, eps=1e-6), Attention(width)
        self.up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)


class TorchBlock(Block):
    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        gate, up = self.up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class FusecBlock(Block):
    def forward(self, branch, residual=None):
        if residual is None:
            h, y = branch, fusec.torch.RMSNorm.forward(self.norm1, branch)
        else:
            h, y = self.norm1(branch, residual)
        h, y = self.norm2(self.attention(y), h)
        return self.down(fusec.torch.swiglu(self.up(y))), h


class Model(nn.Module):
    def __init__(self, width, kind):
        super().__init__()
        self.ours = kind == "fusec"
        norm = fusec.torch.AddRMSNorm if self.ours else nn.RMSNorm
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList((FusecBlock if self.ours else TorchBlock)(width, norm) for _ in range(BLOCKS))
        self.norm, self.head = norm(width, eps=1e-6), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens, target):
        x = self.embed(tokens)
        if self.ours:
            branch, residual = self.blocks[0](x)
            for block in self.blocks[1:]:
                branch, residual = block(branch, residual)
            x = self.norm(branch, residual)[1]
            return fusec.torch.cross_entropy(self.head(x), target)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().view(-1, VOCABULARY), target.view(-1))


def batches(count, batch, length, device):
    """Tokens that follow a rule, with noise: what a model can learn."""
    generator = torch.Generator(device).manual_seed(5)
    for _ in range(count):
        start = torch.randint(VOCABULARY, (batch, 1), generator=generator, device=device)
        steps = torch.randint(1, 4, (batch, length), generator=generator, device=device).cumsum(1)
        tokens = (start + 7 * steps) % VOCABULARY
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


class Variant:
    def __init__(self, name, width, weights, device):
        kind = "fusec" if "fusec" in name else "torch"
        self.name, self.model = name, Model(width, kind).to(device, torch.bfloat16)
        self.model.load_state_dict(weights)
        self.call = torch.compile(self.model) if "compile" in name else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=device == "cuda")

    def step(self, tokens, target):
        loss = self.call(tokens, target)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


NAMES = ("torch", "torch.compile", "fusec", "fusec + torch.compile")


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def measure(width, batch, length, device, rounds, steps, names):
    torch.manual_seed(0)
    weights = Model(width, "torch").state_dict()
    variants = [Variant(name, width, weights, device) for name in names]
    data = list(batches(steps, batch, length + 1, device))
    times = {name: [] for name in names}
    for variant in variants:
        for tokens, target in data[:3]:
            variant.step(tokens, target)
    for _ in range(rounds):
        for variant in variants:
            synchronize(device)
            begin = time.perf_counter()
            for tokens, target in data:
                variant.step(tokens, target)
            synchronize(device)
            times[variant.name].append((time.perf_counter() - begin) / steps * 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


def losses(width, batch, length, device, steps, names):
    torch.manual_seed(0)
    weights = Model(width, "torch").state_dict()
    found = {}
    for name in names:
        variant = Variant(name, width, weights, device)
        found[name] = torch.stack([variant.step(*b) for b in batches(steps, batch, length + 1, device)]).float().tolist()
        del variant
        torch._dynamo.reset()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--sizes", default="2048:8x2048,4096:4x2048", help="WIDTH:BATCHxLENGTH,...")
    parser.add_argument("--losses", type=int, default=200, help="steps of the runs that compare losses, at the first size")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="of a round")
    parser.add_argument("--variants", default=",".join(NAMES))
    parser.add_argument("--cpu", action="store_true", help="to try the script")
    options = parser.parse_args()
    device = "cpu" if options.cpu else "cuda"
    names, result = options.variants.split(","), {"torch": torch.__version__, "device": device}
    sizes = [[int(n) for n in size.replace("x", ":").split(":")] for size in options.sizes.split(",")]
    for width, batch, length in sizes:
        found = measure(width, batch, length, device, options.rounds, options.steps, names)
        torch._dynamo.reset()
        result[f"{width}:{batch}x{length}"] = found
        print(f"d = {width}, {batch} x {length} tokens, ms a step: " + ", ".join(f"{n} {t:.2f}" for n, t in found.items()), flush=True)
    if options.losses:
        found = losses(*sizes[0], device, options.losses, names)
        result["losses"] = found
        for name, values in found.items():
            apart = max(abs(a - b) for a, b in zip(values, found[names[0]], strict=True))
            last = statistics.mean(values[-20:])
            print(f"{name:24} loss {values[0]:.4f} .. {last:.4f} (mean of the last 20), at most {apart:.4f} from {names[0]}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
