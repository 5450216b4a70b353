"""Arrays that programs allocate, view and give back, of every framework, and how long they live."""

from __future__ import annotations

import gc
import struct
import sys
import weakref

import pytest
from assembler import Assembler, Traced
from fake_arrays import ExchangeArray
from memory_growth import allocated_bytes

import culaunch as cl
from culaunch import _core


def like(dtype="float32", zeros=False):
    """Assemble ``y = empty_like(x); k[1, 1](y, x); return y`` for x of two dimensions."""

    def assemble(kernel):
        a = Assembler(arrays=1)
        shape = [a.op("DIM", 0, 0), a.op("DIM", 0, 1)]
        one = a.i(1)
        y = a.allocate(dtype, shape, zeros)
        a.launch(kernel, (one,) * 3, (one,) * 3, ("array", 0, 8, y), ("array", 8, 8, 0))
        a.give("array", y)
        return a.program()

    return assemble


def address_of(array):
    if hasattr(array, "data_ptr"):
        return array.data_ptr()
    return array.address if hasattr(array, "address") else array.ctypes.data


def make(framework, shape, dtype="float32"):
    if framework == "torch":
        torch = pytest.importorskip("torch")
        return torch.zeros(shape, dtype=getattr(torch, dtype))
    if framework == "numpy":
        return pytest.importorskip("numpy").zeros(shape, dtype)
    return cl.empty(shape, dtype)


FRAMEWORKS = [
    pytest.param("torch", marks=pytest.mark.needs("torch")),
    pytest.param("numpy", marks=pytest.mark.needs("numpy")),
    pytest.param("culaunch", marks=pytest.mark.needs("numpy")),
]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_output_is_the_frameworks_own(host_driver, framework):
    x = make(framework, (2, 3))
    f = Traced("x", like()(host_driver.kernel(8, 8)))
    for _ in range(3):
        y = f(x)
        assert type(y) is type(x)
        assert tuple(y.shape) == (2, 3)
        assert y.dtype == x.dtype
        given = struct.pack("<QQ", address_of(y), address_of(x))
        assert b"".join(host_driver.last.arguments) == given
    assert len(f.traces) == 1


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_zeros(host_driver, framework):
    x = make(framework, (3, 5))
    f = Traced("x", like("int16", zeros=True)(host_driver.kernel(8, 8)))
    y = f(x)
    assert str(y.dtype).rpartition(".")[2] == "int16"
    if framework != "culaunch":
        assert not y.any()


@pytest.mark.needs("numpy")
def test_zeros_are_filled_in_by_the_device(driver):
    f = Traced("x", like("int16", zeros=True)(driver.kernel(8, 8)))
    y = f(make("culaunch", (3, 5)))
    (memset,) = [args for name, args in driver.calls if name == "cuMemsetD8Async"]
    assert memset == (y.address, 0, 30, None)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_empty_output(host_driver, framework):
    f = Traced("x", like()(host_driver.kernel(8, 8)))
    assert tuple(f(make(framework, (0, 3))).shape) == (0, 3)


@pytest.mark.slow
@pytest.mark.memory
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_views_keep_their_array(host_driver, framework):
    """A view of a new array, and one of an argument, are the framework's, and keep the memory."""
    a = Assembler(arrays=1)
    n, m = a.op("DIM", 0, 0), a.op("DIM", 0, 1)
    size = a.op("MUL", n, m, text="n * m")
    y = a.allocate("float32", [size])
    four, one, two = a.i(4), a.i(1), a.i(2)
    rest = a.op("SUB", size, one, text="n - 1")
    made = a.view(y, four, "float32", [rest], [one])
    given = a.view(0, four, "float32", [two], [two])
    a.give("tuple", [("array", made), ("array", given), ("array", given)])
    f = Traced("x", a.program())
    x = make(framework, (2, 3))
    if framework == "culaunch":
        with pytest.raises(BufferError, match="must be contiguous"):
            f(x)
        return
    made, given, again = f(x)
    assert again is given
    assert type(made) is type(given) is type(x)
    assert (tuple(made.shape), tuple(given.shape)) == ((5,), (2,))
    assert address_of(given) == address_of(x) + 4
    x[:] = 7
    made[:] = 1
    assert [float(one) for one in given] == [7, 7]
    del x
    gc.collect()
    assert [float(one) for one in given] == [7, 7]
    given[:] = 3
    assert float(made.sum()) == 5


@pytest.mark.needs("torch")
def test_scratch_memory_is_given_back(host_driver):
    torch = pytest.importorskip("torch")
    a = Assembler(arrays=1)
    n, one = a.op("DIM", 0, 0), a.i(1)
    scratch = a.allocate("uint8", [n])
    a.launch(host_driver.kernel(8), (one,) * 3, (one,) * 3, ("array", 0, 8, scratch))
    a.give("none")
    f = Traced("x", a.program())
    x = torch.zeros(1 << 20)
    f(x)
    before = allocated_bytes()
    for _ in range(50):
        f(x)
    # The amount from malloc, not its place: the next call need not reuse free memory.
    assert allocated_bytes() - before < 10 << 20
    host_driver.fail("cuLaunchKernelEx", 1)
    with pytest.raises(cl.DriverError):
        f(x)


def test_programs_hold_no_argument(driver):
    a = Assembler(arrays=1)
    a.give("none")
    f = Traced("x y", a.program())

    class Value:
        pass

    x, y = ExchangeArray(), Value()
    count = sys.getrefcount(x)
    f(x, y)
    f(x, y)
    assert sys.getrefcount(x) == count
    alive = weakref.ref(x)
    del x
    assert alive() is None


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (-4, 1, 1),
        (4, 6, 1),
        (0, 2, 6),
        (0, 3, -1),
        (1 << 62, 1, 1),
        (0, 1 << 62, 8),
        (0, 2, 1 << 62),
    ],
)
@pytest.mark.needs("numpy")
def test_a_view_outside_of_its_array_is_not_shown(host_driver, offset, shape, strides):
    """A program cannot change this: NumPy would read the host's memory there."""
    a = Assembler(arrays=1)
    view = a.view(0, a.i(offset), "float32", [a.i(shape)], [a.i(strides)])
    a.give("array", view)
    f = Traced("x", a.program())
    with pytest.raises(ValueError, match="a view reaches outside"):
        f(make("numpy", (2, 3)))


@pytest.mark.parametrize(
    ("shape", "message"), [(-1, r"shape \(-1,\) is negative"), (1 << 61, "larger than any memory")]
)
def test_shapes_that_cannot_be(host_driver, shape, message):
    a = Assembler()
    a.give("array", a.allocate("float64", [a.op("ARG_I", 0)]))
    f = Traced("n", a.program())
    with pytest.raises(ValueError, match=message):
        f(shape)


def test_without_an_array_culaunchs_own_are_made(driver):
    a = Assembler()
    a.give("array", a.allocate("float64", [a.op("ARG_I", 0)]))
    f = Traced("n", a.program())
    for n in (3, 4, 4):
        y = f(n)
        assert type(y) is cl.DeviceArray
        assert (y.shape, y.device) == ((n,), 0)


@pytest.mark.parametrize("size", [-1, 25, 1 << 62])
def test_filling_stays_inside(driver, size):
    a = Assembler(arrays=1)
    a.memset(0, a.i(7), a.op("ARG_I", 1))
    a.give("none")
    f = Traced("x n", a.program())
    x = make("culaunch", (2, 3))
    f(x, 24)
    f(x, 0)
    with pytest.raises(ValueError, match="bytes to fill are not inside the array"):
        f(x, size)
    assert driver.count("cuMemsetD8Async") == 1


@pytest.mark.needs("numpy")
def test_every_effect_says_where_it_stands(host_driver):
    def refuses(*_, out=None):
        raise RuntimeError("no", 7)

    def program(build):
        a = Assembler(arrays=1)
        a.effect_text = a.text("body.py:3")
        build(a)
        a.give("array", 0)
        return Traced("x n", a.program())

    for build, message in [
        (lambda a: a.allocate("float32", [a.op("ARG_I", 1)]), "is negative"),
        (lambda a: a.view(0, a.i(0), "int8", [a.op("ARG_I", 1)], [a.i(1)]), "is negative"),
        (lambda a: a.memset(0, a.i(0), a.op("ARG_I", 1)), "-1 bytes to fill are not inside"),
    ]:
        with pytest.raises(ValueError, match=f"^body.py:3: .*{message}"):
            program(build)(make("numpy", (2, 3)), -1)
    with pytest.raises(RuntimeError) as caught:
        program(lambda a: a.call(refuses, []))(make("numpy", (2, 3)), 1)
    assert caught.value.args == ("body.py:3: no", 7)


def test_programs_of_version_1_have_texts_at_launches_alone(driver):
    a = Assembler(arrays=1)
    one = a.i(1)
    a.effect_text = a.text("body.py:3")
    y = a.allocate("float32", [a.op("DIM", 0, 0)])
    a.view(y, a.i(0), "float32", [one], [one])
    a.launch(driver.kernel(8), (one,) * 3, (one,) * 3, ("array", 0, 8, y), text="body.py:4")
    a.give("array", y)
    new, old = a.words(), a.words(version=1)
    assert len(old) == len(new) - 2
    programs = [
        _core.Program(struct.pack(f"<{len(words)}q", *words), tuple(a.constants), tuple(a.texts))
        for words in (new, old)
    ]
    for program in programs:
        assert Traced("x", program)(make("culaunch", (5,))).shape == (5,)
    with pytest.raises(ValueError, match="ALLOCATE has the wrong number of words"):
        _core.Program(struct.pack(f"<{len(new)}q", 1, *new[1:]), tuple(a.constants), tuple(a.texts))
    with pytest.raises(ValueError, match="its version is 3, and this culaunch reads 1 to 2"):
        _core.Program(struct.pack("<q", 3), (), ())


@pytest.mark.needs("torch")
def test_calls_get_arrays_and_out(host_driver):
    torch = pytest.importorskip("torch")
    asked = []

    def fused(*args, out=None):
        asked.append((args, out))
        if asked[1:]:
            raise RuntimeError("no")

    a = Assembler(arrays=1)
    n = a.op("DIM", 0, 0)
    y, z = a.allocate("float32", [n]), a.allocate("float32", [n])
    arguments = [("array", 0), ("int", n), ("float", a.f(1.5)), ("bool", a.op("CONST_B", 1)),
                 ("none", 0), ("argument", 1), ("constant", a.constant("c"))]  # fmt: skip
    a.call(fused, arguments, [y, z])
    a.give("tuple", [("array", y), ("array", z)])
    f = Traced("x s", a.program())
    x = torch.ones(4)
    y, z = f(x, "s")
    assert asked == [((x, 4, 1.5, True, None, "s", "c"), (y, z))]
    with pytest.raises(RuntimeError, match="no"):
        f(x, "s")


def test_an_array_that_a_body_closes_over(driver):
    held = ExchangeArray(0x9000)
    a = Assembler()
    one = a.i(1)
    kernel = driver.kernel(8, 8)
    parts = [("object", 0, 8, a.constant(held)), ("object", 8, 8, 0)]
    a.launch(kernel, (one,) * 3, (one,) * 3, *parts)
    a.give("none")
    f = Traced("", a.program())
    f()
    assert driver.last.arguments == ((0x9000).to_bytes(8, "little"),) * 2
    held.device = 1
    f()
    assert driver.last.device == 1


@pytest.mark.needs("torch")
def test_a_gradient_is_not_lost_without_a_word(host_driver):
    torch = pytest.importorskip("torch")
    f = Traced("x", like()(host_driver.kernel(8, 8)))
    x = torch.zeros(2, 3, requires_grad=True)
    with pytest.raises(TypeError, match="f: argument x requires grad"):
        f(x)
    with torch.no_grad():
        assert f(x).shape == (2, 3)
    f(x.detach())


@pytest.mark.needs("torch")
def test_what_is_read_of_strides(host_driver):
    torch = pytest.importorskip("torch")
    a = Assembler(arrays=1)
    numbers = [a.op("STRIDE", 0, 0), a.op("STRIDE", 0, 1), a.op("ADDRESS", 0), a.op("DEVICE"),
               a.op("DEVICE_ATTRIBUTE", 16), a.op("PLACE", 0)]  # fmt: skip
    dense = a.op("CONTIGUOUS", 0)
    a.give("tuple", [*[("int", one) for one in numbers], ("bool", dense)])
    f = Traced("x", a.program())
    x = torch.zeros(64, 4)
    count = cl.driver.Device(0).attribute("multiprocessor_count")
    for y in (x, x[:, 1:], x.T, x[::2], x[:1, :], x[1:, 1:], torch.zeros(0, 4)[:, ::2]):
        assert f(y) == (*y.stride(), y.data_ptr() % 256, 0, count, y.data_ptr(),
                        y.is_contiguous())  # fmt: skip
    assert len(f.traces) == 1
