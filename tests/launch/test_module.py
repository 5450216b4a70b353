"""Loading, finding kernels and variables, unloading; images that no driver should see."""

import ctypes
import gc

import pytest
from driver_tables import MAX_THREADS
from fake_arrays import ExchangeArray
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import culaunch as cl

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
SCALE = "_Z5scaleIfEvPT_PKS0_S0_i"  # void scale<float>(float*, float const*, float, int)

SOURCE = """
template <class T> __global__ void scale(T* y, const T* x, T a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void __launch_bounds__(128) plain(float* out, unsigned short n) { *out = n; }
"""


@pytest.fixture(scope="module")
def compiled():
    """A cubin, the PTX and a fatbin of two kernels."""
    arches = ("sm_90", "compute_90", ("sm_90", "sm_80"))
    return {
        image.format: image
        for image in (cl.compile(SOURCE, arch=arch, names=["scale<float>"]) for arch in arches)
    }


# ---- loading


@pytest.mark.parametrize("kind", ["cubin", "ptx", "fatbin"])
def test_real_images_of_every_format(driver, compiled, kind, tmp_path):
    image = compiled[kind]
    path = tmp_path / "kernels.image"
    image.save(path)
    for source in (image, path, str(path), image.data, bytearray(image.data)):
        module = cl.load(source)
        assert {kernel.name for kernel in module} == {SCALE, "plain"}
        module[SCALE][1, 1](0x1000, None, 2.0, 5)
        assert [len(one) for one in driver.last.arguments] == [8, 8, 4, 4]
        assert "scale<float>" in module
        module["plain"][1, 128](ExchangeArray(), 7)


def test_the_image_s_own_types_are_used(driver, compiled):
    plain = cl.load(compiled["cubin"])["plain"]
    assert plain.signature.source == "image"
    assert [one.type for one in plain.signature.parameters] == ["float*", "unsigned short"]
    bare = cl.load(compiled["cubin"].data)["plain"]
    assert bare.signature.source == "layout"
    assert [one.type for one in bare.signature.parameters] == [None, None]
    text = compiled["ptx"].data.replace(b".param .u64 plain", b".param .u64 .ptr plain")
    ptx = cl.load(text)["plain"]
    assert ptx.signature.source == "ptx"
    assert [one.type for one in ptx.signature.parameters] == ["void*", None]
    assert cl.load(compiled["cubin"].data)[SCALE].signature.source == "name"


def test_the_driver_gets_the_image_alone(driver, compiled, tmp_path):
    path = tmp_path / "kernels.cubin"
    compiled["cubin"].save(path)  # with its names behind it
    module = cl.load(path)
    assert module.image.data == compiled["cubin"].data
    assert module["scale<float>"].name == SCALE


def test_a_refused_image(driver):
    driver.fail("cuLibraryLoadData", 209)
    with pytest.raises(cl.DriverError) as caught:
        cl.load(b".version 8.0\n.target sm_100a\n.address_size 64\n")
    message = str(caught.value)
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU (209): text of 209" in message
    assert "compute_100a" in message or "sm_100a" in message
    assert "Device 0 is sm_90" in message
    assert (caught.value.code, caught.value.name) == (209, "CUDA_ERROR_NO_BINARY_FOR_GPU")
    driver.fail("cuLibraryLoadData", 2)
    with pytest.raises(cl.DriverError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        cl.load(driver.image({}))
    cl.load(driver.image({}))


def test_the_log_of_the_driver_s_compiler(driver):
    driver.jit_log = b"ptxas line 3; error: Unknown opcode 'frobnicate'"
    with pytest.raises(cl.DriverError, match="Unknown opcode 'frobnicate'"):
        cl.load(b".version 8.0\n.target sm_90\n.address_size 64\n")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\0", b"MZ\x90\0", b"PK\3\4", b"\x7fELF", b"\x7fELF" + bytes(60), b"\x50\xed\x55\xba",
        b"\x50\xed\x55\xba" + bytes(12), b"\xff" * 100, b"int main() {}", b"\x7fELF" + b"\xff" * 60,
        b"\x50\xed\x55\xba\1\0\x10\0" + b"\xff" * 8, bytes(1000),
    ],
    ids=lambda data: repr(data[:8]),
)  # fmt: skip
def test_what_is_no_image_never_reaches_the_driver(driver, data, tmp_path):
    path = tmp_path / "bad.cubin"
    path.write_bytes(data)
    with pytest.raises(cl.ImageError, match=r"bad\.cubin"):
        cl.load(path)
    with pytest.raises(cl.ImageError):
        cl.load(data)
    assert driver.count("cuLibraryLoadData") == 0


def test_a_relocatable_cubin_is_refused(driver):
    image = cl.compile(SOURCE, arch="sm_90", names=["scale<float>"], relocatable=True)
    with pytest.raises(cl.ImageError, match="relocatable"):
        cl.load(image)
    assert driver.libraries == {}


def test_a_library_of_the_host_is_refused(driver):
    import _ctypes

    with pytest.raises(cl.ImageError):
        cl.load(_ctypes.__file__)
    assert driver.count("cuLibraryLoadData") == 0


@pytest.mark.slow
@pytest.mark.memory
@SHARED
@given(data=st.data())
def test_damaged_images_raise(driver, compiled, data):
    image = compiled[data.draw(st.sampled_from(["cubin", "fatbin"]))].data
    broken = bytearray(image[: data.draw(st.integers(0, len(image)))])
    for _ in range(data.draw(st.integers(0, 4))):
        if broken:
            at = data.draw(st.integers(0, min(len(broken), 200) - 1))
            broken[at] = data.draw(st.integers(0, 255))
    driver.fail("cuLibraryLoadData", 209)  # reached only where the whole image is there
    with pytest.raises((cl.ImageError, cl.DriverError)):
        cl.load(bytes(broken))
    driver.failures.clear()


@pytest.mark.parametrize("source", [None, 5, object(), ["a"], 1.5])
def test_what_is_no_source(driver, source):
    with pytest.raises(TypeError):
        cl.load(source)


def test_paths(driver, tmp_path):
    with pytest.raises(FileNotFoundError):
        cl.load(tmp_path / "missing.cubin")
    with pytest.raises((cl.ImageError, IsADirectoryError)):
        cl.load(tmp_path)


# ---- variables


def test_variables(driver):
    module = cl.load(
        driver.image({}, variables={"counter": (0x5000, 4), "table": (0x6000, 1 << 33)})
    )
    assert module.get_global("counter") == cl.kernel.GlobalVariable(0x5000, 4, 0, "counter")
    other = module.get_global("counter", device=1)
    assert other == cl.kernel.GlobalVariable(0x1005000, 4, 1, "counter")
    assert module.get_global("table").size == 1 << 33
    with cl.driver.Device(1):
        assert module.get_global("counter").device == 1
    with pytest.raises(cl.KernelNotFoundError, match="no variable 'missing'"):
        module.get_global("missing")
    for device in (2, -1):
        with pytest.raises((ValueError, cl.KernelNotFoundError), match="there is no device"):
            module.get_global("counter", device=device)
    assert driver.stack == []


# ---- unloading


def test_unloading(driver):
    module = cl.load(driver.image({"k": ((0, 4),)}, variables={"v": (1, 1)}))
    kernel = module["k"]
    launcher, other = kernel[1, 1], kernel.configure(grid=1, block=1)
    launcher(1)
    assert kernel.handle != 0
    module.unload()
    module.unload()
    assert driver.count("cuLibraryUnload") == 1
    assert kernel.handle == 0
    assert "unloaded" in repr(module)
    for call in (lambda: launcher(1), lambda: other(1), lambda: kernel.launch(1, grid=1, block=1)):
        with pytest.raises(cl.LaunchError, match="module was unloaded: load it again"):
            call()
    for ask in (
        lambda: module["other"],
        lambda: module.kernel("k", signature="int"),
        lambda: module.kernels,
        lambda: module.get_global("v"),
        lambda: kernel.attributes(),
        lambda: kernel.occupancy(32),
    ):
        with pytest.raises(ValueError, match="unloaded: load it again"):
            ask()
    assert len(driver.launches) == 1
    with pytest.raises(TypeError):
        launcher("still checked")


def test_a_with_block_unloads(driver):
    with cl.load(driver.image({"k": ()})) as module:
        module["k"][1, 1]()
        assert driver.libraries
    assert driver.libraries == {}
    with pytest.raises(RuntimeError, match="mine"), cl.load(driver.image({})):
        raise RuntimeError("mine")
    assert driver.libraries == {}


@pytest.mark.slow
@pytest.mark.memory
def test_nothing_else_unloads(driver):
    for _ in range(3):
        cl.load(driver.image({"k": ()}))["k"][1, 1]()
    gc.collect()
    assert driver.count("cuLibraryUnload") == 0
    assert len(driver.libraries) == 3


def test_a_module_keeps_its_driver(install):
    first = install()
    kernel = first.kernel(4)
    second = install()
    kernel[1, 1](1)
    kernel.attributes()
    assert len(first.launches) == 1
    assert second.launches == []
    second.kernel(4)[1, 1](1)
    assert len(first.launches) == len(second.launches) == 1


def test_a_module_s_repr(driver, compiled):
    assert repr(cl.load(compiled["cubin"])).startswith(
        "<culaunch.Module of <culaunch.Image cubin sm_90"
    )


# ---- capture


def test_the_first_launch_inside_a_capture(driver):
    stream = driver.make_stream()
    driver.capturing.add(stream)
    kernel = driver.kernel(4, attributes={MAX_THREADS: 1024})
    kernel[1, 1, 0, stream](1)
    kernel[1, 1, 100_000, stream](2)
    kernel.launch(3, grid=16, block=1, cluster=16, stream=stream)
    assert len(driver.launches) == 3
    # The thread's own mode is what it was: loading would fail again.
    mode = ctypes.c_int(0)
    driver.cuThreadExchangeStreamCaptureMode(ctypes.addressof(mode))
    assert mode.value == 0


def test_a_capture_in_another_context_of_the_device(driver):
    own = driver.make_context(0)
    for contexts in ((own, 0xC0000), (0xC0000, own)):
        kernel = driver.kernel(8)
        driver.stack.append(contexts[0])
        kernel[1, 1](None)
        driver.stack[-1] = contexts[1]
        stream = 0xABC0 + contexts[1]
        driver.streams[stream] = contexts[1]
        driver.capturing.add(stream)
        kernel[1, 1, 0, stream](None)
        assert driver.last.context == contexts[1]
        driver.capturing.clear()
        driver.stack.pop()


def test_the_capture_mode_is_restored_when_loading_fails(driver):
    kernel = driver.kernel(4)
    driver.fail("cuFuncLoad", 2)
    with pytest.raises(cl.DriverError, match="OUT_OF_MEMORY"):
        kernel[1, 1](1)
    mode = ctypes.c_int(0)
    driver.cuThreadExchangeStreamCaptureMode(ctypes.addressof(mode))
    assert mode.value == 0
    kernel[1, 1](1)
    assert driver.stack == []
