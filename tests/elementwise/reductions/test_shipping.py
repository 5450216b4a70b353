"""Functions that reduce, with their gradients, in libraries, wheels, shared libraries and C++."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew
from culaunch.testing import use_driver


@ew.fuse
def layer_norm(x, weight, bias, eps=1e-5):
    """Normalize rows."""
    apart = x - ew.mean(x, axis=-1, keepdims=True)
    scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + eps)
    return apart * scale * weight + bias


@ew.fuse
def moments(x):
    return ew.sum(x), ew.argmax(x, axis=0)


times = ew.ReductionKernel("T x", "T y", "x", "a * b", "y = a", "1", "times")


@cl.function
def product(x):
    """Multiply the elements of rows."""
    return times(x, axis=-1)


# Parts of a warp, a warp, blocks, a row that is read again, rows of several blocks, columns.
SHAPES = [(6, 40), (5, 7), (3, 1000), (2, 4100), (1, 70000), (700, 17)]


def arguments(shape):
    random = np.random.default_rng(0)
    x = random.uniform(0.9, 1.1, shape).astype(np.float32)
    weight = random.standard_normal(shape[1]).astype(np.float32)
    return x, weight, weight + 1


@pytest.fixture(scope="module")
def called():
    """Functions, and their results for every shape: the paths that are saved."""
    with use_driver("emulator"):
        return called_functions()


def called_functions():
    host = layer_norm.as_function(backward="auto")
    gradient = host._gradient
    functions = [host, gradient.forward, gradient.function, moments.as_function(), product]
    return functions, {shape: results(functions, shape) for shape in SHAPES}


def results(functions, shape):
    host, forward, backward, of_columns, rows = functions
    x, weight, bias = arguments(shape)
    y, *saved = forward(x, weight, bias, 1e-5)
    np.testing.assert_array_equal(y, host(x, weight, bias))
    gradients = backward(x, *saved, x, weight, bias, 1e-5)
    return y, *saved, *gradients, *of_columns(x), rows(x)


def compare(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.fixture(scope="module")
def library(called, tmp_path_factory):
    path = tmp_path_factory.mktemp("norms") / "norms.culib"
    with use_driver("emulator"):
        cl.ship.save(called[0], path)
    return path


def test_the_results_are_right(called):
    for shape, (y, mean, _, dx, *_, total, where, rows) in called[1].items():
        x, weight, bias = (one.astype(np.float64) for one in arguments(shape))
        normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(y, normal * weight + bias, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(mean, x.mean(-1), rtol=1e-4)
        assert dx.shape == shape
        np.testing.assert_allclose(total, x.sum(), rtol=1e-5)
        np.testing.assert_array_equal(where, x.argmax(0))
        np.testing.assert_allclose(rows, x.prod(-1), rtol=1e-3, atol=1e-37)


def test_a_library(called, library):
    loaded = cl.ship.load_library(library)
    names = ("layer_norm", "layer_norm_forward", "layer_norm_backward", "moments", "product")
    functions = [loaded[name] for name in names]
    for shape, wanted in called[1].items():
        compare(results(functions, shape), wanted)


USE = """
import numpy as np, torch
import my_norms, my_norms.torch
x, w = torch.rand(6, 40), torch.rand(40)
wanted = torch.nn.functional.layer_norm(x, (40,), w, w + 1)
close = torch.testing.assert_close
close(my_norms.layer_norm(x, w, w + 1), wanted, rtol=1e-4, atol=1e-5)
op = torch.ops.my_norms.layer_norm
close(op(x, w, w + 1), wanted, rtol=1e-4, atol=1e-5)
close(torch.vmap(torch.ops.my_norms.product)(x[None]), x.prod(-1)[None])
leaf = x.clone().requires_grad_()
(found,) = torch.autograd.grad(op(leaf, w, w + 1).square().sum(), leaf)
eager = torch.nn.functional.layer_norm(leaf, (40,), w, w + 1)
close(found, torch.autograd.grad(eager.square().sum(), leaf)[0], rtol=1e-3, atol=1e-4)
"""
OF_JAX = """
import jax, my_norms.jax
found = my_norms.jax.product(jax.numpy.asarray(x.numpy()))
np.testing.assert_allclose(found, x.prod(-1), rtol=1e-5)
"""


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_a_wheel(library, tmp_path):
    wheel = cl.ship.package(library, name="my-norms", version="1.0", output=tmp_path)
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    stubs = (site / "my_norms" / "__init__.pyi").read_text()
    assert "def layer_norm(x: _Array, weight: _Array, bias: _Array, eps: float = ...)" in stubs
    assert '"""Normalize rows."""' in stubs
    environment = os.environ | {"PYTHONPATH": str(site), "CULAUNCH_DRIVER": "emulator"}
    program = USE + OF_JAX if has_jax() else USE
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


def has_jax():
    import importlib.util

    return importlib.util.find_spec("jax") is not None


@pytest.mark.slow
@pytest.mark.needs("tvm_ffi", "g++", "nvrtc")
def test_a_shared_library(called, tmp_path):
    tvm_ffi = pytest.importorskip("tvm_ffi")
    cl.ship.export(called[0], tmp_path / "libnorms.so", flags=["-O0"])
    module = tvm_ffi.load_module(str(tmp_path / "libnorms.so"))
    for shape, wanted in called[1].items():
        y, *saved, dx, dw, db, total, where, rows = found = [np.empty_like(one) for one in wanted]
        x, weight, bias = arguments(shape)
        module.layer_norm_forward_into(y, *saved, x, weight, bias, 1e-5)
        module.layer_norm_backward_into(dx, dw, db, x, *saved, x, weight, bias, 1e-5)
        module.moments_into(total, where, x)
        module.product_into(rows, x)
        compare(found, wanted)
