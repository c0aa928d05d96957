#!/usr/bin/env python3
"""sharded.py: fusec's operators on DTensors, and FSDP2 around a block of them, in two processes or more.

    python3 tests/python/sharded.py                                   two processes, by gloo on the CPU
    torchrun --nproc-per-node 2 tests/python/sharded.py               by NCCL, a GPU each

Rows sharded over any axis: outputs are sharded alike and sums over rows are partial sums. Columns are refused.
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import fusec
import fusec.torch as ft

WIDTH = 64


def close(a, b, tolerance=1e-4):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def check_rows(mesh, device):
    layer_norm = ft.op(fusec.graph_path("layernorm"), dtypes={"bf16": "f32"})
    torch.manual_seed(0)
    x, dy = torch.randn(2, 5, 3, WIDTH, device=device)    # 5 rows: the shards are not even
    plain = [t.requires_grad_() for t in (x.clone(), torch.randn(WIDTH, device=device), torch.randn(WIDTH, device=device))]
    expected = F.layer_norm(plain[0], (WIDTH,), *plain[1:])
    gradients = torch.autograd.grad(expected, plain, dy)
    for dim in (0, 1):
        leaves = [distribute_tensor(t.detach(), mesh, [place]).requires_grad_()
                  for t, place in zip(plain, (Shard(dim), Replicate(), Replicate()), strict=True)]
        y, mean, _ = layer_norm(*leaves)
        assert y.placements == (Shard(dim),) and mean.placements == (Shard(dim),), (y.placements, mean.placements)
        found = torch.autograd.grad(y, leaves, distribute_tensor(dy, mesh, [Shard(dim)]))
        assert found[0].placements == (Shard(dim),)
        assert found[1].placements == (Partial(),) and found[2].placements == (Partial(),), found[1].placements
        for a, b in zip((y, *found), (expected, *gradients), strict=True):
            close(whole(a), b)


def check_columns(mesh, device):
    layer_norm = ft.op(fusec.graph_path("layernorm"), dtypes={"bf16": "f32"})
    x, weight = torch.randn(4, WIDTH, device=device), torch.randn(WIDTH, device=device)
    replicated = distribute_tensor(weight, mesh, [Replicate()])
    causal = ft.op(fusec.graph_path("softmax_causal"), dtypes={"bf16": "f32"})
    scores = distribute_tensor(torch.randn(2, 4, 4, device=device), mesh, [Shard(1)])
    for message, call in {
        "x is sharded along N, which is not possible: a row is reduced along it":
            lambda: layer_norm(distribute_tensor(x, mesh, [Shard(1)]), replicated, replicated),
        "x is sharded along Q, which is not possible: the graph asks for its size": lambda: causal(scores),
    }.items():
        try:
            call()
        except fusec.Error as why:
            assert message in str(why), why
        else:
            raise AssertionError(f"not refused: {message}")
    loss_of_all = ft.op("graph mean_row[M, N](x : f32[M, N]) -> (t : f32[]) { t = max[M, N](x) }")
    try:
        loss_of_all(distribute_tensor(x, mesh, [Shard(0)]))
    except fusec.Error as why:
        assert "not possible" in str(why), why


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.last = ft.AddRMSNorm(WIDTH, eps=1e-6), ft.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 2 * WIDTH, bias=False), torch.nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        h, y = self.norm(x, x)
        return self.last(h + self.down(ft.swiglu(self.up(y))))


def train(model, batches, mesh=None):
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, target in batches:
        loss = ft.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    if mesh is not None:
        dist.all_reduce(losses)
        losses /= mesh.size()
    return losses


def check_fsdp(mesh, device):
    """The same losses as one process with the batches of all."""
    torch.manual_seed(0)
    model, alone = Block().to(device), Block().to(device)
    alone.load_state_dict(model.state_dict())
    batches = [(torch.randn(2 * mesh.size(), 3, WIDTH, device=device),
                torch.randint(WIDTH, (2 * mesh.size(), 3), device=device)) for _ in range(6)]
    fully_shard(model, mesh=mesh)
    mine = slice(2 * mesh.get_rank(), 2 * mesh.get_rank() + 2)
    close(train(model, [(x[mine].contiguous(), t[mine].contiguous()) for x, t in batches], mesh), train(alone, batches))


def main(rank, count, file):
    gpu = torch.cuda.is_available() and file is None
    device = f"cuda:{rank}" if gpu else "cpu"
    if gpu:
        torch.cuda.set_device(rank)
    where = {} if file is None else {"init_method": f"file://{file}", "rank": rank, "world_size": count}
    dist.init_process_group("nccl" if gpu else "gloo", **where)
    mesh = init_device_mesh("cuda" if gpu else "cpu", (count,))
    for check in (check_rows, check_columns, check_fsdp):
        check(mesh, device)
        if rank == 0:
            print(f"{check.__name__}: as one process, by {count} on {'GPUs' if gpu else 'the CPU'}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        main(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), None)
    else:
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(main, args=(2, f"{folder}/meet"), nprocs=2)
    sys.exit(0)
