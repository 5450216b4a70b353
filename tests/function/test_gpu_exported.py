"""Exported functions on a GPU: each framework's arrays, stream and allocator, through TVM-FFI."""

from __future__ import annotations

import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew

tvm_ffi = pytest.importorskip("tvm_ffi")
pytestmark = [pytest.mark.gpu, pytest.mark.needs("g++")]

SOURCE = r"""
template <class T> __global__ void scale(T* y, const T* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * a);
}
"""


@ew.fuse
def scaled_sum(x, y, s):
    return x * s + y


@pytest.fixture(scope="module")
def functions():
    names = ["scale<float>", "scale<double>"]
    kernels = cl.load(cl.compile(SOURCE, arch="native", names=names))

    @cl.function
    def scale(x: cl.Array("float32 | float64", "n"), factor: float = 2.0):
        cl.check(x.is_contiguous(), "x must be contiguous")
        y = cl.empty_like(x)
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(x.shape[0], 256), 256](y, x, factor, x.shape[0])
        return y

    @cl.function
    def fused(x, y, s: float):
        return scaled_sum(x, y, s)

    scale.specialize()
    x = cl.to_device(np.ones((8, 16), np.float32))
    fused(x, x, 1.0)
    return scale, fused


@pytest.fixture(scope="module")
def module(functions, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "libexported.so"
    cl.ship.export(list(functions), path)
    return tvm_ffi.load_module(str(path))


@pytest.mark.needs("torch")
def test_torch(module):
    torch = pytest.importorskip("torch")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.rand(1 << 20, device="cuda")
        y = module.scale(x * 2, 3.0)
        z = y + 1
    stream.synchronize()
    assert type(y) is torch.Tensor
    assert torch.equal(z, x * 2 * 3 + 1)


@pytest.mark.needs("torch")
def test_a_tensor_map_that_cannot_be_is_known_before(tmp_path):
    """A box of more than 256 elements: it is in a later launch, and the first does not happen."""
    torch = pytest.importorskip("torch")
    source = """
struct alignas(64) Map { unsigned long long opaque[16]; };
extern "C" __global__ void fill(int* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = 7; }
extern "C" __global__ void mapped(Map map, int n) {}
"""
    kernels = cl.load(cl.compile(source, arch="native"))

    @cl.function
    def two(x, y, rows: int):
        kernels["fill"][1, 32](y, y.shape[0])
        kernels["mapped"][1, 32](cl.arguments.TensorMap.tiled(x, (rows, 32)), 3)

    x, y = torch.zeros(1024, 32, device="cuda"), torch.zeros(4, dtype=torch.int32, device="cuda")
    two(x, y.clone(), 8)
    path = tmp_path / "libtwo.so"
    cl.ship.export(two, path)
    exported = tvm_ffi.load_module(str(path)).two
    for call in (exported, two):
        with pytest.raises((RuntimeError, cl.CulaunchError), match="encoding a tensor map"):
            call(x, y, 512)
        torch.cuda.synchronize()
        assert y.tolist() == [0] * 4
    exported(x, y, 8)
    assert y.tolist() == [7] * 4


@pytest.mark.needs("torch")
def test_fused_functions_in_a_library(functions, module, tmp_path):
    torch = pytest.importorskip("torch")
    _, fused = functions
    x, y = torch.rand(64, 33, device="cuda"), torch.rand(64, 33, device="cuda")
    fused(x, y, 2.0)
    fused(x[:, ::2], y[:, ::2], 2.0)
    cl.ship.save([fused], tmp_path / "fused.culib")
    lib = cl.ship.load_library(tmp_path / "fused.culib")
    for a, b in ((x, y), (x[:, ::2], y[:, ::2]), (x[1:], y[1:])):
        assert torch.equal(lib.fused(a, b, 2.0), fused(a, b, 2.0))
    assert torch.equal(module.fused(x, y, 2.0), fused(x, y, 2.0))


@pytest.mark.needs("cupy")
def test_cupy(module):
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(1000, dtype="float32")
    y = cupy.zeros_like(x)
    cupy.cuda.get_current_stream().synchronize()
    module.scale_into(tvm_ffi.from_dlpack(y), tvm_ffi.from_dlpack(x), 3.0)
    cupy.cuda.Device().synchronize()
    assert float(y.sum()) == 3 * 499500
    z = cupy.from_dlpack(module.scale(tvm_ffi.from_dlpack(x), 2.0))
    cupy.cuda.Device().synchronize()
    assert float(z.sum()) == 999000


@pytest.mark.needs("jax", "jax_tvm_ffi")
def test_jax(module):
    jax = pytest.importorskip("jax")
    bridge = pytest.importorskip("jax_tvm_ffi")
    words = ["rets", "args", "attrs.factor"]
    bridge.register_ffi_target("exported_scale", module.scale_into, words, platform="gpu")

    @jax.jit
    def program(x):
        result = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call("exported_scale", result)(x + 1, factor=2.5) * 2

    x = jax.numpy.arange(100_000, dtype="float32")
    assert jax.numpy.array_equal(program(x), (x + 1) * 5)
