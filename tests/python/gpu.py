#!/usr/bin/env python3
"""gpu.py: fusec.torch on a GPU beside torch: operators and modules in all dtypes, odd sizes and views, streams, CUDA
graphs, compiled, errors. Run by `tests/python.sh gpu`; torch alone is needed."""
import threading

import torch
import torch.nn.functional as F

import fusec
import fusec.torch as ft

BF16 = torch.bfloat16
passed = 0


def close(a, b, tolerance):
    global passed
    torch.testing.assert_close(a.double(), b.double(), rtol=tolerance, atol=tolerance)
    passed += 1


def compare(ours, theirs, tensors, tolerance):
    """Results and gradients, theirs in f64."""
    sides = []
    for call, dtype in ((ours, None), (theirs, torch.float64)):
        leaves = [t.detach().to(dtype or t.dtype).requires_grad_() for t in tensors]
        found = call(*leaves)
        found = found if isinstance(found, tuple) else (found,)
        torch.manual_seed(1)
        gradients = [torch.randn(t.shape, device="cuda", dtype=BF16).to(t.dtype) for t in found]
        sides.append([*found, *torch.autograd.grad(found, leaves, gradients)])
    for a, b in zip(*sides, strict=True):
        close(a, b, tolerance * max(1.0, b.abs().max().item()))


def rand(*shape, dtype=BF16):
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype)


def modules():
    for dtype, tolerance in ((torch.float32, 1e-4), (BF16, 2 ** -6), (torch.float16, 2 ** -9)):
        for rows, width in ((1, 64), (3, 1000), (700, 2048), (64, 4097), (5, 16384)):
            x, r, w, b = rand(2, rows, width, dtype=dtype), rand(2, rows, width, dtype=dtype), rand(width, dtype=dtype), rand(width, dtype=dtype)
            layer, rms = ft.LayerNorm(width, device="cuda", dtype=dtype), ft.AddRMSNorm(width, eps=1e-5, device="cuda", dtype=dtype)
            function = ft.op(fusec.graph_path("layernorm"), outputs=["y"], dtypes={"bf16": dtype})
            compare(function, lambda x, w, b: F.layer_norm(x, (width,), w, b), (x, w, b), tolerance)
            compare(layer, lambda x: F.layer_norm(x, (width,)), (x,), tolerance)
            compare(rms, lambda x, r: (x + r, F.rms_norm(x + r, (width,), eps=1e-5)), (x, r), tolerance * 2)
            compare(ft.bias_gelu, lambda x, b: F.gelu(x + b), (x, b), tolerance)
            compare(ft.swiglu, lambda g, u: F.silu(g) * u, (x, r), tolerance)
            compare(lambda x: ft.softmax(x, 0.5), lambda x: torch.softmax(x * 0.5, -1), (x,), tolerance)
            if width % 2 == 0:
                compare(ft.swiglu, lambda x: F.silu(x[..., :width // 2]) * x[..., width // 2:], (x,), tolerance)
            target = torch.randint(width, (2, rows), device="cuda")
            compare(lambda x: ft.cross_entropy(x, target), lambda x: F.cross_entropy(x.view(-1, width), target.view(-1)), (x,), tolerance)


def views_and_streams():
    norm = ft.RMSNorm(128, eps=1e-6, device="cuda", dtype=BF16)
    qkv = rand(2, 65, 3, 8, 128)
    for view in (qkv[:, :, 0], qkv[:, ::2, 1], qkv[0, :, 2], qkv.transpose(0, 1)[:, :, 0], qkv[..., :0, :]):
        close(norm(view), F.rms_norm(view.double(), (128,), eps=1e-6), 2 ** -6)
    stream = torch.cuda.Stream()
    x = rand(4096, 128)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = norm(x * 2)
    stream.synchronize()
    close(y, F.rms_norm(x.double() * 2, (128,), eps=1e-6), 2 ** -6)
    found = []
    threads = [threading.Thread(target=lambda: found.append(norm(x))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(torch.equal(y, found[0]) for y in found)


def graphs():
    """A step, forward and backward, captured and replayed on other values."""
    norm = ft.LayerNorm(512, device="cuda", dtype=BF16)
    x = rand(256, 512).requires_grad_()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            norm(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    x.grad = norm.weight.grad = norm.bias.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = norm(x)
        y.backward(torch.ones_like(y))
    for _ in range(3):
        with torch.no_grad():
            x.copy_(rand(256, 512))
        graph.replay()
        exact = F.layer_norm(x.detach().double(), (512,))
        close(y, exact, 2 ** -6)
        close(norm.weight.grad, exact.sum(0), 0.2)


def compiled():
    torch._dynamo.reset()
    norm = ft.AddRMSNorm(1024, eps=1e-6, device="cuda", dtype=BF16)

    def block(x, r):
        h, y = norm(x, r)
        return h + ft.swiglu(torch.cat([y, y], -1)) * 2

    both = torch.compile(block, fullgraph=True, dynamic=True)
    for rows in (64, 200):
        x, r = rand(rows, 1024), rand(rows, 1024)
        a, b = [[t.clone().requires_grad_() for t in (x, r)] for _ in range(2)]
        for p, q in zip((both(*a), *torch.autograd.grad(both(*a).sum(), a)), (block(*b), *torch.autograd.grad(block(*b).sum(), b)), strict=True):
            close(p, q, 0.05)
    reduced = torch.compile(block, fullgraph=True, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(4):
            close(reduced(x, r).clone(), block(x, r), 0.05)


def errors():
    layer_norm = ft.op(fusec.graph_path("layernorm"))
    x, w = rand(4, 64), rand(64)
    for message, call in {
        "gamma is on another device than x": lambda: layer_norm(x, w.cpu(), w),
        "beta is f32, the graph declares bf16": lambda: layer_norm(x, w, w.float()),
        "the last axis of gamma has stride 2": lambda: layer_norm(x, rand(128)[::2], w),
        "axis N is 63": lambda: layer_norm(x, w[:63], w),
    }.items():
        try:
            call()
        except fusec.Error as why:
            assert message in str(why), why
        else:
            raise AssertionError(f"not refused: {message}")
    before = torch.cuda.memory_allocated()
    for _ in range(10_000):
        try:
            layer_norm(x, w, rand(1)[:0])
        except fusec.Error:
            pass
    assert torch.cuda.memory_allocated() == before
    if torch.cuda.device_count() > 1:
        y = layer_norm(x.to("cuda:1"), w.to("cuda:1"), w.to("cuda:1"))[0]
        assert y.device.index == 1 and torch.cuda.current_device() == 0
        close(y.to("cuda:0"), layer_norm(x, w, w)[0], 0)


if __name__ == "__main__":
    assert ft.op(fusec.graph_path("layernorm")).kernels in ("c", "ctypes")
    for check in (modules, views_and_streams, graphs, compiled, errors):
        check()
        print(f"{check.__name__}: {passed} passed so far", flush=True)
    print(f"{passed} passed")
