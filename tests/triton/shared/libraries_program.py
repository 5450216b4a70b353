"""Operators of Liger and flash-linear-attention, forward and backward, against what they should be.

Run in a process of its own: the libraries look at the device when they are imported.
"""

import sys

import torch

torch.cuda.get_device_name = lambda *_: "NVIDIA A100"
torch.cuda.get_device_capability = lambda *_: (8, 0)

import culaunch.triton  # noqa: E402

culaunch.triton.install()


def compare(name, call, reference, *inputs, tolerance=1e-4):
    """Compare outputs and gradients with those of a reference."""
    found, wanted = ([one.detach().clone().requires_grad_() for one in inputs] for _ in range(2))
    results = []
    for function, given in ((call, found), (reference, wanted)):
        output = function(*given)
        torch.manual_seed(1)
        (output * torch.randn(output.shape)).sum().backward()
        results.append(output)
    torch.testing.assert_close(
        *results, atol=tolerance, rtol=tolerance, msg=lambda m: f"{name}: {m}"
    )
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(
            one.grad, other.grad, atol=tolerance, rtol=tolerance, msg=lambda m: f"{name}: {m}"
        )


def liger():
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.softmax import LigerSoftmaxFunction
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction

    functional = torch.nn.functional
    x, y, weight = torch.randn(6, 96), torch.randn(6, 96), torch.randn(96)
    target = torch.randint(96, (6,))
    compare(
        "rms_norm", lambda x, w: LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False),
        lambda x, w: functional.rms_norm(x, (96,), w, 1e-6), x, weight,
    )  # fmt: skip
    compare(
        "layer_norm", lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, 1e-6),
        lambda x, w, b: functional.layer_norm(x, (96,), w, b, 1e-6), x, weight, weight,
    )  # fmt: skip
    compare("softmax", LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), x)
    compare("swiglu", LigerSiLUMulFunction.apply, lambda x, y: functional.silu(x) * y, x, y)
    compare(
        "cross_entropy", lambda x: LigerCrossEntropyFunction.apply(x * 1, target, None)[0],
        lambda x: functional.cross_entropy(x, target), x,
    )  # fmt: skip


def fla():
    from fla.modules.l2norm import l2norm
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule
    from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule
    from fla.ops.simple_gla import fused_recurrent_simple_gla
    from fla.ops.simple_gla.naive import naive_recurrent_simple_gla

    functional = torch.nn.functional
    q, k, v = (torch.randn(1, 8, 2, 16) for _ in range(3))
    gate = functional.logsigmoid(torch.randn(1, 8, 2))
    compare("l2norm", l2norm, lambda x: functional.normalize(x, dim=-1), q[0, 0])
    compare(
        "simple_gla", lambda q, k, v: fused_recurrent_simple_gla(q, k, v, gate)[0],
        lambda q, k, v: naive_recurrent_simple_gla(q, k, v, gate)[0], q, k, v, tolerance=1e-3,
    )  # fmt: skip
    with torch.no_grad():
        k = functional.normalize(k, dim=-1)
        beta = torch.rand(1, 8, 2)
        found = fused_recurrent_gated_delta_rule(q, k, v, gate, beta=beta, scale=0.25)[0]
        wanted = naive_recurrent_gated_delta_rule(q, k, v, beta, gate, scale=0.25)[0]
    torch.testing.assert_close(found, wanted, atol=1e-3, rtol=1e-3)


torch.manual_seed(0)
{"liger": liger, "fla": fla}[sys.argv[1]]()
found = culaunch.triton.report()
assert found.triton == 0, str(found)
assert found.native > 0
print(f"{len(found.kernels)} kernels, {found.native} launches")
