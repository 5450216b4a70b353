"""Functions that are made operators of PyTorch, on tensors of the CPU and the emulator."""

import itertools
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from bodies import make_scale
from torch_kernels import SOURCE

import culaunch as cl
from culaunch.testing import use_driver

_numbers = itertools.count()


@pytest.fixture(scope="session")
def image_of_two():
    names = [f"{name}<{kind}>" for name in ("scale", "multiply") for kind in ("float", "double")]
    return cl.compile(SOURCE, arch="compute_80", names=names)


@pytest.fixture(scope="session")
def loaded(image_of_two):
    # The driver is selected only here: the fixture outlives the tests of this folder.
    with use_driver("emulator"):
        return cl.load(image_of_two)


@pytest.fixture
def kernels(emulated, loaded):
    return loaded


@pytest.fixture
def name():
    """A name that no operator of this process has."""
    return f"culaunch_test::op{next(_numbers)}"


@pytest.fixture
def scale(kernels):
    return make_scale(kernels)


@pytest.fixture
def scale_in_place(kernels):
    @cl.function
    def scale_in_place(x, factor: float):
        n = x.size
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, 256), 256](x, x, factor, n)

    return scale_in_place


@pytest.fixture
def product(kernels):
    @cl.function
    def product(x: cl.Array("float32 | float64", "n"), y: cl.Array(cl.dtype_of("x"), "n")):
        z = cl.empty_like(x)
        kernels[f"multiply<{x.dtype}>"][cl.ceildiv(x.size, 64), 64](z, x, y, x.size)
        return z

    @product.backward
    @cl.function
    def product_backward(grad, x, y):
        return product(grad, y), product(grad, x)

    return product


@pytest.fixture
def everything(kernels):
    """A function with a parameter of each kind, and several results."""

    @cl.function
    def everything(
        x,
        w: cl.Array | None = None,
        *,
        count: int = 3,
        factor: float | None = None,
        word: str = "ab",
        flag: bool = False,
        dtype: cl.DType = "float32",
        xs: list[cl.Array] | None = None,
    ):
        y, z = cl.empty_like(x), cl.zeros((count, 2), dtype)
        other = x if w is None else w
        kernels["scale<float>"][1, 256](y, other, 1.0 if factor is None else factor, x.size)
        items = 0 if xs is None else len(xs)
        return y, z, x.shape[0] + count + len(word) + items, 2.5 * (factor or 1), flag

    return everything
