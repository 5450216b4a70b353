"""Bodies that mix all kinds of launches: a call and the body as plain Python give the same bits."""

import numpy as np
import pytest
from bodies import shape_only
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import culaunch as cl
from culaunch import elementwise as ew

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("triton")]

FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
# Divisible by 16 or not, one, none, around a block of 64.
SIZES = st.sampled_from((0, 1, 2, 15, 16, 17, 48, 63, 64, 65, 112))


@ew.fuse
def mixed(x, y, s):
    return ew.where(x > y, x * s, y - s)


@pytest.fixture(scope="module")
def body(module):
    """A body of a CUDA kernel, a Triton kernel, fused functions and another function."""
    import kernels_in_bodies

    from culaunch.triton import native

    add = native(kernels_in_bodies.add)
    held = np.arange(1, 9, dtype=np.float32).reshape(8, 1)

    @cl.function
    def scaled(x, factor: float):
        y = cl.empty_like(x)
        n = x.size
        launcher = module["scale<float>"][cl.ceildiv(n, 64), 64]
        cl.launch_if(n > 0, launcher, y, x, factor, n)
        return y

    @cl.function
    def body(x, row, factor: float, times: int):
        """x is [rows, columns], row is [columns] or [1]."""
        rows, columns = x.shape
        y = scaled(x.reshape(-1), factor).reshape(rows, columns)
        for i in range(times):
            z = mixed(y, row, i + 0.5)
            y = cl.empty_like(z)
            n = y.size
            add[lambda meta, n=n: (cl.ceildiv(n, meta["BLOCK"]),)](z, x, y, n, factor, BLOCK=64)
        tail = y.reshape(-1)[columns:] if rows > 1 else y.reshape(-1)
        out = cl.zeros_like(tail)
        add[(cl.ceildiv(tail.size, 64),)](tail, tail, out, tail.size, -1.5, BLOCK=64)
        if rows == 8:
            return y, out, mixed(y, held, columns)
        return y, out, mixed(y, y, columns)

    return body


def expected(x, row, factor, times):
    """Compute it with NumPy."""
    factor = np.float32(factor)
    y = x * factor
    for i in range(times):
        s = np.float32(i + 0.5)
        y = np.where(y > row, y * s, row - s) * factor + x
    tail = y.reshape(-1)[x.shape[1] :] if x.shape[0] > 1 else y.reshape(-1)
    other = np.arange(1, 9, dtype=np.float32).reshape(8, 1) if x.shape[0] == 8 else y
    s = np.float32(x.shape[1])
    return y, tail * np.float32(-1.5) + tail, np.where(y > other, y * s, other - s)


@pytest.mark.slow
@FEW
@given(
    rows=st.sampled_from((0, 1, 2, 5, 8)),
    columns=SIZES,
    is_row=st.booleans(),
    offset=st.sampled_from((0, 1, 4)),
    times=st.sampled_from((0, 1, 2)),
    factor=st.sampled_from((0.5, -2.0, 1.0)),
)
def test_calls_and_plain_python_agree(body, rows, columns, is_row, offset, times, factor):
    whole = (np.arange(rows * columns + offset) % 13 - 6).astype(np.float32)
    x = whole[offset:].reshape(rows, columns)
    row = (np.arange(columns if is_row else 1) % 5 - 2).astype(np.float32)
    results = [body(x, row, factor, times), body(x, row, factor, times)]
    with cl.function_debugging():
        results.append(body(x, row, factor, times))
    wanted = expected(x, row, factor, times)
    for result in results:
        for one, other, value in zip(result, results[0], wanted, strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, value, rtol=1e-5, atol=1e-5)


@pytest.mark.needs("torch")
def test_the_same_body_takes_torch_tensors(body):
    import torch

    x = torch.arange(40, dtype=torch.float32).reshape(5, 8) - 20
    row = torch.arange(8, dtype=torch.float32)
    results = body(x, row, 0.5, 2)
    wanted = expected(x.numpy(), row.numpy(), 0.5, 2)
    for result, value in zip(results, wanted, strict=True):
        assert isinstance(result, torch.Tensor)
        np.testing.assert_allclose(result.numpy(), value, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_bodies_run_on_shapes_alone(body):
    import torch
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    environment = ShapeEnv()
    made = environment.create_symbol(7, ConstantSource("rows"))
    rows = environment.create_symintnode(made, hint=7)
    given = shape_only((rows, 6), "float32"), shape_only((6,), "float32")
    y, tail, other = body.abstract(*given, 0.5, 2)
    assert y.shape[0] is rows or isinstance(y.shape[0], torch.SymInt)
    assert [int(size) for size in y.shape] == [7, 6]
    assert int(tail.shape[0]) == 36
    assert other.dtype == "float32"
