"""load_inline on GPUs: devices, streams, graphs, through PyTorch."""

from __future__ import annotations

import pytest

import culaunch as cl

torch = pytest.importorskip("torch")
pytest.importorskip("tvm_ffi")
pytestmark = [pytest.mark.gpu, pytest.mark.needs("g++", "nvrtc")]

KERNELS = """
extern "C" __global__ void add(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + a;
}
extern "C" __global__ void reverse(float* x, int n) {
  extern __shared__ float kept[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) kept[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = kept[n - 1 - i];
}
"""
CODE = """
using culaunch::ffi::CurrentStream;
using culaunch::ffi::Data;
using tvm::ffi::TensorView;
CULAUNCH_EMBED_CUBIN(kernels);

void add(TensorView y, TensorView x, double a) {
  CULAUNCH_CHECK_DEVICE(x);
  CULAUNCH_CHECK_SAME_DEVICE(y, x);
  // No guard: the stream says which device.
  const int n = static_cast<int>(x.numel());
  CULAUNCH_GET_KERNEL(kernels, "add")
  ({(n + 255u) / 256, 256, 0, CurrentStream(x)}, Data(y), Data(x), static_cast<float>(a), n);
}

tvm::ffi::Tensor add_new(TensorView x, double a) {
  tvm::ffi::Tensor y = culaunch::ffi::EmptyLike(x);
  add(y, x, a);
  return y;
}

void add_guarded(TensorView y, TensorView x, double a) {
  const culaunch::ffi::TensorGuard guard(x);
  add(y, x, a);
}

void reverse(TensorView x) {
  const int n = static_cast<int>(x.numel());
  const auto bytes = static_cast<unsigned>(n * sizeof(float));
  CULAUNCH_GET_KERNEL(kernels, "reverse")({1, 256, bytes, CurrentStream(x)}, Data(x), n);
}
"""


@pytest.fixture(scope="module")
def module():
    return cl.cpp.load_inline(
        "gpu",
        CODE,
        functions=["add", "add_new", "reverse"],
        embed_cubin={"kernels": cl.compile(KERNELS)},
    )


def test_the_current_stream_is_used(module):
    x = torch.zeros(1 << 20, device="cuda")
    y = torch.empty_like(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        x += 1
        module.add(y, x, 2.0)
        total = y.sum()
    stream.synchronize()
    assert total.item() == 3.0 * (1 << 20)


def test_culaunchs_own_arrays_are_allocated_by_libraries(module):
    x = cl.to_device(torch.arange(1000, dtype=torch.float32).numpy())
    y = module.add_new(module.add_new(x, 1.0), 2.0)
    assert isinstance(y, cl.DeviceArray)
    assert y.numpy().sum() == sum(range(1000)) + 3000


def test_a_graph_captures_the_first_launch(module):
    # A module of its own: nothing of it is loaded on the device before the capture.
    fresh = cl.cpp.load_inline(
        "gpu_graph",
        CODE,
        functions=["add"],
        embed_cubin={"kernels": cl.compile(KERNELS)},
    )
    x = torch.zeros(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fresh.add(x, x, 1.0)
    assert x.sum().item() == 0
    for _ in range(3):
        graph.replay()
    assert x.sum().item() == 3000


def test_more_shared_memory_than_the_default(module):
    x = torch.arange(25_000, device="cuda", dtype=torch.float32)  # 100,000 bytes
    module.reverse(x)
    assert torch.equal(x.cpu(), torch.arange(24_999, -1, -1, dtype=torch.float32))
    with pytest.raises(ValueError, match="ask for at most"):
        module.reverse(torch.zeros(100_000, device="cuda"))


def test_an_array_of_another_type_or_place_is_the_error_that_python_gives(module):
    kernel = cl.load(cl.compile(KERNELS))["add"]
    x = torch.ones(6, device="cuda", dtype=torch.float64)
    with pytest.raises(TypeError, match="must be an array of float32") as python:
        kernel[1, 64](torch.empty_like(x), x, 1.0, 6)
    start, _, end = str(python.value).partition("(got torch.Tensor of ")
    for _ in range(2):
        with pytest.raises(TypeError, match="must be an array of float32") as native:
            module.add_new(x, 1.0)
        assert str(native.value) == f"{start}(got an array of {end}"
    cpu = torch.ones(6)
    with pytest.raises(ValueError, match="must be in the memory of the driver in use"):
        module.reverse(cpu)
    assert module.add_new(torch.ones(6, device="cuda"), 1.0).tolist() == [2.0] * 6


def test_an_array_that_is_not_on_the_gpu(module):
    x = torch.zeros(10)
    with pytest.raises(ValueError, match=r"x must be in memory of the driver .* \(got cpu:0\)"):
        module.add(x, x, 1.0)


@pytest.mark.multi_gpu
def test_one_static_kernel_serves_two_devices(module):
    tensors = {device: torch.ones(1000, device=device) for device in ("cuda:1", "cuda:0")}
    # A launch goes to its tensor's device, whatever is current: on default streams, which are of
    # every device, and on others.
    for x in tensors.values():
        module.add(x, x, 1.0)
    torch.cuda.set_stream(torch.cuda.Stream("cuda:1"))
    torch.cuda.set_device(0)
    try:
        torch.cuda.synchronize("cuda:1")
        for x in tensors.values():
            module.add(x, x, 1.0)
        assert torch.cuda.current_device() == 0
    finally:
        torch.cuda.set_stream(torch.cuda.default_stream("cuda:1"))
        torch.cuda.set_device(0)
    for device, x in tensors.items():
        torch.cuda.synchronize(device)
        assert x.sum().item() == 3000
