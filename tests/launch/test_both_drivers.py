"""Launches of real kernels: the same tests on the emulator and on a GPU."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

import culaunch as cl
from culaunch import testing

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.needs("nvrtc")

SOURCE = Path(__file__).with_name("both.cu")
ELEMENTS = {"float": "f4", "double": "f8", "int": "i4", "long long": "i8", "unsigned char": "u1"}
N = 1000


@pytest.fixture(scope="module")
def image():
    # PTX, which both drivers take; the GPU's driver compiles it further.
    names = [f"scale<{element}>" for element in ELEMENTS]
    text = SOURCE.read_text()
    kernels = re.findall(
        r"^__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)", text, re.MULTILINE
    )
    kernels.remove("scale")
    return cl.compile(text, arch="compute_80", names=[*names, *kernels], name=SOURCE.name)


@pytest.fixture
def module(image, culaunch_driver):
    with cl.load(image) as loaded:
        yield loaded


def zeros(shape, dtype):
    return testing.to_driver(np.zeros(shape, dtype))


# ---- arguments


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("n", [1, 31, 256, N])
def test_arrays_of_every_element(module, element, n):
    x = np.arange(n).astype(ELEMENTS[element])
    y = zeros(n, x.dtype)
    module[f"scale<{element}>"][-(-n // 128), 128](y, testing.to_driver(x), x.dtype.type(3), n)
    testing.assert_allclose(y, x * x.dtype.type(3))


def test_a_part_of_an_array(module):
    torch = pytest.importorskip("torch")
    x = testing.to_driver(torch.arange(float(N)))
    y = torch.zeros_like(x)
    module["scale<float>"][4, 128](y[100:], x[300:], 2.0, 500)
    wanted = np.zeros(N)
    wanted[100:600] = 2 * np.arange(300, 800)
    testing.assert_allclose(y, wanted)


@pytest.mark.parametrize(
    "values",
    [
        (-128, 0, -32768, 0, -(2**31), 0, -(2**40), 0, -1.5, -2.5, False),
        (127, 255, 32767, 65535, 2**31 - 1, 2**32 - 1, 2**40, 2**50, 3.25, 1e300, True),
    ],
)
def test_scalars(module, values):
    out = zeros(11, "f8")
    module["scalars"][1, 1](out, *values)
    testing.assert_allclose(out, np.array(values, "f8"), rtol=0, atol=0)


def test_typed_scalars(module):
    out = zeros(11, "f8")
    kinds = [np.int8, np.uint8, np.int16, np.uint16, ctypes.c_int, ctypes.c_uint, np.int64]
    kinds += [ctypes.c_ulonglong, np.float32, np.float64, np.bool_]
    module["scalars"][1, 1](out, *(kind(value) for value, kind in enumerate(kinds)))
    testing.assert_allclose(out, [*range(10), 1.0], rtol=0, atol=0)


def test_a_scalar_that_does_not_fit(module):
    with pytest.raises(OverflowError):
        module["scalars"][1, 1](zeros(11, "f8"), 128, *(0,) * 7, 0.0, 0.0, False)
    with pytest.raises(TypeError):
        module["scalars"][1, 1](zeros(11, "f8"), 1.0, *(0,) * 7, 0.0, 0.0, False)


def test_structures(module):
    class Pair(ctypes.Structure):
        _fields_ = (
            ("count", ctypes.c_int),
            ("scale", ctypes.c_double),
            ("tag", ctypes.c_ubyte * 3),
        )

    record = np.zeros(1, np.dtype([("count", "i4"), ("scale", "f8"), ("tag", "3u1")], align=True))
    record[0] = (7, 0.5, (1, 2, 3))
    for value in (Pair(7, 0.5, (ctypes.c_ubyte * 3)(1, 2, 3)), record[0]):
        out = zeros(2, "f8")
        module["take_pair"][1, 1](out, value)
        testing.assert_allclose(out, [3.5, 6])


def test_a_pointer_in_a_structure(module):
    class View(ctypes.Structure):
        _fields_ = (("data", ctypes.c_void_p), ("n", ctypes.c_int))

    out = cl.to_device(np.zeros(100, "f4"))  # the driver's own memory: known by its address
    module["take_view"][2, 64](View(out.address, 90), 2.5)
    testing.assert_allclose(out, [2.5] * 90 + [0] * 10)


def test_a_null_pointer(module):
    out = zeros(1, "i4")
    module["is_null"][1, 1](out, None)
    testing.assert_allclose(out, [1])


def test_the_address_of_an_array(module):
    out = cl.to_device(np.zeros(1, "i4"))
    module["is_null"][1, 1](out.address, 16)
    testing.assert_allclose(out, [0])


# ---- memory


@pytest.mark.parametrize("threads", [32, 256, 1024])
def test_dynamic_shared_memory(module, threads):
    x = np.random.default_rng(0).integers(-50, 50, N).astype("f4")
    blocks = -(-N // threads)
    out = zeros(blocks, "f4")
    module["block_sum"][blocks, threads, 4 * threads](out, testing.to_driver(x), N)
    padded = np.zeros(blocks * threads, "f4")
    padded[:N] = x
    testing.assert_allclose(out, padded.reshape(blocks, threads).sum(1), rtol=0, atol=0)


def test_more_shared_memory_than_without_opting_in(module):
    out = zeros(1, "f4")
    module["block_sum"][1, 128, 100 * 1024](out, testing.to_driver(np.ones(128, "f4")), 128)
    testing.assert_allclose(out, [128])
    with pytest.raises(cl.LaunchError, match="shared memory"):
        module["block_sum"][1, 128, 1 << 20](out, out, 1)


def test_static_shared_memory_in_two_dimensions(module):
    x = np.arange(40 * 40, dtype="f4").reshape(40, 40)
    out = zeros((40, 40), "f4")
    module["transpose"][(3, 3), (16, 16)](out, testing.to_driver(x), 40)
    testing.assert_allclose(out, x.T, rtol=0, atol=0)


def test_atomics(module):
    x = np.random.default_rng(1).integers(0, 256, 5000, "u1")
    bins = zeros(256, "i4")
    module["histogram"][20, 256](bins, testing.to_driver(x), len(x))
    testing.assert_allclose(bins, np.bincount(x, minlength=256))


def test_variables_of_a_module(module):
    module["count_up"][3, 32](2)
    assert value_of_counter(module) == 5 + 3 * 32 * 2
    weights = module.get_global("weights")
    assert weights.size == 16
    out = zeros(8, "f4")
    module["weigh"][1, 8](out)
    testing.assert_allclose(out, [1, 2, 4, 8] * 2)
    given = testing.to_driver(np.array([3, 5, 7, 9], "f4"))
    module["scale<float>"][1, 4](weights.address, given, 1.0, 4)
    module["weigh"][1, 8](out)
    testing.assert_allclose(out, [3, 5, 7, 9] * 2)


def value_of_counter(module):
    out = zeros(1, "i4")
    module["scale<int>"][1, 1](out, module.get_global("counter").address, 1, 1)
    return int(testing.from_driver(out)[0])


def test_a_module_has_variables_of_its_own(image, module):
    module["count_up"][1, 1](1)
    with cl.load(image) as other:
        assert value_of_counter(other) == 5
    assert value_of_counter(module) == 6


# ---- configurations


def test_three_dimensions(module):
    out = zeros(2 * 3 * 4 * 5 * 3 * 2, "i4")
    module["where"][(2, 3, 4), (5, 3, 2)](out)
    wanted = (1000 * np.arange(24)[:, None] + np.arange(30)).reshape(-1)
    testing.assert_allclose(out, wanted)


def test_a_cooperative_grid(module):
    out = zeros(9, "i4")
    module["grid_sum"].launch(out, grid=8, block=64, cooperative=True)
    testing.assert_allclose(out, [36] * 9)


def test_a_cooperative_launcher_from_outside_in_a_function(module):
    launcher = module["grid_sum"].configure(grid=8, block=64, cooperative=True)

    @cl.function(mutates=["out"])
    def summed(out):
        launcher(out)

    for _ in range(2):
        out = zeros(9, "i4")
        summed(out)
        testing.assert_allclose(out, [36] * 9)
    assert "cooperative" in summed.explain(out)


def test_a_cooperative_grid_that_is_too_large(module):
    with pytest.raises(cl.DriverError, match=r"(?i)cooperative"):
        module["grid_sum"].launch(zeros(9, "i4"), grid=1 << 20, block=1024, cooperative=True)


@pytest.mark.culaunch_drivers("emulator")
def test_a_grid_barrier_without_a_cooperative_launch_says_what_it_takes(module):
    with pytest.raises(cl.DriverError, match=r"executed trap, as a barrier .* cooperative=True"):
        module["grid_sum"][8, 64](zeros(9, "i4"))


def test_shuffles(module):
    out = zeros(64, "i4")
    module["warp_sum"][1, 64](out, testing.to_driver(np.arange(64, dtype="i4")))
    testing.assert_allclose(out, [496] * 32 + [1520] * 32)


def test_recursion(module):
    out = zeros(10, "i4")
    module["recurse"][1, 10](out)
    testing.assert_allclose(out, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])


def test_a_stream(module):
    stream = cl.Stream()
    out = zeros(64, "i4")
    module["bounded"][1, 64, 0, stream](out)
    stream.synchronize()
    testing.assert_allclose(out, np.arange(64))


def test_a_launcher_is_called_again(module):
    bins = zeros(256, "i4")
    launcher = module["histogram"].configure(grid=1, block=32)
    x = testing.to_driver(np.zeros(32, "u1"))
    for _ in range(5):
        launcher(bins, x, 32)
    assert testing.from_driver(bins)[0] == 160


# ---- what is refused, the same on both


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 129, "at most 128"),
        (1, 2048, "1024"),
        (1, (1, 1, 65), "64"),
        ((1, 65536), 1, "65535"),
    ],
)
def test_a_configuration_that_no_device_takes(module, grid, block, message):
    out = zeros(256, "i4")
    with pytest.raises(cl.LaunchError, match=message) as caught:
        module["bounded"][grid, block](out)
    assert caught.value.code == 1
    module["bounded"][1, 128](out)
    testing.assert_allclose(out, [*range(128), *[0] * 128])


def test_what_is_not_there(module):
    with pytest.raises(cl.KernelNotFoundError, match="bounded"):
        module["unbounded"]
    with pytest.raises(cl.KernelNotFoundError):
        module.get_global("no_such_variable")


def test_an_image_that_is_none(culaunch_driver):
    with pytest.raises((cl.ImageError, cl.DriverError)):
        cl.load(b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k( {\n")["k"]


def test_attributes(module):
    kernel = module["transpose"]
    assert kernel.attributes().static_shared == 16 * 17 * 4
    assert module["bounded"].attributes().max_threads_per_block == 128
    assert [p.size for p in module["take_pair"].signature.parameters] == [8, 24]
    occupancy = kernel.occupancy(block=(16, 16))
    assert 0 < occupancy.active_blocks <= 32
    assert occupancy.suggested_block <= 1024
