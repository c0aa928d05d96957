#!/usr/bin/env python3
"""torch_host.py: host time of a call of fusec's layer norm from torch, beside torch's own, on a GPU.

    pip install build/fusec-*.whl
    python3 tests/bench/torch_host.py [--json FILE] [--ctypes]

Rows are few, so that the GPU is done before the host is. Each figure is the median of several runs of 1000 calls, in
microseconds a call, fusec's and torch's in turn: a backward pass runs on a thread of its own, and how long it takes
to wake up differs from minute to minute. "y alone" returns what torch's layer norm returns; else mean and rstd come too.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.nn.functional as F

CALLS, RUNS = 1000, 9


def run(call):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    found = (time.perf_counter() - begin) / CALLS * 1e6
    torch.cuda.synchronize()
    return found


def medians(calls):
    """Microseconds of each call; they take turns."""
    for call in calls:
        for _ in range(100):
            call()
    return [statistics.median(times) for times in zip(*[[run(call) for call in calls] for _ in range(RUNS)])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json")
    parser.add_argument("--ctypes", action="store_true", help="the kernels by ctypes, not in C")
    parser.add_argument("--columns", type=int, default=1024)
    options = parser.parse_args()
    if options.ctypes:
        os.environ["FUSEC_TORCH_KERNELS"] = "ctypes"
    import fusec
    import fusec.torch
    op = fusec.torch.op(fusec.graph_path("layernorm"))
    y_alone = fusec.torch.op(fusec.graph_path("layernorm"), outputs=["y"])
    N = options.columns
    x, gamma, beta, dy = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in ((16, N), (N,), (N,), (16, N)))
    leaves = [t.clone().requires_grad_() for t in (x, gamma, beta)]
    module, theirs = (kind(N, device="cuda", dtype=torch.bfloat16) for kind in (fusec.torch.LayerNorm, torch.nn.LayerNorm))

    def torch_forward():
        return F.layer_norm(leaves[0], (N,), *leaves[1:])

    def gradients(y):
        return torch.autograd.grad(y, leaves, dy)

    calls = {
        "no grad": (lambda: op(x, gamma, beta), lambda: F.layer_norm(x, (N,), gamma, beta)),
        "no grad, y alone": (lambda: y_alone(x, gamma, beta), lambda: F.layer_norm(x, (N,), gamma, beta)),
        "forward with grad": (lambda: op(*leaves), torch_forward),
        "forward with grad, y alone": (lambda: y_alone(*leaves), torch_forward),
        "forward and backward": (lambda: gradients(op(*leaves)[0]), lambda: gradients(torch_forward())),
        "forward and backward, y alone": (lambda: gradients(y_alone(*leaves)), lambda: gradients(torch_forward())),
        "module, forward with grad": (lambda: module(leaves[0]), lambda: theirs(leaves[0])),
    }
    compiled = [torch.compile(f, fullgraph=True) for f in (lambda a: y_alone(a * 2, gamma, beta) + 1,
                                                           lambda a: F.layer_norm(a * 2, (N,), gamma, beta) + 1)]
    calls["compiled, between two operations"] = tuple((lambda f=f: f(x)) for f in compiled)
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "kernels": op.kernels, "us": {}}
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, kernels in {op.kernels}; us a call")
    for name, (ours, torchs) in calls.items():
        a, b = medians((ours, torchs))
        result["us"][name] = {"fusec": a, "torch": b}
        print(f"{name:34} fusec {a:7.2f}   torch {b:7.2f}   {a / b:5.2f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
