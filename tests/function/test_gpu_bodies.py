"""Bodies of Triton kernels and fused functions on a GPU: against torch, and as plain Python."""

import pytest

import culaunch as cl
from culaunch import elementwise as ew

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch", "triton")]


@pytest.fixture
def kernels():
    import kernels_in_bodies

    return kernels_in_bodies


@pytest.fixture
def sm_90(torch):
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("needs sm_90")


@ew.fuse
def mixed(x, y, s):
    return ew.where(x > y, x * s, y - s)


def both(torch, function, *args):
    results = [function(*args), function(*args)]
    with cl.function_debugging():
        results.append(function(*args))
    assert all(torch.equal(one, results[0]) for one in results[1:])
    return results[0]


def test_fused_functions_and_triton_kernels(torch, kernels):
    from culaunch.triton import native

    add = native(kernels.add)

    @cl.function
    def body(x, y, factor: float):
        z = mixed(x, y, 0.5)
        out = cl.empty_like(z)
        n = out.size
        add[lambda meta: (cl.ceildiv(n, meta["BLOCK"]),)](z, x, out, n, factor, BLOCK=64)
        return out

    for n in (0, 1, 16, 17, 1000, 65536):
        x, y = torch.randn(n + 1, device="cuda"), torch.randn(n, device="cuda")
        for one in (x[:n], x[1:]):
            z = torch.where(one > y, one * 0.5, y - 0.5)
            torch.testing.assert_close(both(torch, body, one, y, 2.0), z * 2 + one)


def test_an_autotuner_is_asked_once_for_each_key(torch, kernels):
    from culaunch.triton import native

    tuned = native(kernels.tuned)

    @cl.function
    def doubled(x):
        out = cl.empty_like(x)
        n = x.size
        tuned[lambda meta: (cl.ceildiv(n, meta["BLOCK"]),)](x, out, n)
        return out

    for n in (1000, 1000, 4097):
        x = torch.randn(n, device="cuda")
        assert torch.equal(doubled(x), x * (2 if n % 2 == 0 else 1))


def test_tensor_descriptors_become_tensor_maps(torch, kernels, sm_90):
    from triton.tools.tensor_descriptor import TensorDescriptor

    from culaunch.triton import native

    move = native(kernels.move)

    @cl.function
    def moved(x, factor: float):
        m, n = x.shape
        y = cl.empty((m, n), x.dtype)
        to = TensorDescriptor(y, [m, n], y.strides, [16, 16])
        of = TensorDescriptor(x, [m, n], x.strides, [16, 16])
        move[cl.ceildiv(m, 16), cl.ceildiv(n, 16)](of, to, factor)
        return y

    for shape in ((64, 64), (20, 40), (512, 16)):
        x = torch.randn(shape, device="cuda")
        assert torch.equal(both(torch, moved, x, 2.0), 2 * x)


def test_scratch_memory_comes_from_torch(torch, kernels, sm_90):
    from culaunch.triton import native

    with_scratch = native(kernels.with_scratch)

    @cl.function
    def copied(x):
        out = cl.empty_like(x)
        rows, columns = x.shape
        with_scratch[cl.ceildiv(rows, 32), cl.ceildiv(columns, 32)](x, out, rows, columns, BLOCK=32)
        return out

    for shape in ((64, 64), (40, 96)):
        x = torch.randn(shape, device="cuda")
        for _ in range(3):
            assert torch.equal(copied(x), x + 1)


def test_clusters_of_num_ctas(torch, kernels, sm_90):
    from culaunch.triton import native

    add = native(kernels.add)

    @cl.function
    def clustered(x):
        out = cl.empty_like(x)
        n = x.size
        add[cl.ceildiv(n, 1024),](x, x, out, n, 1.0, BLOCK=1024, num_ctas=2)
        return out

    x = torch.randn(5000, device="cuda")
    assert torch.equal(both(torch, clustered, x), 2 * x)


def test_a_body_is_captured_into_a_graph(torch, kernels):
    from culaunch.triton import native

    add = native(kernels.add)

    @cl.function
    def body(x):
        z = mixed(x, x, 2.0)
        out = cl.empty_like(z)
        add[cl.ceildiv(x.size, 64),](z, x, out, x.size, 1.0, BLOCK=64)
        return out

    x = torch.randn(1000, device="cuda")
    body(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = body(x)
    x.copy_(torch.randn(1000, device="cuda"))
    graph.replay()
    torch.testing.assert_close(out, (x - 2) + x)
