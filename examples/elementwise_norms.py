"""Softmax and layer norm as operators of torch: one kernel each, with gradients from the trace."""

# needs torch

import torch

import culaunch as cl
from culaunch import elementwise as ew


@ew.fuse
def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)


@ew.fuse
def layer_norm(x, weight, bias):
    apart = x - ew.mean(x, axis=-1, keepdims=True)
    scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + 1e-5)
    return apart * scale * weight + bias


softmax_op = cl.frameworks.torch_op("norms::softmax", softmax, backward="auto")
layer_norm_op = cl.frameworks.torch_op("norms::layer_norm", layer_norm, backward="auto")

device = "cuda" if cl.driver.driver_name() == "cuda" else "cpu"  # the emulator takes CPU tensors
x = torch.randn(64, 1000, device=device, requires_grad=True)
weight, bias = (torch.randn(1000, device=device, requires_grad=True) for _ in range(2))
grad = torch.randn_like(x)

for ours, theirs, arguments in (
    (softmax_op, lambda x: torch.softmax(x, -1), (x,)),
    (
        layer_norm_op,
        lambda x, w, b: torch.nn.functional.layer_norm(x, (1000,), w, b),
        (x, weight, bias),
    ),
):
    y, right = ours(*arguments), theirs(*arguments)
    torch.testing.assert_close(y, right)
    for one, other in zip(
        torch.autograd.grad(y, arguments, grad),
        torch.autograd.grad(right, arguments, grad),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
print("softmax and layer_norm: as torch has them, forward and backward")
