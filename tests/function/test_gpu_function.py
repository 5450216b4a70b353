"""Functions on a GPU: torch's streams, allocator and graphs, clusters, tensor maps, two devices."""

import numpy as np
import pytest

import culaunch as cl

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]

SOURCE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
template <class T> __global__ void scale(T* y, const T* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * a);
}
extern "C" __global__ void partial(float* parts, const float* x, int n) {
  __shared__ float sums[256];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
  sums[threadIdx.x] = sum;
  for (int step = 128; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = sums[0];
}
extern "C" __global__ void shared(int* y) {
  extern __shared__ int values[];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void ranks(unsigned* y) {
  unsigned rank;
  asm("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) y[blockIdx.x] = rank;
}
extern "C" __global__ void tile(float* y, const __grid_constant__ CUtensorMap map, int row) {
  __shared__ alignas(128) float box[4][8];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
  unsigned to = (unsigned)__cvta_generic_to_shared(box);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at));
    asm volatile("fence.proxy.async.shared::cta;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" ::"r"(at));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&map), "r"(0), "r"(row), "r"(at) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; "
                 "selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
  }
  if (threadIdx.x < 32) y[threadIdx.x] = box[threadIdx.x / 8][threadIdx.x % 8];
}
"""
DTYPES = {
    "float32": "float", "float64": "double", "float16": "__half", "bfloat16": "__nv_bfloat16",
    "int64": "long long",
}  # fmt: skip


@pytest.fixture(scope="module")
def gpu():
    names = [f"scale<{spelling}>" for spelling in DTYPES.values()]
    return cl.load(cl.compile(SOURCE, arch="native", names=names))


@pytest.fixture
def scale(gpu):
    @cl.function
    def scale(x, factor: float):
        cl.check(x.is_contiguous(), "x must be contiguous")
        y = cl.empty_like(x)
        n = x.size
        cl.launch_if(n > 0, gpu[f"scale<{x.dtype}>"][cl.ceildiv(n, 256), 256], y, x, factor, n)
        return y

    return scale


@pytest.fixture
def total(gpu):
    @cl.function
    def total(x):
        blocks = min(cl.ceildiv(x.size, 1024), 2 * x.device.attribute("multiprocessor_count"))
        parts = cl.empty(blocks, "float32")
        y = cl.empty((), "float32")
        gpu["partial"][blocks, 256](parts, x, x.size)
        gpu["partial"][1, 256](y.reshape(1), parts, blocks)
        return y

    return total


@pytest.mark.parametrize("name", DTYPES)
def test_types(torch, scale, name):
    x = torch.arange(1000, device="cuda").to(getattr(torch, name))
    for _ in range(3):
        torch.testing.assert_close(scale(x, 2.0), x * 2)
    assert scale(x[:0], 2.0).shape == (0,)
    with cl.function_debugging():
        torch.testing.assert_close(scale(x, 3.0), x * 3)


def test_scratch_and_views(torch, total):
    for size in (1, 1000, 1 << 20):
        x = torch.ones(size, device="cuda")
        assert total(x).item() == size
    assert total(torch.ones(100, device="cuda")[3:50]).item() == 47


def test_the_framework_s_current_stream(torch, scale):
    stream = torch.cuda.Stream()
    x = torch.ones(1 << 22, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        y = x
        for _ in range(20):
            y = scale(y, 1.5)
        event = stream.record_event()
    event.synchronize()
    assert y[0].item() == pytest.approx(1.5**20)


def test_graph_capture(torch, scale, total):
    x = torch.ones(10000, device="cuda")
    scale(x, 1.0), total(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = total(scale(x, 2.0))
    for factor in (1, 3):
        x.fill_(factor)
        graph.replay()
        assert y.item() == 20000 * factor


def test_graph_capture_of_the_first_call(torch, gpu):
    @cl.function
    def fresh(x):
        y = cl.zeros_like(x)
        gpu["scale<float>"][1, 256](y[1:], x, 2.0, x.size - 1)
        return y

    x = torch.ones(100, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = fresh(x)
    graph.replay()
    assert y.sum().item() == 198


def test_more_shared_memory_than_the_default(torch, gpu):
    @cl.function
    def reverse(y):
        gpu["shared"][1, y.shape[0], y.shape[0] * 4 + 60000](y)

    y = torch.zeros(256, dtype=torch.int32, device="cuda")
    for _ in range(2):
        reverse(y)
    assert y.tolist() == list(range(256))[::-1]


def test_clusters(torch, gpu):
    if cl.driver.Device(0).attribute("compute_capability_major") < 9:
        pytest.skip("needs sm_90")

    @cl.function
    def ranks(y, size: int):
        gpu["ranks"].launch(y, grid=y.shape[0], block=32, cluster=size)

    y = torch.zeros(8, dtype=torch.uint32, device="cuda")
    for size in (1, 2, 4):
        ranks(y, size)
        assert y.cpu().tolist() == [i % size for i in range(8)]


def test_tensor_maps(torch, gpu):
    if cl.driver.Device(0).attribute("compute_capability_major") < 9:
        pytest.skip("needs sm_90")

    @cl.function
    def tile(x, row: int):
        y = cl.empty((4, 8), x.dtype)
        gpu["tile"][1, 32](y, cl.arguments.TensorMap.tiled(x, (4, 8)), row)
        return y

    for rows in (16, 40):
        x = torch.arange(rows * 8.0, device="cuda").reshape(rows, 8)
        for row in (0, 5, rows - 4):
            assert torch.equal(tile(x, row), x[row : row + 4])
            with cl.function_debugging():
                assert torch.equal(tile(x, row), x[row : row + 4])


def test_what_the_driver_would_refuse_is_known_before(torch, gpu):
    """Exactly: the largest that is said to be good is launched, one more launches nothing."""
    kernel = gpu["shared"]

    @cl.function
    def twice(y, z, grid: int, shared: int, cooperative: bool):
        gpu["scale<float>"].launch(y, y, 2.0, y.size, grid=1, block=32)
        kernel.launch(z, grid=grid, block=64, shared_memory=shared, cooperative=cooperative)

    y = torch.ones(32, device="cuda")
    z = torch.zeros(64, dtype=torch.int32, device="cuda")
    device = cl.driver.Device(0)
    shared = device.attribute("max_shared_memory_per_block_optin")
    count = device.attribute("multiprocessor_count")
    most = kernel.occupancy(64, shared_memory=1024).active_blocks * count
    twice(y, z, 1, shared, False)
    twice(y, z, most, 1024, True)
    torch.cuda.synchronize()
    assert y.tolist() == [4] * 32
    for wrong, message in [
        ((1, shared + 1, False), "of dynamic shared memory"),
        ((most + 1, 1024, True), "the cooperative grid has"),
    ]:
        with pytest.raises(cl.LaunchError, match=message):
            twice(y, z, *wrong)
    torch.cuda.synchronize()
    assert y.tolist() == [4] * 32


def test_clusters_that_are_too_large_are_known_before(torch, gpu):
    if cl.driver.Device(0).attribute("compute_capability_major") < 9:
        pytest.skip("needs sm_90")

    @cl.function
    def ranks(x, y, size: int):
        gpu["scale<float>"].launch(x, x, 2.0, x.size, grid=1, block=32)
        gpu["ranks"].launch(y, grid=64, block=32, cluster=size)

    x = torch.ones(32, device="cuda")
    y = torch.zeros(64, dtype=torch.uint32, device="cuda")
    ranks(x, y, 8)
    ranks(x, y, 16)  # which is not portable
    with pytest.raises(cl.LaunchError, match="the cluster has 32 blocks"):
        ranks(x, y, 32)
    torch.cuda.synchronize()
    assert x.tolist() == [4] * 32


def test_cooperative_and_priority(torch, gpu):
    @cl.function
    def launched(y, x):
        gpu["scale<float>"].launch(y, x, 2.0, x.size, grid=1, block=64, cooperative=True)
        gpu["scale<float>"].launch(y, y, 2.0, x.size, grid=1, block=64, priority=-1)
        gpu["scale<float>"].launch(y, y, 2.0, x.size, grid=1, block=64, programmatic=True)

    x = torch.ones(64, device="cuda")
    y = torch.zeros_like(x)
    for _ in range(2):
        launched(y, x)
        assert y.sum().item() == 64 * 8


def test_errors_launch_nothing(torch, gpu, scale):
    @cl.function
    def second_is_wrong(y, x, n: int):
        gpu["scale<float>"][1, 64](y, x, 5.0, x.size)
        gpu["scale<float>"][n, 64](y, x, 1.0, x.size)

    x, y = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    second_is_wrong(y, x, 1)
    y.zero_()
    with pytest.raises(ValueError, match="from 1 to 2147483647"):
        second_is_wrong(y, x, 0)
    assert y.sum().item() == 0
    with pytest.raises((TypeError, ValueError), match="x"):
        scale(np.zeros(4, np.float32), 1.0)


def test_arrays_of_culaunch_and_cupy(scale):
    x = cl.to_device(np.arange(10, dtype=np.float32))
    assert scale(x, 2.0).numpy().tolist() == (2 * np.arange(10)).tolist()
    cupy = pytest.importorskip("cupy", reason="needs cupy")
    y = scale(cupy.arange(10, dtype="float32"), 2.0)
    assert isinstance(y, cupy.ndarray)
    assert y.get().tolist() == (2 * np.arange(10)).tolist()


@pytest.mark.multi_gpu
def test_two_devices(torch, scale, total):
    for device in (1, 0, 1):
        x = torch.ones(5000, device=f"cuda:{device}")
        y = scale(x, 2.0)
        assert y.device == x.device
        assert total(y).item() == 10000
    with pytest.raises(ValueError, match="device"):
        cl.function(lambda x, y: None)(x, x.to("cuda:0"))
