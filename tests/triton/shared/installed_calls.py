"""Calls of an installed kernel that adds, and what was counted of them."""

import torch

from culaunch.triton import report

ADD = "installed_kernels.add"


def arrays(n=100):
    return torch.arange(float(n)), torch.ones(n), torch.zeros(n)


def counts():
    return {one.name: (one.native, one.triton) for one in report().kernels}


def check(kernel, grid=(2,), **more):
    x, y, out = arrays()
    compiled = kernel[grid](x, y, out, 100, **more)
    assert torch.equal(out, x + y)
    return compiled
