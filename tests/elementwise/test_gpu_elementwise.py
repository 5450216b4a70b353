"""Fused functions on a GPU: each framework's arrays, large ones, streams, and the shipped image."""

from __future__ import annotations

import numpy as np
import pytest
from reference import apart

import culaunch as cl
from culaunch import elementwise as ew

pytestmark = pytest.mark.gpu


@ew.fuse
def gelu(x):
    return 0.5 * x * (1 + ew.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


@ew.fuse
def both(x, y):
    return x * 2 + y, ew.where(x < y, x, y)


def gelu_reference(x):
    x = np.asarray(x, np.float64)
    return 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


class Torch:
    def __init__(self):
        self.xp = pytest.importorskip("torch")

    def make(self, array):
        return self.xp.from_numpy(array).cuda()

    def numpy(self, array):
        assert isinstance(array, self.xp.Tensor)
        return array.cpu().numpy()


class Cupy:
    def __init__(self):
        self.xp = pytest.importorskip("cupy")

    def make(self, array):
        made = self.xp.empty_like(self.xp.asarray(array))
        made[...] = self.xp.asarray(array)
        return made

    def numpy(self, array):
        assert isinstance(array, self.xp.ndarray)
        return array.get()


class Jax:
    def __init__(self):
        self.jax = pytest.importorskip("jax")

    def make(self, array):
        return self.jax.numpy.asarray(array)

    def numpy(self, array):
        assert isinstance(array, self.jax.Array)
        return np.asarray(array)


class Device:
    def make(self, array):
        return cl.to_device(np.ascontiguousarray(array))

    def numpy(self, array):
        assert isinstance(array, cl.DeviceArray)
        return array.numpy()


@pytest.fixture(params=[Torch, Cupy, Jax, Device])
def framework(request):
    return request.param()


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 255, 1024, 4097, 1_000_003])
def test_sizes(framework, size):
    x = np.random.default_rng(size).normal(size=size).astype(np.float32)
    got = framework.numpy(gelu(framework.make(x)))
    assert got.shape == x.shape
    # The sum 1 + tanh loses its digits for numbers far below 0.
    np.testing.assert_allclose(got, gelu_reference(x), rtol=2e-6, atol=2e-7)


def test_several_outputs_and_broadcasting(framework):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(37, 64)).astype(np.float32), rng.normal(size=64).astype(np.float32)
    a, b = both(framework.make(x), framework.make(y))
    np.testing.assert_allclose(framework.numpy(a), x * 2 + y, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(framework.numpy(b), np.where(x < y, x, y))


@pytest.mark.parametrize("framework", [Torch, Cupy], indirect=False)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "complex64"])
def test_layouts(framework, dtype):
    fw = framework()
    mul_add = ew.fuse(lambda x, y, z: x * y + z)
    rng = np.random.default_rng(2)
    host = [rng.integers(0, 5, (6, 40, 72)).astype(dtype) for _ in range(3)]
    x, y, z = map(fw.make, host)
    views = [
        lambda a: a,
        lambda a: a[1:, 3:, 1:],
        lambda a: a[:, ::2, ::3],
        lambda a: a.transpose(0, 2) if framework is Torch else a.swapaxes(0, 2),
        lambda a: a.transpose(1, 2) if framework is Torch else a.swapaxes(1, 2),
        lambda a: a[:1, :, :1],
    ]
    on_host = [*views[:3], lambda a: a.swapaxes(0, 2), lambda a: a.swapaxes(1, 2), views[5]]
    for view, host_view in zip(views, on_host, strict=True):
        got = mul_add(view(x), view(y), view(z))
        wanted = host_view(host[0]) * host_view(host[1]) + host_view(host[2])
        np.testing.assert_array_equal(fw.numpy(got), wanted)
    for shape in ((72, 40, 6), (6, 72, 40)):  # into C order from two others
        axes = (2, 1, 0) if shape[0] == 72 else (0, 2, 1)
        args = [a.permute(axes) if framework is Torch else a.transpose(axes) for a in (x, y, z)]
        out = fw.make(np.zeros(shape, dtype))
        mul_add(*args, out=out)
        wanted = (host[0] * host[1] + host[2]).transpose(axes)
        np.testing.assert_array_equal(fw.numpy(out), wanted)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_rounds_once(name):
    import torch

    x = torch.randn(100_001, device="cuda").to(getattr(torch, name))
    y = gelu(x)
    wanted = gelu_reference(x.double().cpu().numpy())
    assert y.dtype == x.dtype
    exact = torch.from_numpy(wanted).to(x.dtype).double().numpy()
    got = y.double().cpu().numpy()
    unit = {"float16": 2**-10, "bfloat16": 2**-7}[name]
    assert np.all(np.abs(got - exact) <= unit * np.abs(exact) + 1e-5)
    assert np.mean(got == exact) > 0.97


@pytest.mark.needs("torch")
def test_the_functions_on_a_gpu_are_as_on_the_emulator():
    import test_functions
    import torch

    for dtype in ("float32", "float64", "complex64", "complex128", "int32", "uint8", "int64"):
        x = test_functions.samples(dtype)
        names = test_functions.names_for(np.dtype(dtype).kind, 1)
        for name, got in zip(
            names, test_functions.every(names, torch.from_numpy(x).cuda()), strict=True
        ):
            test_functions.check(name, got.cpu().numpy(), [x])


@pytest.mark.needs("torch")
def test_the_current_stream():
    import torch

    x = torch.ones(1 << 24, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        x.fill_(2)
        y = gelu(x)
        got = y[-1].item()
    assert got == pytest.approx(float(gelu_reference(2.0)), rel=1e-6)


@pytest.mark.needs("torch")
def test_under_graph_capture():
    import torch

    x, y = torch.ones(4096, device="cuda"), torch.zeros(4096, device="cuda")
    gelu(x, out=y)
    y.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gelu(x, out=y)
    assert y[0].item() == 0
    graph.replay()
    assert apart(y[0].item(), gelu_reference(1.0), np.float32) <= 8


@pytest.mark.needs("torch")
def test_the_shipped_image_is_the_kernel():
    import torch

    x = torch.randn(1000, device="cuda")
    y = torch.empty_like(x)
    lowered = gelu.lower(x)
    assert lowered.image.format == "cubin"
    cl.load(lowered.image)[lowered.name][1, 256](y, x, 1000)
    torch.testing.assert_close(y, gelu(x), rtol=0, atol=0)


@pytest.mark.needs("torch")
def test_more_than_2_31_elements():
    """Memory-bound: 2 x 2.2 GB of bytes, and 64-bit indices."""
    import torch

    size = (1 << 31) + 5
    if torch.cuda.get_device_properties(0).total_memory < 8 * size:
        pytest.skip("needs 16 GB of GPU memory")
    x = torch.zeros(size, dtype=torch.int8, device="cuda")
    x[-7:] = 3
    y = ew.fuse(lambda x: x + 1)(x)
    assert y[:2].tolist() == [1, 1]
    assert y[-8:].tolist() == [1, *[4] * 7]
    del y
    rows = x[: 1 << 31].view(2, 1 << 30)
    z = ew.fuse(lambda x, y: x + y)(rows[:, ::2], rows[:1, 1::2])
    assert z.shape == (2, 1 << 29)
    assert int(z[1, -1]) == int(rows[1, -2]) + int(rows[0, -1])


@pytest.mark.needs("torch")
def test_host_and_device_arrays_do_not_mix():
    import torch

    with pytest.raises(ValueError, match="argument y is on device"):
        both(torch.zeros(3, device="cuda"), torch.zeros(3))


@pytest.mark.multi_gpu
@pytest.mark.needs("torch")
def test_a_second_device():
    import torch

    x = torch.randn(1000, device="cuda:1")
    y = gelu(x)
    assert y.device == x.device
    torch.testing.assert_close(y.cpu(), gelu(x.to("cuda:0")).cpu(), rtol=0, atol=0)
    with pytest.raises(ValueError, match="argument y is on device 0"):
        both(x, x.to("cuda:0"))
