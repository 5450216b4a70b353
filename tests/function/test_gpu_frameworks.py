"""Functions on a GPU: streams, captures, every framework's allocator."""

from __future__ import annotations

import gc

import pytest
from bodies import make_scale, make_total

import culaunch as cl

pytestmark = pytest.mark.gpu

SOURCE = r"""
template <class T>
__global__ void scale(T* y, const T* x, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (T)((float)x[i] * factor);
}
__global__ void partial_sums(float* partial, const float* x, int n) {
    __shared__ float sums[256];
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}
__global__ void slow(float* x, long long clocks) {
    long long start = clock64();
    while (clock64() - start < clocks) {}
    x[0] += 1;
}
"""


@pytest.fixture(scope="module")
def kernels():
    names = ["scale<float>", "scale<double>"]
    return cl.load(cl.compile(SOURCE, arch="native", names=names))


@pytest.fixture(scope="module")
def scale(kernels):
    return make_scale(kernels)


@pytest.fixture(scope="module")
def total(kernels):
    return make_total(kernels)


@pytest.mark.needs("torch")
def test_torch_on_streams(scale, kernels):
    torch = pytest.importorskip("torch")
    x = torch.zeros(1 << 16, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        kernels["slow"][1, 1](x, 200_000_000)
        y = scale(x, 3.0)  # after the slow kernel, for it is on the same stream
    stream.synchronize()
    assert y[0].item() == 3.0
    assert y.device == x.device
    for dtype in (torch.float32, torch.float64):
        x = torch.rand(1000, device="cuda", dtype=dtype)
        assert torch.allclose(scale(x, 0.5), x * 0.5)
    with pytest.raises(ValueError, match="x must be contiguous"):
        scale(torch.rand(8, 8, device="cuda").T, 0.5)


@pytest.mark.needs("torch")
def test_torch_captures(scale, total):
    torch = pytest.importorskip("torch")
    x = torch.arange(1000, device="cuda", dtype=torch.float32)
    scale(x, 2.0)
    total(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = total(scale(x, 2.0))
    x.fill_(1)
    graph.replay()
    torch.cuda.synchronize()
    assert y.item() == 2000


@pytest.mark.needs("torch")
def test_scratch_memory_is_torchs_and_goes_back(total):
    torch = pytest.importorskip("torch")
    x = torch.ones(1 << 20, device="cuda")
    assert total(x).item() == 1 << 20
    gc.collect()  # other tests' tensors
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(100):
        total(x)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before
    assert total(x[:1]).item() == 1


@pytest.mark.multi_gpu
@pytest.mark.needs("torch")
def test_the_device_is_the_arrays(scale):
    torch = pytest.importorskip("torch")
    for current in (0, 1):
        with torch.cuda.device(current):
            y = scale(torch.ones(100, device="cuda:1"), 2.0)
            assert torch.cuda.current_device() == current
        assert y.device.index == 1
    assert y.sum().item() == 200


@pytest.mark.needs("cupy")
def test_cupy(scale, total):
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x = cupy.arange(1000, dtype="float32")
        y = scale(x, 2.0)
        assert isinstance(y, cupy.ndarray)
        assert float(total(x)[0]) == 499500
        stream.synchronize()
    assert float(y.sum()) == 999000


@pytest.mark.needs("jax")
def test_jax(scale, total):
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(1000, dtype="float32")
    y = scale(x, 2.0)
    assert isinstance(y, jax.Array)
    assert float(y.sum()) == 999000
    assert float(total(x)[0]) == 499500


@pytest.mark.needs("numpy")
def test_culaunchs_own_arrays(scale):
    np = pytest.importorskip("numpy")
    x = cl.to_device(np.arange(1000, dtype=np.float32))
    y = scale(x, 2.0)
    assert isinstance(y, cl.DeviceArray)
    assert (y.numpy() == 2 * np.arange(1000)).all()


@pytest.mark.needs("torch")
def test_a_launch_that_cannot_be_names_the_line(kernels):
    torch = pytest.importorskip("torch")

    @cl.function
    def wrong(x, threads: int):
        kernels["slow"][1, 1](x, 0)
        kernels["slow"][1, threads](x, 0)

    x = torch.zeros(1, device="cuda")
    with pytest.raises((cl.LaunchError, ValueError), match=r"test_gpu_frameworks.py:\d+"):
        wrong(x, 2048)
    torch.cuda.synchronize()
    assert x.item() == 0  # nothing was launched half
