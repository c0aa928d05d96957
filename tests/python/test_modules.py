"""The modules and functions of fusec.torch beside torch's: results, gradients, state dicts, compiled."""
import pytest
import torch
import torch.nn.functional as F

import fusec
import fusec.torch as ft

WIDTH = 32


def compare(ours, theirs, *tensors, tolerance=5e-6):
    """The same results and, for random gradients of them, the same gradients of all float tensors."""
    sides = []
    for call in (ours, theirs):
        leaves = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in tensors]
        found = call(*leaves)
        found = found if isinstance(found, tuple) else (found,)
        torch.manual_seed(1)
        gradients = [torch.randn(t.shape, dtype=t.dtype) for t in found]
        sides.append([*found, *torch.autograd.grad(found, [t for t in leaves if t.requires_grad], gradients)])
    for a, b in zip(*sides, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(2, 3, WIDTH)


@pytest.mark.parametrize("arguments", [{}, {"bias": False}, {"elementwise_affine": False}, {"eps": 0.1}])
def test_layer_norm(x, arguments):
    ours, theirs = ft.LayerNorm(WIDTH, **arguments), torch.nn.LayerNorm(WIDTH, **arguments)
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter)
    theirs.load_state_dict(ours.state_dict())
    compare(ours, theirs, x)


@pytest.mark.parametrize("arguments", [{}, {"elementwise_affine": False}, {"eps": 0.1}])
@pytest.mark.parametrize("shape", [WIDTH, (3, WIDTH)])
def test_rms_norm(x, arguments, shape):
    ours, theirs = ft.RMSNorm(shape, **arguments), torch.nn.RMSNorm(shape, **arguments)
    ours.load_state_dict(theirs.state_dict())
    compare(ours, theirs, x)


def test_zero_centred(x):
    module = ft.RMSNorm(WIDTH, zero_centered=True)
    assert torch.count_nonzero(module.weight) == 0 and "zero_centered=True" in repr(module)
    torch.nn.init.normal_(module.weight)
    compare(module, lambda x: F.rms_norm(x, (WIDTH,), 1 + module.weight), x)
    (dw,) = torch.autograd.grad(module(x).square().sum(), [module.weight])
    (same,) = torch.autograd.grad(F.rms_norm(x, (WIDTH,), 1 + module.weight).square().sum(), [module.weight])
    torch.testing.assert_close(dw, same, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("biased", [False, True])
def test_residual_and_norm(x, biased):
    residual, bias = torch.randn_like(x), [torch.randn(WIDTH)] * biased

    def total(x, residual, *bias):
        return x + residual + (bias[0] if bias else 0)

    norm = ft.AddLayerNorm(WIDTH)
    compare(norm, lambda *t: (total(*t), F.layer_norm(total(*t), (WIDTH,))), x, residual, *bias)
    plain = ft.AddLayerNorm(WIDTH, elementwise_affine=False)
    compare(plain, lambda *t: (total(*t), F.layer_norm(total(*t), (WIDTH,))), x, residual, *bias)
    for zero in (False, True):
        norm = ft.AddRMSNorm(WIDTH, eps=1e-6, zero_centered=zero)
        compare(norm, lambda *t: (total(*t), F.rms_norm(total(*t), (WIDTH,), eps=1e-6)), x, residual, *bias)


def test_one_of_the_residuals_is_frozen(x):
    norm, residual = ft.AddRMSNorm(WIDTH), torch.randn_like(x, requires_grad=True)
    (alone,) = torch.autograd.grad(norm(x, residual)[1].square().sum(), [residual])
    both = x.clone().requires_grad_()
    first, second = torch.autograd.grad(norm(both, residual)[1].square().sum(), [both, residual])
    assert torch.equal(first, second) and torch.equal(first, alone)


def test_one_row(x):
    """Of an input with no axis of rows, as torch takes it."""
    row, bias, other = x[0, 0], x[0, 1], x[0, 2]
    for ours, theirs in ((ft.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)), (ft.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)),
                         (ft.RMSNorm(WIDTH, elementwise_affine=False), torch.nn.RMSNorm(WIDTH)),
                         (ft.softmax, lambda x: torch.softmax(x, -1)), (ft.BiasGELU(WIDTH), F.gelu)):
        compare(ours, theirs, row)
    compare(ft.RMSNorm((3, WIDTH)), torch.nn.RMSNorm((3, WIDTH)), x[0])
    compare(ft.AddRMSNorm(WIDTH, eps=1e-6), lambda x, r: (x + r, F.rms_norm(x + r, (WIDTH,), eps=1e-6)), row, other)
    compare(ft.bias_gelu, lambda x, b: F.gelu(x + b), row, bias)
    compare(ft.swiglu, lambda gate, up: F.silu(gate) * up, row, other)
    compare(ft.swiglu, lambda x: F.silu(x[:WIDTH // 2]) * x[WIDTH // 2:], row)
    seen = torch.ones(3, WIDTH, dtype=torch.bool).tril(WIDTH - 3)
    compare(lambda s: ft.softmax(s, causal=True), lambda s: torch.softmax(s.masked_fill(~seen, -torch.inf), -1), x[0])
    for reduction in ("mean", "none"):
        compare(lambda x: ft.cross_entropy(x, torch.tensor(3), reduction=reduction),
                lambda x: F.cross_entropy(x, torch.tensor(3), reduction=reduction), row)


def test_gradients_of_gradients(x):
    """Of a sum, whose gradient is one number with strides 0."""
    for ours, theirs in ((ft.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)), (ft.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH))):
        leaf = x.clone().requires_grad_()
        second = []
        for norm in (ours, theirs):
            (dx,) = torch.autograd.grad(norm(leaf * leaf).sum(), [leaf], create_graph=True)
            second += [dx, *torch.autograd.grad(dx.square().sum(), [leaf])]
        torch.testing.assert_close(second[:2], second[2:], rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(torch.func.grad(lambda x: ours(x).sum())(x), torch.func.grad(lambda x: theirs(x).sum())(x),
                                   rtol=1e-4, atol=1e-5)


def test_activations(x):
    other, bias = torch.randn_like(x), torch.randn(WIDTH)
    compare(ft.bias_gelu, lambda x, b: F.gelu(x + b), x, bias)
    compare(lambda x, b: ft.bias_gelu(x, b, "tanh"), lambda x, b: F.gelu(x + b, approximate="tanh"), x, bias)
    compare(ft.BiasGELU(WIDTH), F.gelu, x)
    compare(ft.swiglu, lambda gate, up: F.silu(gate) * up, x, other)
    half = WIDTH // 2
    compare(ft.SwiGLU(), lambda x: F.silu(x[..., :half]) * x[..., half:], x)
    compare(lambda x: ft.swiglu(x[:, :2]), lambda x: F.silu(x[:, :2, :half]) * x[:, :2, half:], x)
    with torch.no_grad():
        torch.testing.assert_close(ft.swiglu(x.double()), F.silu(x[..., :half].double()) * x[..., half:].double())


def with_sink(scores, sink):
    extra = sink.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return torch.softmax(torch.cat([scores, extra], -1), -1)[..., :-1]


def test_softmax():
    torch.manual_seed(0)
    scores, sink = torch.randn(2, 3, 5, 7), torch.randn(3)
    causal = torch.ones(5, 7, dtype=torch.bool).tril(2)
    mask = torch.rand(2, 5, 7) > 0.3
    mask[..., 0] = True
    compare(lambda s: ft.softmax(s, 0.5), lambda s: torch.softmax(s * 0.5, -1), scores)
    compare(lambda s: ft.softmax(s, 0.5, causal=True), lambda s: torch.softmax((s * 0.5).masked_fill(~causal, -torch.inf), -1), scores)
    for given in (mask, mask[:, None], mask[0]):
        full = given[:, None] if given.dim() == 3 else given
        compare(lambda s: ft.softmax(s, mask=given), lambda s: torch.softmax(s.masked_fill(~full, -torch.inf), -1), scores)
    compare(lambda s: ft.softmax(s, mask=mask, causal=True),
            lambda s: torch.softmax(s.masked_fill(~(mask[:, None] & causal), -torch.inf), -1), scores)
    compare(lambda s, k: ft.softmax(s, 0.5, sink=k), lambda s, k: with_sink(s * 0.5, k), scores, sink)
    compare(lambda s, k: ft.softmax(s, sink=k, causal=True),
            lambda s, k: with_sink(s.masked_fill(~causal, -torch.inf), k), scores, sink)
    compare(lambda s, k: ft.softmax(s, sink=k, mask=mask),
            lambda s, k: with_sink(s.masked_fill(~mask[:, None], -torch.inf), k), scores, sink)
    nothing = torch.zeros(5, 7, dtype=torch.bool)
    assert torch.count_nonzero(ft.softmax(scores, mask=nothing)) == 0


def test_cross_entropy():
    torch.manual_seed(0)
    logits, target = torch.randn(6, 11), torch.tensor([1, 4, -100, 0, 10, 3])
    for reduction in ("mean", "sum", "none"):
        compare(lambda x: ft.cross_entropy(x, target, label_smoothing=0.1, reduction=reduction),
                lambda x: F.cross_entropy(x, target, label_smoothing=0.1, reduction=reduction), logits)
    compare(ft.CrossEntropyLoss(ignore_index=4), lambda x, t: F.cross_entropy(x, t, ignore_index=4), logits, target.clamp(min=0))

    def with_z(x):
        each = F.cross_entropy(x, target, reduction="none") + 0.01 * torch.logsumexp(x, -1) ** 2
        return each[target != -100].mean()

    compare(lambda x: ft.cross_entropy(x, target, z_loss=0.01), with_z, logits)
    compare(lambda x: ft.cross_entropy(x, target.view(2, 3)), lambda x: F.cross_entropy(x.view(6, 11), target), logits.view(2, 3, 11))
    assert ft.cross_entropy(logits, target.masked_fill(target == 3, 11)).isnan()


def test_group_norm():
    torch.manual_seed(0)
    image, weight, bias = torch.randn(2, 6, 4, 5), torch.randn(6), torch.randn(6)
    compare(lambda *t: ft.group_norm(t[0], 3, *t[1:]), lambda *t: F.group_norm(t[0], 3, *t[1:]), image, weight, bias)
    ours, theirs = ft.GroupNorm(2, 6), torch.nn.GroupNorm(2, 6)
    ours.load_state_dict(theirs.state_dict())
    compare(ours, theirs, image)
    compare(ours, theirs, image.to(memory_format=torch.channels_last))


def test_adaptive_layer_norm():
    torch.manual_seed(0)
    x, residual = torch.randn(2, 2, 4, WIDTH)
    gate, shift, scale = torch.randn(3, 2, WIDTH)

    def theirs(x, shift, scale):
        return F.layer_norm(x, (WIDTH,), eps=1e-6) * (1 + scale[:, None]) + shift[:, None]

    def gated(x, residual, gate, shift, scale):
        h = residual + gate[:, None] * x
        return h, theirs(h, shift, scale)

    module = ft.AdaLayerNorm(WIDTH)
    compare(module, theirs, x, shift, scale)
    compare(lambda x, r, g, a, b: module(x, a, b, g, r), gated, x, residual, gate, shift, scale)


@pytest.mark.parametrize("rows", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes(x, rows):
    """Weights keep their dtype; results are rounded once."""
    tolerance = {torch.bfloat16: 2 ** -7, torch.float16: 2 ** -10, torch.float64: 1e-12}[rows]
    for weights in (rows, torch.float32):
        norm = ft.LayerNorm(WIDTH, dtype=weights)
        y = norm(x.to(rows))
        assert y.dtype == rows
        exact = F.layer_norm(x.to(rows).double(), (WIDTH,))
        torch.testing.assert_close(y.double(), exact, rtol=tolerance, atol=tolerance)
        y.sum().backward()
        assert norm.weight.grad.dtype == weights
    half = ft.swiglu(x.to(rows))
    assert half.dtype == rows
    loss = ft.cross_entropy(x.to(rows), torch.zeros(2, 3, dtype=torch.int64))
    assert loss.dtype == (torch.float64 if rows == torch.float64 else torch.float32)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = ft.AddRMSNorm(WIDTH), torch.nn.Linear(WIDTH, 64), torch.nn.Linear(32, WIDTH)

    def forward(self, x, residual):
        h, y = self.norm(x, residual)
        return ft.cross_entropy(self.down(ft.swiglu(self.up(y))) + h, torch.zeros(x.shape[:-1], dtype=torch.int64))


def test_compiled_block(x):
    torch._dynamo.reset()
    block = Block()
    compiled = torch.compile(block, fullgraph=True, dynamic=True)
    compare(compiled, block, x, torch.randn_like(x), tolerance=1e-5)
    compare(compiled, block, x[:1], torch.randn_like(x[:1]), tolerance=1e-5)


def test_what_is_refused(x):
    for message, call in {
        "norm over .32. was given rows of .16.": lambda: ft.LayerNorm(WIDTH)(x[..., :16]),
        "31 columns have no halves": lambda: ft.swiglu(x[..., :31]),
        "x is i64: layernorm takes f64, f32, f16 or bf16": lambda: ft.LayerNorm(WIDTH)(x.long()),
        "bias is i64: bias_gelu takes f64, f32, f16 or bf16": lambda: ft.bias_gelu(x, x[0, 0].long()),
        "x is torch.complex64: cross_entropy takes f64": lambda: ft.cross_entropy(x.to(torch.complex64), x),
        "approximate is none or tanh": lambda: ft.bias_gelu(x, x[0, 0], "fast"),
        "reduction is mean, sum or none": lambda: ft.cross_entropy(x, x, reduction="max"),
        "label is f32, the graph declares i64": lambda: ft.cross_entropy(x, x[..., 0]),
        "no axis of channels in 5 groups": lambda: ft.group_norm(x, 5, x, x),
        "takes scores .B, H, Q, K.": lambda: ft.softmax(x, sink=x),
        "a mask is a bool tensor": lambda: ft.softmax(x[None], mask=x),
        "needs weight and bias": lambda: ft.GroupNorm(1, 3, affine=False)(x),
        "axis B is 3 in shift but 2 in x": lambda: ft.ada_layer_norm(x, torch.ones(3, WIDTH), torch.ones(3, WIDTH)),
    }.items():
        with pytest.raises(fusec.Error, match=message):
            call()
