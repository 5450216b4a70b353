"""Call Triton's own autotuner with a hook that zeroes, and the set that was saved of it, alike."""

import os
import random
import sys

import decorated_kernels
import own_driver
import torch
import triton

import culaunch as cl
from culaunch.triton import compile  # noqa: A004


def zero(kw):
    kw["out_ptr"].zero_()


def base():
    return torch.arange(1.0, 9.0)


TARGETS = [
    base, lambda: base()[4:], lambda: base().view(2, 4), lambda: base()[::2],
    lambda: base().view(2, 4).t(), lambda: base()[3], lambda: torch.nn.Parameter(base()),
    lambda: base().as_strided((2, 2), (1, 1)), lambda: base().expand(2, 8),
    lambda: base().as_strided((4, 1), (1, 7)), lambda: base().requires_grad_().detach()[2:],
]  # fmt: skip
GRIDS = [(1,), (2,), (1, 1), lambda meta: (1,), (0,)]


def call(kernel, grid, target, n, follows):
    """Return what a call raised, what is in the memory of its target then, and its version."""
    raised = None
    try:
        with torch.set_grad_enabled(follows):
            kernel[grid](torch.arange(64.0), target, n)
    except RuntimeError as error:
        raised = str(error)
    whole = target if target._base is None else target._base
    return raised, whole.detach().tolist(), target._version


def main(folder, count):
    """Print how many calls there were, and those that differ."""
    os.environ["CULAUNCH_DRIVER"] = "emulator"
    own_driver.build(folder)
    cl.driver.set_driver("emulator")
    signature = "*fp32, *fp32, i32"
    saved = compile(decorated_kernels.tuned(zero, (64,)), signature, arch="sm_80", keep_ptx=True)
    triton.runtime.driver.set_active(own_driver.OwnDriver())
    tuner = decorated_kernels.tuned(zero, (64,))
    draw, raised = random.Random(5), 0
    for _ in range(int(count)):
        make, grid, n = draw.choice(TARGETS), draw.choice(GRIDS), draw.choice([16, 32, 64])
        follows = draw.random() < 0.5
        one, other = (call(kernel, grid, make(), n, follows) for kernel in (tuner, saved))
        raised += one[0] is not None
        if one != other:
            print("differs:", TARGETS.index(make), grid, n, follows, one, other)
    print(count, raised > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
