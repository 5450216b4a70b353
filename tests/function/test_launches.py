"""Launches in a body: the rules of a launch hold, and every option is recorded."""

import ctypes

import numpy as np
import pytest
from bodies import Params, both

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")


def test_numbers_reach_the_kernel_as_python_computes_them(kernels):
    @cl.function
    def note(x, a: int, d: float):
        out = cl.empty(8, "float64", like=x)
        n = x.shape[0]
        kernels["note"][n // 2 + 1, 32](
            out, a * n, -a // 3, a % 7, d / 3, abs(d) ** 0.5, min(n, a), a > n
        )
        return out

    for a, d in ((5, 2.5), (-7, -0.25), (10**12, 1e300)):
        if abs(a) > 2**31:
            continue
        for n in (1, 4):
            x = np.zeros(n)
            expected = [a * n, -a // 3, a % 7, d / 3, abs(d) ** 0.5, min(n, a), a > n, n // 2 + 1]
            assert both(note, x, a, d).tolist() == expected


def test_structures_by_value_with_expressions(kernels):
    @cl.function
    def structured(x, factor: float, step: int = 2):
        y = cl.zeros(x.shape[0] // step, x.dtype)
        p = Params(n=y.shape[0], scale=factor * 2, step=step, on=x.shape[0] > 2)
        p.y, p.x = y.data_ptr(), x.data_ptr() + 4
        kernels["structured"][1, 64](p)
        return y

    # An array's memory in a structure is known to the emulator if it is the driver's.
    whole = np.arange(9, dtype=np.float32)
    x, short = cl.to_device(whole), cl.to_device(whole[:2])
    assert both(structured, x, 1.5).numpy().tolist() == (whole[1:9:2] * 3).tolist()
    assert both(structured, x, 1.0, 3).numpy().tolist() == (whole[1:8:3] * 2).tolist()
    assert both(structured, short, 1.0).numpy().tolist() == [0]
    assert structured(whole, 1.5).tolist() == (whole[1:9:2] * 3).tolist()
    assert "structured[1, 64](<40 bytes: x.shape[0] // step, " in structured.explain(x, 1.5)
    with pytest.raises(OverflowError, match="float"):
        structured(x, 1e39)


class Range(ctypes.Structure):
    _fields_ = (("begin", ctypes.c_int), ("end", ctypes.c_int))


class Two(ctypes.Structure):
    _fields_ = (("first", Range), ("second", Range), ("sizes", ctypes.c_int * 2))


def test_structures_in_structures(kernels):
    ends = kernels.kernel("ends", signature="int*, Two")

    @cl.function
    def both_ends(x, n: int):
        y = cl.empty(6, "int32", like=x)
        two = Two(Range(n, n + 1))
        two.second = Range(end=n * x.shape[0])
        two.second.begin = 5
        two.first.begin = two.first.begin + 1
        two.sizes[0], two.sizes[1] = 7, 8
        ends[1, 1](y, two)
        return y

    x = np.zeros(3, np.float32)
    for n in (1, 4):
        assert both(both_ends, x, n).tolist() == [n + 1, n + 1, 5, 3 * n, 7, 8]


def test_views_are_passed_as_pointers(kernels):
    @cl.function
    def column(x, i: int):
        column = x[1:, i]
        y = cl.empty(column.shape[0], x.dtype)
        kernels["copy"][1, 64](y, column, column.strides[0], 1, column.shape[0])
        return y

    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    for i in (0, 3, -1):
        assert both(column, x, i).tolist() == x[1:, i].tolist()
    assert both(column, x.T, 2).tolist() == x.T[1:, 2].tolist()
    with pytest.raises(
        IndexError, match="index 5 is out of range for axis 1 of x, which has size 5"
    ):
        column(x, 5)
    with pytest.raises(IndexError, match="index -6"):
        column(x, -6)


def test_other_names_of_views(kernels):
    @cl.function
    def views(x):
        return x.mT, x.flatten()

    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    swapped, flat = views(x)
    assert swapped.tolist() == x.swapaxes(-2, -1).tolist()
    assert flat.tolist() == x.ravel().tolist()


def test_shared_memory_is_an_expression(kernels):
    @cl.function
    def reverse(y):
        n = y.shape[0]
        kernels["shared"][1, n, 4 * n](y)

    y = np.zeros(32, np.int32)
    reverse(y)
    assert y.tolist() == list(range(32))[::-1]
    assert "shared[1, y.shape[0], y.shape[0] * 4](y)" in reverse.explain(y).replace(
        "4 * y.shape[0]", "y.shape[0] * 4"
    )
    assert reverse.mutates == ("y",)


def test_launch_if_needs_no_second_path(kernels):
    @cl.function
    def scale(x, factor: float):
        y = cl.empty_like(x)
        n = x.size
        cl.launch_if(n > 0, kernels["scale<float>"][cl.ceildiv(n, 64), 64], y, x, factor, n)
        return y

    x = np.arange(100, dtype=np.float32)
    assert both(scale, x, 2.0).tolist() == (2 * x).tolist()
    assert both(scale, x[:0], 2.0).tolist() == []
    assert ", 1 path" in scale.explain(x, 2.0)
    cl.launch_if(False, kernels["shared"][1, 1])
    with pytest.raises(TypeError, match="launcher must be a kernel"):
        cl.launch_if(True, 3)


def test_a_launcher_made_outside(kernels):
    launcher = kernels["scale<float>"][1, 64]

    @cl.function
    def scale(x):
        y = cl.empty_like(x)
        launcher(y, x, 3.0, x.size)
        kernels["scale<float>"].launch(y, y, 2.0, x.size, grid=(1, 1), block=64)
        configured = kernels["scale<float>"].configure(grid=1, block=(64, 1, 1))
        configured(y, y, 2.0, x.size)
        return y

    x = np.arange(10, dtype=np.float32)
    assert both(scale, x).tolist() == (12 * x).tolist()


@pytest.mark.parametrize(
    "option",
    [
        {"cluster": (2, 1, 1)},
        {"cluster": 2, "preferred_cluster": (4, 1, 1)},
        {"shared_memory": 1024},
        {"cooperative": True},
        {"programmatic": True},
        {"priority": -1},
    ],
    ids=lambda option: list(option)[-1],
)
def test_a_launcher_made_outside_keeps_its_options(kernels, option):
    fill, options = kernels["fill<float>"], {"grid": 4, "block": 32, **option}
    outside = fill.configure(**options)
    for name, value in option.items():
        given = value if isinstance(value, tuple) or name != "cluster" else (value, 1, 1)
        assert getattr(outside, name) == given

    def launch(launcher):
        @cl.function(mutates=["x"])
        def filled(x):
            (launcher or fill.configure(**options))(x, 1.0, x.size)

        return filled.explain(np.zeros(3, np.float32)).partition("fill<float>")[2].splitlines()[0]

    assert launch(outside).partition("#")[0] == launch(None).partition("#")[0]
    assert list(option)[-1] in launch(outside) or "shared_memory" in option


def test_closed_over_arrays_and_scalars(kernels):
    weights = np.arange(4, dtype=np.float32)
    count = np.int32(4)

    @cl.function
    def weighted():
        y = cl.zeros(4, "float32", like=None)
        kernels["scale<float>"][1, 64](y, weights, np.float32(2), ctypes.c_int(int(count)))
        return y

    assert np.asarray(weighted()).tolist() == [0, 2, 4, 6]
    weights[:] = 1
    assert np.asarray(weighted()).tolist() == [2, 2, 2, 2]


def test_element_types_and_read_only_arrays(kernels):
    @cl.function
    def wrong(y, x):
        kernels["scale<float>"][1, 64](y, x, 2.0, 1)

    x = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match=r"must be an array of float32 .got y, an array of float64"):
        wrong(np.zeros(4), x)
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match=r"the array is read-only .got y, an array"):
        wrong(frozen, x)
    wrong(x, frozen)


def test_small_parameters(kernels):
    @cl.function
    def small(a: int, b: int, c: int):
        y = cl.zeros(3, "int32")
        kernels["small"][1, 1](y, a, b, c)
        return y

    assert small(-128, 255, 65535).numpy().tolist() == [-128, 255, 65535]
    for bad in ((128, 0, 0), (-129, 0, 0), (0, 256, 0), (0, -1, 0), (0, 0, 65536)):
        with pytest.raises(OverflowError):
            small(*bad)


def test_tensor_maps_are_described(kernels):
    seen = []

    @cl.function
    def mapped(x, rows: int):
        tensor_map = cl.arguments.TensorMap.tiled(x[1:], (rows, 64), swizzle="128B")
        seen.append(tensor_map)
        return x

    with pytest.raises(ValueError, match="one entry for each of the array's 2 dimensions"):
        cl.function(lambda x: cl.arguments.TensorMap.tiled(x, (1,)))(np.zeros((2, 2), np.float16))
    with pytest.raises(ValueError, match="swizzle must be one of"):
        cl.function(lambda x: cl.arguments.TensorMap.tiled(x, (1, 1), swizzle="7B"))(
            np.zeros((2, 2))
        )
    mapped(np.zeros((4, 64), np.float16), 2)
    assert seen[0].numbers == (6, 0, 3, 0, 0)
