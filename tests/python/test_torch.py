"""fusec.torch.op on the CPU: eager, autograd, compiled, exported, fake, and what it refuses. Run by
`tests/python.sh torch`, once with the kernels in C and once with those by ctypes."""
import copy
import resource
import threading
from pathlib import Path

import pytest
import torch
import torch._dynamo.testing
import torch.nn.functional as F

import fusec
import fusec.torch

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
SCALED = """
graph scaled[M, N](x : f32[M, N], w : f32[N], s : f32 = 2) -> (y : f32[M, N], t : f32[N]) { y = x * w * s  t = sum[M](x) }
graph scaled_bwd[M, N](x : f32[M, N], w : f32[N], dy : f32[M, N], s : f32 = 2) -> (dx : f32[M, N], dw : f32[N]) {
    dx = dy * w * s
    dw = sum[M](dy * x) * s
}
"""


def derives():
    try:
        fusec.Program("graph g[N](x : f32[N]) -> (y : f32[N]) { y = x * x }").grad()
    except fusec.Error:
        return False
    return True


@pytest.fixture(scope="module")
def layer_norm():
    return fusec.torch.op(EXAMPLES / "layernorm.fuse", backward=EXAMPLES / "layernorm_bwd.fuse", dtypes={"bf16": torch.float32})


@pytest.fixture
def tensors():
    torch.manual_seed(3)
    return [torch.randn(shape, requires_grad=True) for shape in ((2, 3, 64), (64,), (64,))]


def theirs(x, gamma, beta):
    return F.layer_norm(x, (64,), gamma, beta)


def same(ours, torchs, tolerance=2e-5):
    for a, b in zip(ours, torchs, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def refused(message, call):
    with pytest.raises(fusec.Error, match=message):
        call()


def test_forward_and_backward(layer_norm, tensors):
    y, mean, rstd = layer_norm(*tensors)
    same([y, mean], [theirs(*tensors), tensors[0].mean(-1)])
    assert not mean.requires_grad and not rstd.requires_grad
    dy = torch.randn_like(y)
    same(torch.autograd.grad(y, tensors, dy), torch.autograd.grad(theirs(*tensors), tensors, dy))


def test_names_and_scalars(layer_norm, tensors):
    x, gamma, beta = tensors
    same(layer_norm(x, beta=beta, gamma=gamma, eps=0.5)[:1], [F.layer_norm(x, (64,), gamma, beta, 0.5)])
    assert layer_norm.__name__ == "layernorm" and "gamma : f32[N]" in layer_norm.__doc__


def test_docstring_names_outputs_without_gradient(layer_norm):
    assert layer_norm.__doc__.endswith("\nWithout gradient: mean, rstd.")
    quantized = fusec.torch.op(EXAMPLES / "rmsnorm_quantized.fuse")
    assert quantized.__doc__.endswith("\nWithout gradient: scale.")
    whole = fusec.torch.op(quantized.program, backward=quantized.program.grad(of=["q", "scale"]))
    assert "Without gradient" not in whole.__doc__
    only = fusec.torch.op(EXAMPLES / "layernorm.fuse", outputs=["y"])
    assert "Without gradient" not in only.__doc__
    counts = fusec.torch.op("graph g[M, N](x : f32[M, N]) -> (y : f32[M, N], i : i32[N]) { y = x * x  i = index(N) }")
    assert "Without gradient" not in counts.__doc__


def test_views_and_odd_gradients(layer_norm, tensors):
    x, gamma, beta = tensors
    for view in (x[:, 1:], x[::2], x[:, ::2], x.transpose(0, 1), x[0], x[:, :0], x[:1].expand(4, 3, 64)):
        for gradient in (lambda y: y.sum(), lambda y: (y * y).transpose(0, -1).sum(), lambda y: y[..., ::2].sum()):
            ours = torch.autograd.grad(gradient(layer_norm(view, gamma, beta)[0]), tensors, allow_unused=True)
            same(ours, torch.autograd.grad(gradient(theirs(view, gamma, beta)), tensors, allow_unused=True), 1e-4)


def test_only_what_is_wanted_has_a_gradient(layer_norm, tensors):
    x, gamma, beta = tensors[0], tensors[1].detach(), tensors[2].detach()
    (dx,) = torch.autograd.grad(layer_norm(x, gamma, beta)[0].sum(), [x])
    assert dx.shape == x.shape
    y = layer_norm(x.detach(), tensors[1], beta)[0]
    same(torch.autograd.grad(y.square().sum(), [tensors[1]]),
         torch.autograd.grad(theirs(x.detach(), tensors[1], beta).square().sum(), [tensors[1]]), 1e-4)
    with torch.no_grad():
        assert not layer_norm(*tensors)[0].requires_grad


def test_some_outputs():
    alone = fusec.torch.op(EXAMPLES / "layernorm.fuse", EXAMPLES / "layernorm_bwd.fuse", outputs=["y"], dtypes={"bf16": "f32"})
    x = torch.randn(4, 64, requires_grad=True)
    y = alone(x, torch.ones(64), torch.zeros(64))
    same([y, *torch.autograd.grad(y.square().sum(), [x])],
         [F.layer_norm(x, (64,)), *torch.autograd.grad(F.layer_norm(x, (64,)).square().sum(), [x])], 1e-4)


def test_graphs_of_one_text():
    scaled = fusec.torch.op(SCALED)
    x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True)
    y, t = scaled(x, w, s=3.0)
    assert not t.requires_grad
    same([y, t, *torch.autograd.grad(y.sum(), [x, w])], [x * w * 3, x.sum(0), *torch.autograd.grad((x * w * 3).sum(), [x, w])])
    assert fusec.torch.op(SCALED).operator is scaled.operator


def test_compiled_with_any_batch(layer_norm, tensors):
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda x, gamma, beta: layer_norm(x * 2, gamma, beta)[0] + 1, fullgraph=True, dynamic=True,
                             backend=counter)
    frames = 0
    for batch in (2, 5, 9):
        x, gamma, beta = torch.randn(batch, 3, 64, requires_grad=True), tensors[1], tensors[2]
        ours, torchs = compiled(x, gamma, beta), theirs(x * 2, gamma, beta) + 1
        same([ours, *torch.autograd.grad(ours.square().sum(), [x, gamma, beta])],
             [torchs, *torch.autograd.grad(torchs.square().sum(), [x, gamma, beta])], 1e-3)
        frames = frames or counter.frame_count
    assert counter.frame_count == frames


def test_inductor(layer_norm, tensors):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, gamma, beta: layer_norm(x * 2, gamma, beta)[0].relu(), fullgraph=True)
    ours, torchs = compiled(*tensors), theirs(tensors[0] * 2, *tensors[1:]).relu()
    same([ours, *torch.autograd.grad(ours.sum(), tensors)], [torchs, *torch.autograd.grad(torchs.sum(), tensors)], 1e-4)
    with torch.no_grad():
        same([compiled(*tensors)], [torchs])


def test_exported(layer_norm, tensors):
    class Net(torch.nn.Module):
        def forward(self, x, gamma, beta):
            return layer_norm(x, gamma, beta)[0]

    arguments = tuple(t.detach() for t in tensors)
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(Net(), arguments, dynamic_shapes=({0: batch}, None, None))
    x = torch.randn(7, 3, 64)
    same([program.module()(x, *arguments[1:])], [theirs(x, *arguments[1:])])


def test_fake_and_meta(layer_norm, tensors):
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode() as mode:
        y, mean, _ = layer_norm(*[mode.from_tensor(t) for t in tensors])
        assert y.shape == (2, 3, 64) and mean.shape == (2, 3)
    y, _, rstd = layer_norm(*[t.detach().to("meta") for t in tensors])
    assert y.is_meta and rstd.dtype == torch.float32


def test_opcheck(layer_norm, tensors):
    torch.library.opcheck(layer_norm.operator, (*tensors, 1e-5))
    plain = [t.detach() for t in tensors]
    torch.library.opcheck(layer_norm.operator, (*plain, 1e-5))
    y, mean, rstd = layer_norm(*plain)
    torch.library.opcheck(layer_norm.backward_operator, (plain[0], y, plain[1], mean, rstd, 7))


def test_functorch(layer_norm, tensors):
    x, gamma, beta = [t.detach() for t in tensors]
    ours = torch.func.grad(lambda x: layer_norm(x, gamma, beta)[0].square().sum())(x)
    same([ours], [torch.func.grad(lambda x: theirs(x, gamma, beta).square().sum())(x)], 1e-3)


def test_vmap_and_jacobians(layer_norm, tensors):
    x, gamma, beta = [t.detach() for t in tensors]

    def ours(x):
        return layer_norm(x, gamma, beta)[0]

    def torchs(x):
        return theirs(x, gamma, beta)

    same([torch.func.vmap(ours)(x)], [torchs(x)])
    for transform in (lambda f: torch.func.vmap(torch.func.grad(lambda x: f(x).square().sum())), torch.func.jacrev):
        same([transform(ours)(x)], [transform(torchs)(x)], 1e-3)
    for transform in (torch.func.jacfwd, torch.func.hessian, lambda f: lambda x: torch.func.jvp(f, (x,), (x,))):
        refused("forward-mode derivatives .* not supported", lambda: transform(ours)(x))


def test_the_gradient_of_a_sum(layer_norm, tensors):
    """Its gradient has strides 0, also where it is differentiated again."""
    x, gamma, beta = tensors
    (dx,) = torch.autograd.grad(layer_norm(x, gamma, beta)[0].sum(), [x], create_graph=True)
    same([dx], torch.autograd.grad(theirs(*tensors).sum(), [x]), 1e-3)
    plain = [t.detach() for t in tensors]
    same([torch.func.grad(lambda x: layer_norm(x, *plain[1:])[0].sum())(plain[0])], [dx])


def test_autocast(layer_norm, tensors):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer_norm(tensors[0].bfloat16(), *tensors[1:])[0]
    assert y.dtype == torch.float32
    same([y], [theirs(tensors[0].bfloat16().float(), *tensors[1:])])
    refused("x is bf16, the graph declares f32", lambda: layer_norm(tensors[0].bfloat16(), *tensors[1:]))


def test_checkpoint_and_hooks(layer_norm, tensors):
    from torch.utils.checkpoint import checkpoint
    y = checkpoint(lambda *t: layer_norm(*t)[0], *tensors, use_reentrant=False)
    same(torch.autograd.grad(y.sum(), tensors), torch.autograd.grad(theirs(*tensors).sum(), tensors), 1e-4)
    with torch.autograd.graph.save_on_cpu():
        torch.autograd.grad(layer_norm(*tensors)[0].sum(), tensors)


def test_a_saved_tensor_that_changed_is_noticed(layer_norm, tensors):
    gamma = tensors[1].detach().clone().requires_grad_()
    y = layer_norm(tensors[0], gamma, tensors[2])[0]
    with torch.no_grad():
        gamma.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_all_dtypes():
    for name, dtype in {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
                        "i64": torch.int64, "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
                        "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}.items():
        copied = fusec.torch.op(f"graph copied[N](x : {name}[N]) -> (y : {name}[N]) {{ y = x }}")
        x = torch.tensor([0, 1, 1]).to(dtype)
        y = copied(x)
        assert y.dtype == dtype and torch.equal(y.float(), x.float())


def test_one_number_and_kinds_of_scalars():
    total = fusec.torch.op("graph total[N](x : f32[N], a : i32 = 3, b : bool = true, c : f64 = 0.5) -> (t : f32[]) "
                           "{ t = sum[N](x * f32(a) * f32(c) * where(b, 1, 2)) }")
    x = torch.ones(10)
    assert total(x).shape == () and total(x).item() == 15
    assert total(x, a=4, b=False, c=0.25).item() == 20


def test_threads(layer_norm, tensors):
    found = []
    threads = [threading.Thread(target=lambda: found.append(layer_norm(*tensors)[0].detach())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(torch.equal(y, found[0]) for y in found)


def test_other_threads_run_during_a_call():
    slow = fusec.torch.op("graph slow[M, N](x : f32[M, N]) -> (y : f32[M, N]) { y = exp(sin(x)) / sum[N](exp(x)) }")
    x, counted, done = torch.randn(2000, 1000), [0], threading.Event()
    slow(x[:1])

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    slow(x)
    after = counted[0]
    done.set()
    thread.join()
    assert after - before > 10_000


def test_calls_hold_memory(layer_norm, tensors):
    def step():
        y = layer_norm(*tensors)[0]
        torch.autograd.grad(y.transpose(0, -1).square().sum(), tensors)

    for _ in range(300):
        step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3000):
        step()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096    # KiB


def test_wrong_tensors(layer_norm, tensors):
    x, gamma, beta = tensors
    refused("beta is missing", lambda: layer_norm(x, gamma))
    refused("takes 3 tensors", lambda: layer_norm(x, gamma, beta, beta))
    refused("no input or scalar delta", lambda: layer_norm(x, gamma, beta, delta=1))
    refused("no input or scalar gama; did you mean gamma", lambda: layer_norm(x, gama=gamma, beta=beta))
    refused('beta is f64, the graph declares f32: cast it, or .* dtypes={"beta": "f64"}', lambda: layer_norm(x, gamma, beta.double()))
    refused("beta is i64, the graph declares f32$", lambda: layer_norm(x, gamma, torch.zeros(64, dtype=torch.int64)))
    refused("axis N is 3 in beta but 64 in x", lambda: layer_norm(x, gamma, beta[:3]))
    refused(r"gamma has 2 axes, the graph declares 1: view it as \[N\]", lambda: layer_norm(x, x[0], beta))
    refused(r"x has 1 axis, the graph declares 2: view it as \[M, N\]", lambda: layer_norm(gamma, gamma, beta))
    refused("axis M is 2 x 2 in r but 2 x 3 in x", lambda: fusec.torch.op(
        "graph g[M, N](x : f32[M, N], r : f32[M, N]) -> (y : f32[M, N]) { y = x + r }")(x, x[:, :2]))
    refused("beta is on another device than x", lambda: layer_norm(x, gamma, beta.to("meta")))
    refused("x is a int, not a tensor", lambda: layer_norm(3, gamma, beta))
    refused("x is a ndarray, not a tensor", lambda: layer_norm(x.detach().numpy(), gamma, beta))
    refused("last axis of gamma has stride 2.*pass gamma.contiguous", lambda: layer_norm(x, torch.ones(128)[::2], beta))
    refused("last axis of gamma has stride 0", lambda: layer_norm(x, gamma.detach()[:1].expand(64), beta))
    columns = fusec.torch.op("graph columns[N](x : f32[N]) -> (y : f32[N]) { y = x / sum[N](x) }")
    refused("first axis, N, is no axis of rows", lambda: columns(torch.ones(2, 3)))
    size = fusec.torch.op("graph size[M, N](x : f32[M]) -> (y : f32[M, N]) { y = x + index(N) }")
    refused("no input has axis N", lambda: size(torch.ones(2)))


def test_wrong_programs():
    refused("No such file", lambda: fusec.torch.op("/nowhere.fuse"))
    refused("error:", lambda: fusec.torch.op("graph g[N](x : f32[N]) -> (y : f32[N]) { y = z }"))
    refused("has no output z", lambda: fusec.torch.op(SCALED, outputs=["z"]))
    refused("names no output", lambda: fusec.torch.op(SCALED, outputs=[]))
    refused("no graph nothing", lambda: fusec.torch.op(SCALED, graph="nothing"))
    refused("unknown dtype", lambda: fusec.torch.op(SCALED, dtypes={"x": "f12"}))
    forward = "graph g[N](x : f32[N]) -> (y : f32[N]) { y = x * x }"

    def backward(inputs, outputs="dx : f32[N]", body="dx = dy"):
        return lambda: fusec.torch.op(forward, backward=f"graph b[N]({inputs}) -> ({outputs}) {{ {body} }}")

    refused("z is neither an input nor an output of g", backward("z : f32[N], dy : f32[N]"))
    refused("dz is the gradient of no input", backward("dy : f32[N]", "dz : f32[N]", "dz = dy"))
    refused("takes the gradient of no output", backward("x : f32[N]", body="dx = x"))
    refused("x is f16, g has it as f32", backward("x : f16[N], dy : f32[N]", body="dx = x * dy"))
    refused("dx is f32.., but x is f32.N. in g", backward("dy : f32[N]", "dx : f32[]", "dx = sum[N](dy)"))
    refused("dx is i32.N., but x is f32.N. in g", backward("dy : f32[N]", "dx : i32[N]", "dx = i32(dy)"))
    refused("x has 0 axes", backward("x : f32[], dy : f32[N]", body="dx = x * dy"))
    refused("scalar s is none of g", backward("dy : f32[N], s : f32", body="dx = s * dy"))


def test_other_dtypes():
    x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True)
    for key, value in (("f32", "f16"), (torch.float32, torch.float16), ("f32", torch.float16)):
        y, _ = fusec.torch.op(SCALED, dtypes={key: value})(x.half(), w.half())
        assert y.dtype == torch.float16
    mixed = fusec.torch.op(SCALED, outputs=["y"], dtypes={"x": "bf16", "y": torch.bfloat16})
    y = mixed(x.bfloat16(), w)
    y.sum().backward()
    assert y.dtype == torch.bfloat16 and x.grad.dtype == w.grad.dtype == torch.float32
    for key in ("bf16", torch.bfloat16):
        refused("the program declares no bf16", lambda: fusec.torch.op(SCALED, dtypes={key: "f16"}))
    refused("the program declares no z", lambda: fusec.torch.op(SCALED, dtypes={"z": "f16"}))
    refused("torch.complex64 is no dtype of fusec", lambda: fusec.torch.op(SCALED, dtypes={torch.complex64: "f16"}))
    refused("torch.complex64 is no dtype of fusec", lambda: fusec.torch.op(SCALED, dtypes={"x": torch.complex64}))


def test_errors_are_of_the_package():
    assert fusec.Error.__module__ == "fusec"
    refused('the graphs a, b: name one, as graph="a"', lambda: fusec.torch.op(
        "graph a[N](x : f32[N]) -> (y : f32[N]) { y = x * x } graph b[N](x : f32[N]) -> (y : f32[N]) { y = x + x }"))


def test_a_gradient_has_the_axes_of_its_tensor():
    forward = "graph g[M, N](x : f32[M, N]) -> (y : f32[M, N]) { y = x * 2 }"

    def backward(outputs):
        return lambda: fusec.torch.op(forward, backward=f"graph b[A, B](dy : f32[A, B]) -> ({outputs}")

    backward("dx : f32[A, B]) { dx = dy * 2 }")()
    backward("dx : f64[A, B]) { dx = f64(dy) * 2 }")()
    refused("b: dx is f32.B., but x is f32.M, N. in g: a gradient has its tensor's axes",
            backward("dx : f32[B]) { dx = sum[A](dy) }"))
    refused("b: dx is f32.A., but", backward("dx : f32[A]) { dx = sum[B](dy) }"))


def test_gradients_that_do_not_exist(tensors):
    x = tensors[0]
    if not derives():
        plain = fusec.torch.op("graph plain[M, N](x : f32[M, N]) -> (y : f32[M, N]) { y = x * x }")
        refused("an input requires grad, and there is no backward pass", lambda: plain(x))
        same([plain(x.detach())], [x * x])
    whole = fusec.torch.op("graph whole[M, N](x : f32[M, N]) -> (y : i64[M, N]) { y = i64(x) }")
    refused("an input requires grad, and there is no backward pass", lambda: whole(x))
    part = fusec.torch.op("graph part[M, N](x : f32[M, N], w : f32[N]) -> (y : f32[M, N]) { y = x * w }\n"
                          "graph part_bwd[M, N](dy : f32[M, N], w : f32[N]) -> (dx : f32[M, N]) { dx = dy * w }")
    refused("w requires grad, but part_bwd has no output dw", lambda: part(x, tensors[1]))
    y = part(x, tensors[1].detach())
    same(torch.autograd.grad(y.sum(), [x]), [tensors[1].detach().expand(x.shape)])


MASKED = """
graph masked[M, N](x : f32[M, N], mask : bool[N], s : f32 = 1) -> (y : f32[M, N]) { y = where(mask, x * s, 0.0) }
graph masked_bwd[M, N](mask : bool[N], dy : f32[M, N], s : f32 = 1) -> (dx : f32[M, N]) { dx = where(mask, dy * s, 0.0) }"""


def test_scalars_and_masks_have_no_gradient(tensors):
    x, mask = tensors[0], torch.ones(tensors[0].shape[-1], dtype=torch.bool)
    masked = fusec.torch.op(MASKED)
    number = torch.tensor(2.0)
    same([masked(x, mask, s=number)], [x * 2])
    refused(r"s requires grad, but it is a scalar, which has no gradient: declare it as a tensor, s : f32\[\]",
            lambda: masked(x, mask, s=number.requires_grad_()))
    refused("s is a str, not a number", lambda: masked(x, mask, s="a"))
    refused("s is a list, not a number", lambda: masked(x, mask, s=[1.0]))
    # another dtype is told before a gradient that it cannot have
    refused("mask is f32, the graph declares bool", lambda: masked(x, torch.ones(mask.shape, requires_grad=True)))
    forward = fusec.Program(MASKED.split("graph masked_bwd")[0])
    refused(r"ds is the gradient of a scalar of masked, .*declare it as a tensor there, s : f32\[\]",
            lambda: fusec.torch.op(forward, backward=MASKED.replace("dx : f32[M, N])", "dx : f32[M, N], ds : f32[])").replace(
                "dy * s, 0.0) }", "dy * s, 0.0) ds = sum[M, N](dy) }"), backward_graph="masked_bwd", graph="masked"))
    refused("dmask: mask is bool in masked, which has no gradient",
            lambda: fusec.torch.op(forward, backward=MASKED.replace("dx : f32[M, N])", "dx : f32[M, N], dmask : f32[N])").replace(
                "dy * s, 0.0) }", "dy * s, 0.0) dmask = sum[M](dy) }"), backward_graph="masked_bwd", graph="masked"))


def test_the_gradient_of_a_gradient(layer_norm, tensors):
    (dx,) = torch.autograd.grad(layer_norm(*tensors)[0].square().sum(), [tensors[0]], create_graph=True)
    same([dx], torch.autograd.grad(theirs(*tensors).square().sum(), [tensors[0]]), 1e-3)
    if not derives():
        refused("no gradient of its gradient: layernorm_bwd takes mean", lambda: torch.autograd.grad(dx.sum(), [tensors[0]]))


@pytest.mark.skipif(not derives(), reason="this libfusec derives no gradients")
def test_derived_gradients():
    exact = fusec.torch.op(EXAMPLES / "layernorm.fuse", dtypes={"bf16": "f64", "f32": "f64"})
    torch.manual_seed(0)
    tensors = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 8), (8,), (8,))]
    assert torch.autograd.gradcheck(lambda *t: exact(*t)[0], tensors)
    assert torch.autograd.gradgradcheck(lambda *t: exact(*t)[0], tensors)
    softmax = fusec.torch.op('import "std" graph softmax[M, N](x : f64[M, N]) -> (y : f64[M, N]) { y = softmax[N](x) }')
    assert torch.autograd.gradcheck(softmax, tensors[:1])
    assert torch.autograd.gradgradcheck(softmax, tensors[:1])


def test_operators_survive_copies(layer_norm):
    assert copy.deepcopy(layer_norm) is layer_norm
    module = fusec.torch.RMSNorm(8)
    assert torch.equal(copy.deepcopy(module)(torch.ones(2, 8)), module(torch.ones(2, 8)))


def test_slow_failing_calls_hold_memory(layer_norm, tensors):
    x, gamma, beta = [t.detach() for t in tensors]
    short = beta[:3]
    before = 0
    for i in range(100_000):
        try:
            layer_norm(x, gamma, short)
        except fusec.Error:
            pass
        if i == 10_000:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096    # KiB
