"""Habits of CuPy, torch and NumPy that culaunch refuses: each message names what does it."""

import re

import numpy as np
import pytest

import culaunch as cl
import culaunch.elementwise as ew

SOURCE = 'extern "C" __global__ void one(float* x) { *x = 1; }'


@pytest.fixture
def on_emulator(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")


@pytest.fixture
def x(on_emulator):
    return cl.to_device(np.arange(4, dtype="f4"))


@pytest.mark.parametrize(
    ("formula", "word"),
    [
        (lambda x: x + x, "+"), (lambda x: x - 1, "-"), (lambda x: 2.5 * x, "*"),
        (lambda x: 1 / x, "/"), (lambda x: x**2, "**"), (lambda x: x @ x, "@"),
        (lambda x: -x, "-"), (lambda x: abs(x), "abs()"), (lambda x: x < 1, "<"),
        (lambda x: x >= x, ">="), (lambda x: x & 1, "&"), (lambda x: 3 % x, "%"),
    ],
)  # fmt: skip
def test_arithmetic_names_what_computes(x, formula, word):
    with pytest.raises(TypeError) as caught:
        formula(x)
    assert f"a DeviceArray has no arithmetic (got {word}): " in str(caught.value)
    assert "culaunch.elementwise.fuse" in str(caught.value)
    assert "torch.from_dlpack(array)" in str(caught.value)


def test_numpy_still_copies_one_to_the_host(x):
    host = np.ones(4, "f4")
    for total in (host + x, x + host, np.add(x, host)):
        np.testing.assert_array_equal(total, [1, 2, 3, 4])
    assert np.sum(x) == 6


def test_an_array_is_no_one_s_equal_and_stays_a_key(x):
    assert {x: 1}[x] == 1
    assert x != cl.empty(4)


def test_an_item_is_not_assigned(x):
    with pytest.raises(TypeError, match=r"array\.fill\(value\), .*array\[start:stop\]\.copy_from"):
        x[:] = 1
    x[1:3].copy_from(np.full(2, 7, "f4"))
    np.testing.assert_array_equal(x.numpy(), [0, 7, 7, 3])


@pytest.mark.parametrize("name", ["sum", "max", "mean", "argmin", "all"])
def test_reductions_are_those_of_fused_functions(x, name):
    with pytest.raises(
        AttributeError, match=rf"fused function, with culaunch\.elementwise\.{name}, or"
    ):
        getattr(x, name)
    reduce = getattr(ew, name)
    fused = ew.fuse(lambda v: reduce(v))
    assert fused(x).numpy() == getattr(np, name)(x.numpy())


def test_each_kind_of_kernel_of_cupy_has_a_hint():
    for theirs in ("RawKernel", "RawModule", "ElementwiseKernel", "ReductionKernel"):
        with pytest.raises(AttributeError, match=": use culaunch"):
            getattr(cl, theirs)


@pytest.mark.needs("torch")
def test_the_advice_is_right(x):
    import torch

    over = torch.from_dlpack(x)
    assert over.sum() == 6
    assert (over.to(torch.float16) + over).tolist() == [0, 2, 4, 6]


def test_attributes_are_called(on_emulator):
    kernel = cl.load(cl.compile(SOURCE))["one"]
    with pytest.raises(TypeError, match=re.escape("kernel.attributes().registers")):
        kernel.attributes["num_regs"]
    with pytest.raises(TypeError, match=re.escape("as in kernel.attributes()")):
        kernel.attributes["lunch"]
    assert kernel.attributes().registers == kernel.attributes(device=0).registers > 0
    assert "Return the resources and limits of the kernel" in kernel.attributes.__doc__
