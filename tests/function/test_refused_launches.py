"""Launches in a body that cannot be: refused as a launch refuses them, before anything runs."""

import numpy as np
import pytest
from assembler import Assembler, Traced

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda y, x, n: (y, x, 2.0), TypeError, r"scale<float> takes 4 arguments .*\(got 3\)"),
        (lambda y, x, n: (y, x, n, n), TypeError, "argument 2 .*float .4 bytes., must be a float"),
        (lambda y, x, n: (y, x, 2.0, 2.0), TypeError, "argument 3 .*must be an int"),
        (lambda y, x, n: (y, 2.0, 2.0, n), TypeError, "argument 1 .*must be an array"),
        (lambda y, x, n: (y, x, 1e39, n), OverflowError, "argument 2 .*number this large"),
        (lambda y, x, n: (y, x, 2.0, n + 2**31), OverflowError, "argument 3 .*must be from -2.31"),
        (lambda y, x, n: (y, x, 2.0, 2**31), OverflowError, "argument 3 .*must be from -2.31"),
        (lambda y, x, n: (y, x, 2.0, np.int64(1)), ValueError, "must have exactly 4 bytes"),
        (lambda y, x, n: (y, x, 2.0, True), TypeError, "argument 3 .*must be an int"),
        (lambda y, x, n: (y, x, 2.0, n > 1), TypeError, "argument 3 .*must be an int"),
        (lambda y, x, n: (y, x, 2.0, object()), TypeError, "argument 3 .*got object"),
        (lambda y, x, n: (y, np.zeros(1), 2.0, n), TypeError, "must be an array of float32"),
    ],
)
def test_arguments_are_checked_as_in_a_launch(kernels, arguments, error, message):
    @cl.function
    def wrong(x):
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 64](*arguments(y, x, x.size))
        return y

    with pytest.raises(error, match=rf"test_refused_launches.py:\d+: `kernels.*{message}"):
        wrong(np.zeros(4, np.float32))


def test_what_a_later_call_gets_wrong_is_refused_before_anything_is_launched(kernels):
    @cl.function
    def twice(y, x, n: int, factor: float):
        kernels["scale<float>"][1, 64](y, x, 2.0, x.size)
        kernels["scale<float>"][n, 64](y, x, factor, n)

    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    twice(y, x, 2, 1.0)
    y[:] = 0
    with pytest.raises(
        OverflowError, match=r"test_refused_launches.py:\d+: .*4 bytes .*got 4294967296"
    ):
        twice(y, x, 2**32, 1.0)
    with pytest.raises(OverflowError, match=r"number this large .got 1e.39"):
        twice(y, x, 1, 1e39)
    for n in (0, -1):
        with pytest.raises(ValueError, match=rf"from 1 to 2147483647 .*got {n}.*launch_if"):
            twice(y, x, n, 1.0)
    assert y.tolist() == [0] * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shared_memory": 166_913}, "a block on this device has at most 166912"),
        (
            {"grid": 1 << 20, "cooperative": True},
            "the cooperative grid has 1048576 blocks; at most",
        ),
        ({"cluster": 2, "grid": 2}, "this device has no clusters"),
    ],
    ids=["shared memory", "cooperative", "cluster"],
)
def test_what_the_driver_alone_can_tell_is_known_before(kernels, options, message):
    """No launch before the one that is refused has run, whichever call it is."""

    @cl.function
    def twice(y, z, is_wrong: bool):
        kernels["fill<float>"].launch(y, 1.0, y.size, grid=1, block=32)
        given = {"grid": 1, "block": 32, **(options if is_wrong else {})}
        kernels["fill<float>"].launch(z, 2.0, z.size, **given)

    y, z = np.zeros(32, np.float32), np.zeros(32, np.float32)
    twice(y, z, False)
    assert y.tolist() == [1] * 32
    y[:] = 0
    for _ in range(2):
        with pytest.raises(cl.LaunchError, match=rf"^.*test_refused_launches.py:\d+: .*{message}"):
            twice(y, z, True)
    assert y.tolist() == [0] * 32


def test_a_module_that_is_gone_is_known_before(kernels):
    other = cl.load(kernels.image)

    @cl.function
    def twice(y):
        kernels["fill<float>"][1, 32](y, 1.0, y.size)
        other["fill<float>"][1, 32](y, 2.0, y.size)

    y = np.zeros(4, np.float32)
    twice(y)
    other.unload()
    y[:] = 0
    # Other inputs than those of the last call: its plan runs.
    with pytest.raises(cl.CulaunchError, match="Its module was unloaded"):
        twice(y[:3])
    assert y.tolist() == [0] * 4


@pytest.mark.parametrize("of", ["argument", "view", "new"])
def test_a_tensor_map_that_cannot_be_is_known_before(host_driver, of):
    a = Assembler(arrays=1)
    one, size = a.i(1), a.op("ARG_I", 1)
    array = 0
    if of != "argument":
        array = a.allocate("float32", [size])
    if of == "view":
        array = a.view(array, a.i(16), "float32", [size], [one])
    launch = ((one,) * 3, (one,) * 3)
    a.launch(host_driver.kernel(), *launch)
    constant = a.constant((7, 0, 0, 0, 0))
    sizes = (a.i(1024), size, one)
    a.launch(host_driver.kernel(128), *launch,
             ("tensor_map", 0, 128, constant, array, 1, *sizes), text="body.py:4")  # fmt: skip
    a.give("none")
    f = Traced("x n", a.program())
    x = np.zeros(4, np.float32)
    f(x, 256)
    launched = host_driver.count("cuLaunchKernelEx")
    assert host_driver.tensor_map[2] != 0
    host_driver.fail("cuTensorMapEncodeTiled", 1)
    with pytest.raises(cl.CulaunchError, match=r"^body.py:4: encoding a tensor map for"):
        f(x, 257)
    assert host_driver.tensor_map[2] != 0
    assert host_driver.count("cuLaunchKernelEx") == launched


@pytest.mark.parametrize(
    ("launch", "error", "message"),
    [
        (lambda k: k[0, 64], ValueError, "grid must be from 1 to"),
        (lambda k: k[1, 1025], ValueError, "block must be from 1 to 1024"),
        (lambda k: k[1, (1, 1, 65)], ValueError, "block must be from 1 to 64"),
        (lambda k: k[1], TypeError, "launch a kernel with"),
        (lambda k: k[1.5, 1], TypeError, "grid must be an int"),
        (lambda k: k[(1, 2, 3, 4), 1], TypeError, "grid must be an int, or a tuple"),
        (lambda k: k[1, 1, -1], OverflowError, "shared_memory must be a number of bytes"),
        (lambda k: k[1, 1, 0, 5], TypeError, "stream must not be given in the body"),
        (lambda k: k.configure(grid=1, block=1, cooperative=1), TypeError, "cooperative must be"),
    ],
)
def test_configurations_are_checked(kernels, launch, error, message):
    @cl.function
    def wrong(y):
        launch(kernels["fill<float>"])(y, 1.0, 1)

    with pytest.raises(error, match=message):
        wrong(np.zeros(4, np.float32))


def test_a_kernel_that_is_not_there_lists_those_that_are(kernels):
    @cl.function
    def missing(x):
        kernels[f"nothing<{x.dtype}>"][1, 1](x)

    message = r"test_refused_launches.py:\d+: `kernels.*no kernel 'nothing<float>'; it has"
    with pytest.raises(cl.KernelNotFoundError, match=message):
        missing(np.zeros(1, np.float32))
    with cl.function_debugging(), pytest.raises(cl.KernelNotFoundError, match=message):
        missing(np.zeros(1, np.float32))
