"""Images in a real driver: what loads, what is refused and why, what a module knows of itself."""

import ctypes
import re

import numpy as np
import pytest

import culaunch as cl

# Warnings of other frameworks do not matter here.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore", "error:::culaunch")]

PTX = b"""
.version 7.0
.target sm_52
.address_size 64
.visible .entry increment(.param .u64 .ptr address, .param .s32 value)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [address];
  ld.param.s32 %r1, [value];
  ld.global.s32 %r2, [%rd1];
  add.s32 %r2, %r2, %r1;
  st.global.s32 [%rd1], %r2;
  ret;
}
"""
SOURCE = 'extern "C" __global__ void fill(int* out, int value) { out[threadIdx.x] = value; }'


def launch_fill(module, name="fill"):
    out = cl.to_device(np.zeros(32, "i4"))
    module[name][1, 32](out, 7)
    assert (out.numpy() == 7).all()


# ---- what loads


def test_ptx_is_compiled_by_the_driver():
    module = cl.load(PTX)
    kernel = module["increment"]
    assert [parameter.type for parameter in kernel.signature.parameters] == ["void*", "int"]
    value = cl.to_device(np.full(1, 5, "i4"))
    kernel[1, 1](value, -7)
    assert value.numpy()[0] == -2
    with pytest.raises(TypeError):
        kernel[1, 1](value, 1.0)


def test_a_fatbin_serves_by_its_cubin_or_its_ptx():
    native = cl.driver.Device(0).arch
    for arch in ((native, "compute_75"), ("compute_75", "sm_80"), ("sm_75", "sm_80", native)):
        image = cl.compile(SOURCE, arch=arch)
        assert image.format == "fatbin"
        launch_fill(cl.load(image))


def test_ptx_of_an_older_architecture():
    image = cl.compile(SOURCE, arch="compute_75")
    assert image.format == "ptx"
    image = cl.Image(re.sub(rb"\.version \S+", b".version 7.4", image.data))  # for any driver
    launch_fill(cl.load(image))


def test_a_saved_image_with_its_names(gpu_image, tmp_path):
    path = tmp_path / "kernels.cubin"
    gpu_image.save(path)
    module = cl.load(path)
    assert module["scale<float>"].name == gpu_image.names["scale<float>"]
    assert str(module["add"].signature) == "(int*, int)"
    value = cl.to_device(np.zeros(1, "i4"))
    module["add"][1, 1](value, 3)
    assert value.numpy()[0] == 3
    # The driver takes the file's bytes as they are, with what culaunch wrote behind the image.
    raw = ctypes.c_void_p()
    cuda = ctypes.CDLL("libcuda.so.1")
    data = path.read_bytes()
    none = [None, None, 0, None, None, 0]
    assert len(data) > len(gpu_image.data)
    assert cuda.cuLibraryLoadData(ctypes.byref(raw), data, *none) == 0
    assert cuda.cuLibraryUnload(raw) == 0


def test_the_driver_lists_the_kernels(gpu, gpu_image):
    names = {kernel.name for kernel in gpu}
    assert names == {kernel.name for kernel in gpu_image.kernels}
    for kernel in gpu_image.kernels:
        layout = [(one.offset, one.size) for one in gpu[kernel.name].signature.parameters]
        assert layout == [(one.offset, one.size) for one in kernel.parameters]


# ---- what is refused


@pytest.mark.parametrize("arch", ["sm_80", "sm_100"])
def test_a_cubin_for_another_architecture(arch):
    native = cl.driver.Device(0).arch
    if native.startswith(arch[:-1]):
        arch = "sm_90" if arch == "sm_100" else "sm_75"
    image = cl.compile(SOURCE, arch=arch)
    out = cl.to_device(np.zeros(32, "i4"))
    with pytest.raises(cl.DriverError) as caught:
        cl.load(image)["fill"][1, 32](out, 7)
    message = str(caught.value)
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU (209)" in message
    assert arch in message
    assert native in message
    value = cl.to_device(np.zeros(1, "i4"))
    cl.load(PTX)["increment"][1, 1](value, 1)  # the context is as good as before
    assert value.numpy()[0] == 1


def test_ptx_that_is_too_new():
    with pytest.raises(cl.DriverError) as caught:
        cl.load(PTX.replace(b"7.0", b"99.0"))["increment"]
    assert "PTX" in str(caught.value)
    assert caught.value.code in (218, 222)


def test_ptx_that_does_not_compile_shows_the_log():
    with pytest.raises(cl.DriverError) as caught:
        cl.load(PTX.replace(b"add.s32", b"frobnicate.s32"))["increment"]
    message = str(caught.value)
    assert "CUDA_ERROR_INVALID_PTX (218)" in message
    assert "frobnicate" in message
    assert "line" in message


def test_damaged_images_never_crash(gpu_image, in_child):
    text = in_child(
        """
        import random
        random.seed(7)
        data = module.image.data
        refused = 0
        for _ in range(200):
            broken = bytearray(data[: random.choice([len(data), random.randrange(len(data))])])
            for _ in range(random.randrange(3)):
                broken[random.randrange(64)] = random.randrange(256)
            try:
                cl.load(bytes(broken))
            except (cl.ImageError, cl.DriverError):
                refused += 1
        print("refused", refused)
        """,
        gpu_image,
    )
    assert text.startswith("refused")
    assert int(text.split()[1]) > 70


def test_what_an_elf_header_says_wrongly_never_crashes(gpu_image, in_child):
    text = in_child(
        """
        data = module.image.data
        refused = 0
        for place in range(64):
            for value in (0, 1, 2, 77, 127, 128, 255):
                broken = bytearray(data)
                broken[place] = value
                try:
                    cl.load(bytes(broken))
                except (cl.ImageError, cl.DriverError):
                    refused += 1
        print("refused", refused)
        """,
        gpu_image,
    )
    assert int(text.split()[1]) > 150


# ---- names


def test_every_name_of_a_kernel(gpu):
    mangled = gpu.image.names["scale<float>"]
    for name in (
        "scale<float>",
        "scale< float >",
        mangled,
        "scale<float>(float*, const float*, float, int)",
    ):
        assert gpu[name].name == mangled
    with pytest.raises(cl.KernelNotFoundError, match="scale<float>"):
        gpu["scale<short>"]


# ---- variables


def test_variables_are_read_and_written(gpu):
    counter, factor = gpu.get_global("counter"), gpu.get_global("factor")
    assert (counter.size, factor.size, counter.device) == (4, 4, 0)
    cuda = ctypes.CDLL("libcuda.so.1")
    with cl.driver.Device(0):
        for variable, value in ((counter, ctypes.c_int(6)), (factor, ctypes.c_float(0.5))):
            address = ctypes.c_uint64(variable.address)
            assert cuda.cuMemcpyHtoD_v2(address, ctypes.byref(value), ctypes.c_size_t(4)) == 0
    out = cl.to_device(np.zeros(1, "f4"))
    gpu["use_globals"][1, 1](out)
    assert out.numpy()[0] == 3.0
    gpu["add"][1, 1](counter.address, 4)
    gpu["use_globals"][1, 1](out)
    assert out.numpy()[0] == 5.0
    with pytest.raises(cl.KernelNotFoundError, match="no variable 'missing'"):
        gpu.get_global("missing")


# ---- numbers of the driver


def test_attributes_are_the_driver_s(gpu):
    cuda = ctypes.CDLL("libcuda.so.1")
    device = ctypes.c_int()
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    for name in ("fill_shared", "at_most_256", "echo"):
        kernel = gpu[name]
        handle = ctypes.c_void_p(kernel.handle)

        def ask(attribute, handle=handle):
            value = ctypes.c_int()
            code = cuda.cuKernelGetAttribute(ctypes.byref(value), attribute, handle, device)
            assert code == 0
            return value.value

        known = kernel.attributes()
        assert known.max_threads_per_block == ask(0)
        assert known.static_shared == ask(1)
        assert known.const_bytes == ask(2)
        assert known.local_bytes == ask(3)
        assert known.registers == ask(4)
        assert known.ptx_version == ask(5)
        assert known.binary_version == ask(6)
    assert gpu["at_most_256"].attributes().max_threads_per_block == 256


@pytest.mark.parametrize("shared", [0, 1024, 100_000])
def test_occupancy_is_the_driver_s(gpu_image, shared):
    kernel = cl.load(gpu_image)["fill_shared"]
    found = kernel.occupancy(256, shared)
    cuda = ctypes.CDLL("libcuda.so.1")
    function, blocks = ctypes.c_void_p(), ctypes.c_int()
    grid, block = ctypes.c_int(), ctypes.c_int()
    size = ctypes.c_size_t(shared)
    with cl.driver.Device(0):
        handle = ctypes.c_void_p(kernel.handle)
        assert cuda.cuKernelGetFunction(ctypes.byref(function), handle) == 0
        code = cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(blocks), function, 256, size
        )
        assert code == 0
        code = cuda.cuOccupancyMaxPotentialBlockSize(
            ctypes.byref(grid), ctypes.byref(block), function, None, size, 0
        )
        assert code == 0
    assert found.active_blocks == blocks.value > 0
    assert (found.suggested_grid, found.suggested_block) == (grid.value, block.value)


def test_occupancy_of_clusters(gpu, sm_90):
    found = gpu["cluster_ranks"].occupancy(128, cluster=2)
    assert found.max_cluster >= 8
    assert found.active_clusters > 0


# ---- tensor maps


@pytest.mark.parametrize("swizzle", ["none", "128B"])
def test_a_tensor_map_moves_a_box(gpu, sm_90, swizzle):
    table = np.arange(64 * 96, dtype="f4").reshape(64, 96)
    array = cl.to_device(table)
    tensor_map = cl.arguments.TensorMap.tiled(array, box=(8, 32), swizzle=swizzle)
    out = cl.empty((8, 32), "f4")
    for row, column in ((0, 0), (8, 32), (56, 64), (60, 80)):
        gpu["copy_box"][1, 256](tensor_map, out, row, column)
        expected = np.zeros((8, 32), "f4")  # texels outside the array read as zero
        inside = table[row : row + 8, column : column + 32]
        expected[: inside.shape[0], : inside.shape[1]] = inside
        found = out.numpy()
        if swizzle == "128B":  # 16-byte units of a row change places with the row's number
            units = found.reshape(8, 8, 4)
            found = np.stack([units[i][np.arange(8) ^ i] for i in range(8)]).reshape(8, 32)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.needs("torch")
def test_a_tensor_map_of_a_torch_view(gpu, sm_90):
    import torch

    table = torch.arange(64 * 96, dtype=torch.float32, device="cuda").view(64, 96)
    view = table[4:, 16:80]
    out = torch.empty(8, 32, device="cuda")
    gpu["copy_box"][1, 256](cl.arguments.TensorMap.tiled(view, box=(8, 32)), out, 3, 20)
    assert torch.equal(out, view[3:11, 20:52])
    with pytest.raises(ValueError, match="last dimension must be contiguous"):
        cl.arguments.TensorMap.tiled(table.t(), box=(8, 32))
    with pytest.raises(cl.DriverError, match="the driver refuses a tensor map"):
        cl.arguments.TensorMap.tiled(table[:, 1:], box=(8, 32))  # its address is no multiple of 16


# ---- unloading


def test_an_unloaded_module(gpu_image):
    with cl.load(gpu_image) as module:
        kernel = module["add"]
        launcher = kernel[1, 1]
        value = cl.to_device(np.zeros(1, "i4"))
        launcher(value, 1)
        cl.synchronize()
    with pytest.raises(cl.LaunchError, match="module was unloaded: load it again"):
        launcher(value, 1)
    with pytest.raises(cl.LaunchError, match="module was unloaded: load it again"):
        kernel[2, 2](value, 1)
    assert value.numpy()[0] == 1
