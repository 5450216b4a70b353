"""PyTorch's own kernels, in eager mode and in compiled regions, on the emulated driver.

`python pytorch_program.py FOLDER triton|installed` prints results, graphs and numbers of graphs.
"""

import functools
import hashlib
import os
import re
import sys

import own_driver
import pytorchs_kernels
import torch
import torch.utils._triton
import torch.utils.checkpoint
import triton
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.testing import CompileCounter
from torch._functorch.aot_autograd import make_boxed_func
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

KERNELS = pytorchs_kernels.load()
N = 100


def lazily(meta):
    return (triton.cdiv(N, meta["BLOCK_SIZE"]),)


def launched(name, *more, **keywords):
    """Make a function that launches a kernel of two arrays."""

    def call(x, y):
        out = torch.zeros_like(x)
        getattr(KERNELS, name)[lazily](x, y, out, x.numel(), *more, **keywords)
        return out

    return call


def none_and_one(x, y):
    out = torch.zeros_like(x)
    KERNELS.add_kernel_with_none_param_and_equal_to_1_arg[lazily](
        x, None, out, N, x.stride(0), ARGS_PASSED="one", BLOCK_SIZE=32
    )
    return out


def in_another_order(x, y):
    out = torch.zeros_like(x)
    KERNELS.add_kernel_autotuned_weird_param_order[lazily](
        in_ptr0=x, in_ptr1=y, n_elements=N, out_ptr=out
    )
    return out


def in_place(x, y):
    KERNELS.mul2_inplace_kernel[lazily](x, N, BLOCK_SIZE=16)
    return x + y


def with_quotes(x, y):
    out = torch.zeros_like(x)
    KERNELS.kernel_inline_asm_single_quotes[lazily](x, out, N, BLOCK_SIZE=16)
    return out


CALLS = {
    "plain": launched("add_kernel", BLOCK_SIZE=16),
    "tuned": launched("add_kernel_autotuned"),
    "block pointers": launched("add_kernel_with_block_ptr", BLOCK_SIZE=16),
    "a bool": launched("add_kernel_with_boolean_param", True, BLOCK_SIZE=16),
    "too many": launched("add_kernel", 16, 17),
    "of a configuration": launched("add_kernel_autotuned", BLOCK_SIZE=16),
    "none and one": none_and_one,
    "in another order": in_another_order,
    "in place": in_place,
    "quotes": with_quotes,
}


class Sum(torch.autograd.Function):
    """Kernels in both passes."""

    @staticmethod
    def forward(context, x, y):
        context.save_for_backward(y)
        return CALLS["plain"](x, y)

    @staticmethod
    def backward(context, gradient):
        (y,) = context.saved_tensors
        return CALLS["plain"](gradient.contiguous(), y), None


def arrays(n=N):
    x = torch.arange(float(n))
    return x, x * 0.5 + 1


def digest(tensor):
    data = tensor.detach().contiguous().view(torch.uint8).numpy().tobytes()
    return f"{tuple(tensor.shape)} {tensor.dtype} {hashlib.sha256(data).hexdigest()[:16]}"


def attempt(call):
    try:
        return digest(call(*arrays()))
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"


def show(*values):
    text = re.sub(r"0x[0-9a-f]+", "..", " ".join(str(one) for one in values))
    print(text.replace("\n\n", "\n"), flush=True)


def compiled(name, call):
    """Show what comes of a region, the graphs of it, and what they have for constants."""
    graphs = []

    def note(module, inputs):
        graphs.append(module.print_readable(print_output=False))
        return make_boxed_func(module.forward)

    torch._dynamo.reset()
    kernel_side_table.reset_table()
    region = torch.compile(call, backend=aot_autograd(fw_compiler=note), fullgraph=True)
    show(name, "compiled", attempt(region), attempt(region))
    show(*graphs, kernel_side_table.constant_args)


def checkpointed():
    """Show outputs and gradients where the forward pass runs twice."""

    def region(x, y):
        return torch.utils.checkpoint.checkpoint(
            lambda x, y: Sum.apply(x, y).sin() * x, x, y, use_reentrant=False
        )

    for call in (region, torch.compile(region, backend="aot_eager", fullgraph=True)):
        x, y = arrays()
        found = call(x.requires_grad_(), y)
        found.sum().backward()
        show("checkpointed", digest(found), digest(x.grad))


def counted(steps):
    """Show how many graphs are made of one function while sizes and installations change."""
    count = CompileCounter()
    region = torch.compile(lambda x, y: CALLS["plain"](x, y) + CALLS["tuned"](y, x), backend=count)
    for step, n in zip(steps, (N, N, 60, 70, N), strict=True):
        step()
        show("counted", digest(region(*arrays(n))), count.frame_count, count.op_count)


def given_up():
    """Show what comes of launches that Dynamo leaves to Python; their graphs may differ."""

    def region(x, y):
        out = torch.zeros_like(x)
        functools.partial(KERNELS.add_kernel[lazily], x, y)(out, x.numel(), BLOCK_SIZE=16)
        torch._dynamo.graph_break()
        outside(out, y)
        return out + 1

    call = torch.compile(region, backend="aot_eager")
    show("given up", attempt(call), attempt(call))


@torch.compiler.disable
def outside(out, y):
    KERNELS.add_kernel[lazily](out, y, out, out.numel(), BLOCK_SIZE=16)


def main(folder, how):
    os.environ["CULAUNCH_DRIVER"] = "emulator"
    torch.utils._triton.has_triton = lambda: True  # without a GPU it says no
    own_driver.build(folder)
    steps = [lambda: None] * 5
    if how == "installed":
        from culaunch.triton import install, report, uninstall

        install()
        steps = [install, uninstall, install, lambda: install(exclude="*.add_kernel"), install]
    triton.runtime.driver.set_active(own_driver.OwnDriver())
    for name, call in CALLS.items():
        show(name, *(attempt(call) for _ in range(3)))
        compiled(name, call)
    torch._dynamo.reset()
    checkpointed()
    given_up()
    counted(steps)
    if how == "installed":
        print(report(), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
