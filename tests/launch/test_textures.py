"""Textures and surfaces: what the driver is asked for, and what kernels read and write."""

import ctypes
import gc
import struct

import numpy as np
import pytest

import culaunch as cl

SOURCE = """
extern "C" __global__ void sample(float* out, cudaTextureObject_t image, const float* x,
                                  const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2D<float>(image, x[i], y[i]);
}
extern "C" __global__ void fetch(float4* out, cudaTextureObject_t line, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = tex1D<float4>(line, i + 0.5f);
}
extern "C" __global__ void twice(cudaSurfaceObject_t image, int width, int height) {
  int x = threadIdx.x, y = threadIdx.y;
  if (x >= width || y >= height) return;
  surf2Dwrite(2 * surf2Dread<float>(image, x * 4, y), image, x * 4, y);
}
"""


@pytest.fixture
def module(culaunch_driver):
    return cl.load(cl.compile(SOURCE, arch="compute_80"))


# ---- on each driver


def test_a_texture_is_sampled(module):
    image = np.arange(12, dtype="f4").reshape(3, 4)
    x = np.array([0.5, 3.5, 1.5, 1.0, 9.0], "f4")
    y = np.array([0.5, 2.5, 1.5, 1.0, 1.5], "f4")
    wanted = {"point": [0, 11, 5, 5, 7], "linear": [0, 11, 5, 2.5, 7]}
    for mode, values in wanted.items():
        for source in (image, cl.to_device(image)):
            texture, out = cl.arguments.Texture(source, filter=mode), cl.zeros(5)
            module["sample"][1, 32](out, texture, cl.to_device(x), cl.to_device(y), 5)
            assert out.numpy().tolist() == values
    border = cl.arguments.Texture(image, address="border")
    module["sample"][1, 32](out, border, cl.to_device(x), cl.to_device(y), 5)
    assert out.numpy().tolist() == [0, 11, 5, 5, 0]


def test_channels_and_integers_as_floats(module):
    line = np.array([[0, 51, 102, 255], [255, 0, 0, 51]], "u1")
    texture, out = cl.arguments.Texture(line, channels=4, as_float=True), cl.zeros((2, 4))
    module["fetch"][1, 32](out, texture, 2)
    np.testing.assert_allclose(out.numpy(), line / np.float32(255), rtol=1e-6)


def test_a_surface_is_written_and_sampled(module):
    image = np.arange(12, dtype="f4").reshape(3, 4)
    surface = cl.arguments.Surface(image)
    module["twice"][1, (4, 3)](surface, 4, 3)
    assert (surface.numpy() == 2 * image).all()
    texture, out = cl.arguments.Texture(surface), cl.zeros(1)
    at = cl.to_device(np.array([2.5], "f4"))
    module["sample"][1, 1](out, texture, at, at, 1)
    assert out.numpy()[0] == 20
    surface.copy_from(image)
    module["sample"][1, 1](out, texture, at, at, 1)
    assert out.numpy()[0] == 10
    cubes = np.arange(24, dtype="i2").reshape(2, 3, 4)
    assert (cl.arguments.Surface(cubes).numpy() == cubes).all()


# ---- what the driver is asked for


@pytest.mark.slow
def test_the_descriptors(driver):
    image = np.zeros((3, 4, 2), "f2")
    texture = cl.arguments.Texture(
        image, channels=2, filter="linear", address="mirror", normalized=True
    )
    array, copy, resource, sampling = driver.descriptors
    assert struct.unpack_from("QQQIII", array) == (4, 3, 0, 16, 2, 0)
    host, pitch, height = (struct.unpack_from("Q", copy, at)[0] for at in (40, 72, 80))
    assert (host, pitch, height) == (image.ctypes.data, 16, 3)
    assert struct.unpack_from("QQQ", copy, 176) == (16, 3, 1)
    assert struct.unpack_from("IIQ", resource)[::2] == (0, next(iter(driver.objects)))
    assert struct.unpack_from("IIIII", sampling) == (2, 2, 2, 1, 3)
    driver.bytes_of(texture, 8, "cudaTextureObject_t")
    driver.bytes_of(texture, 8, "unsigned long long")
    assert driver.last.arguments[0] == struct.pack("Q", texture.value)
    assert (texture.shape, texture.dtype, texture.device) == ((3, 4, 2), np.float16, 0)
    del texture
    gc.collect()
    assert driver.objects == {}


@pytest.mark.slow
@pytest.mark.memory
def test_a_texture_keeps_the_memory_of_its_surface(driver):
    surface = cl.arguments.Surface(np.zeros((2, 3, 4), "u4"), device=1)
    assert struct.unpack_from("QQQIII", driver.descriptors[0]) == (4, 3, 2, 3, 1, 2)
    texture = cl.arguments.Texture(surface)
    del surface
    gc.collect()
    assert len(driver.objects) == 2
    assert texture.device == 1
    assert isinstance(texture, ctypes.c_uint64)
    del texture
    gc.collect()
    assert driver.objects == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (
            np.zeros(4),
            {},
            "must be an integer of 8, 16 or 32 bits, float16 or float32",
        ),
        (np.zeros(4, ">f4"), {}, "the element type of a texture"),
        (np.zeros((4, 3), "f4"), {"channels": 3}, "channels must be 1, 2 or 4"),
        (np.zeros((4, 3), "f4"), {"channels": 4}, "for several channels, which is the last"),
        (np.zeros((2, 2, 2, 2), "f4"), {}, "a texture must have 1 to 3 dimensions"),
        (np.zeros(0, "f4"), {}, "a texture must have 1 to 3 dimensions"),
        (np.zeros(4, "f4"), {"filter": "cubic"}, "filter must be one of 'point', 'linear'"),
        (np.zeros(4, "f4"), {"address": "wrap"}, "needs normalized=True"),
        (np.zeros(4, "f4"), {"as_float": True}, "as_float must be given only for integers"),
        (np.zeros(4, "u1"), {"filter": "linear"}, "filter='linear' needs floats"),
        (np.zeros(4, "u1"), {"normalized": 1}, "normalized must be True or False"),
    ],
)
def test_what_is_no_texture(driver, array, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        cl.arguments.Texture(array, **options)
    gc.collect()
    assert driver.objects == {}


@pytest.mark.slow
@pytest.mark.memory
def test_what_fails_leaves_nothing(driver):
    for function in ("cuMemcpy3DAsync", "cuTexObjectCreate"):
        driver.fail(function, 1)
        with pytest.raises(cl.DriverError):
            cl.arguments.Texture(np.zeros(4, "f4"))
        gc.collect()
        assert driver.objects == {}
    with pytest.raises(ValueError, match=r"array must have shape \(4,\)"):
        cl.arguments.Surface(np.zeros(4, "f4")).copy_from(np.zeros(5, "f4"))
