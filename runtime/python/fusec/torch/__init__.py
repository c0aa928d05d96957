"""fusec on torch: operators of .fuse programs, and modules made of them.

    layer_norm = fusec.torch.op("layernorm.fuse", backward="layernorm_bwd.fuse")
    norm = fusec.torch.RMSNorm(4096, device="cuda")     # in place of torch.nn.RMSNorm

Operators work in eager mode, autograd, torch.compile(fullgraph=True), torch.export, under fake tensors, in CUDA
graphs, and on DTensors whose rows are sharded.
"""
from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError("fusec.torch needs torch 2.7 or later: pip install torch")

from ._modules import (AdaLayerNorm, AddLayerNorm, AddRMSNorm, BiasGELU, CrossEntropyLoss, GroupNorm, LayerNorm, RMSNorm,
                       SwiGLU, ada_layer_norm, bias_gelu, cross_entropy, gate_ada_layer_norm, group_norm, softmax, swiglu)
from ._op import Operator, op

__all__ = ["AdaLayerNorm", "AddLayerNorm", "AddRMSNorm", "BiasGELU", "CrossEntropyLoss", "GroupNorm", "LayerNorm",
           "Operator", "RMSNorm", "SwiGLU", "ada_layer_norm", "bias_gelu", "cross_entropy", "gate_ada_layer_norm",
           "group_norm", "op", "softmax", "swiglu"]
