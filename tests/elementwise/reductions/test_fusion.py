"""Maps and reductions in one function: which kernels there are, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew
from culaunch import testing


@ew.fuse
def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)


@ew.fuse
def rms_norm(x, weight, eps=1e-5):
    return x * ew.rsqrt(ew.mean(x * x, axis=-1, keepdims=True) + eps) * weight


@ew.fuse
def layer_norm(x, weight, bias, eps=1e-5):
    apart = x - ew.mean(x, axis=-1, keepdims=True)
    scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + eps)
    return apart * scale * weight + bias


@ew.fuse
def cross_entropy(x, chosen):
    return ew.logsumexp(x, axis=-1) - ew.sum(x * chosen, axis=-1)


def values(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def softmax_in_numpy(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def launches(body, args):
    """Count the kernels of a call."""
    text = cl.function(body).explain(*args)
    return sum("_row" in line or "_column" in line for line in text.splitlines())


@pytest.mark.parametrize("shape", [(6, 40), (3, 2000), (1, 5), (2, 3, 33)], ids=str)
def test_softmax(shape):
    x = values(*shape)
    np.testing.assert_allclose(softmax(x), softmax_in_numpy(x), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 70000), (40, 20000)], ids=str)
def test_softmax_of_rows_that_fit_no_block(shape):
    x = values(*shape)
    wanted = softmax_in_numpy(x)
    np.testing.assert_allclose(softmax(x), wanted, rtol=2e-5)
    softmax(x, out=x)
    np.testing.assert_allclose(x, wanted, rtol=2e-5)


def test_norms():
    x, weight, bias = values(6, 40), values(40), values(40)
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(rms_norm(x, weight), x * scale * weight, rtol=1e-5)
    apart = x - x.mean(-1, keepdims=True)
    wanted = apart / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(layer_norm(x, weight, bias), wanted, rtol=1e-4, atol=1e-6)
    wide = layer_norm(x, weight, bias, eps=1)
    wanted = apart / np.sqrt(x.var(-1, keepdims=True) + 1) * weight + bias
    np.testing.assert_allclose(wide, wanted, rtol=1e-4, atol=1e-6)


def test_half_precision_is_rounded_once():
    x = values(4, 64, dtype=np.float16)
    got = softmax(x)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, softmax_in_numpy(x.astype(np.float32)), rtol=1e-3)


def test_cross_entropy():
    x = values(5, 30)
    chosen = np.eye(30, dtype=np.float32)[[3, 0, 29, 7, 7]]
    wanted = np.log(np.exp(x).sum(-1)) - (x * chosen).sum(-1)
    np.testing.assert_allclose(cross_entropy(x, chosen), wanted, rtol=1e-5)


@pytest.mark.parametrize("function", [softmax, rms_norm, layer_norm, cross_entropy])
def test_a_row_that_fits_is_one_kernel(function):
    x = cl.to_device(values(64, 256))
    rest = {
        softmax: (), rms_norm: (values(256),), layer_norm: (values(256), values(256)),
        cross_entropy: (values(64, 256),),
    }[function]  # fmt: skip
    assert launches(
        {0: lambda x: function(x), 1: lambda x, y: function(x, y),
         2: lambda x, y, z: function(x, y, z)}[len(rest)],
        (x, *map(cl.to_device, rest)),
    ) == 1  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "size", "reads_again"),
    [("float32", 32768, False), ("float32", 32772, True), ("float16", 32768, False),
     ("float16", 32776, True)],
)  # fmt: skip
def test_registers_hold_a_row_of_128_kib_or_64_kib_in_half_precision(dtype, size, reads_again):
    source = softmax.source(np.zeros((4000, size), dtype))
    assert source.count("__global__") == 1
    assert ("_looped" in source) == reads_again


def test_a_sum_of_one_long_row_is_two_kernels():
    x = cl.to_device(values(70000))
    assert launches(lambda x: ew.fuse(lambda x: ew.sum(x))(x), (x,)) == 2


def test_reductions_over_other_dimensions_are_kernels_after_each_other():
    x = values(20, 30)
    f = ew.fuse(lambda x: x - ew.mean(x, axis=0, keepdims=True) * ew.max(x, axis=1, keepdims=True))
    wanted = x - x.mean(0, keepdims=True) * x.max(1, keepdims=True)
    np.testing.assert_allclose(f(x), wanted, rtol=1e-5, atol=1e-6)
    nested = ew.fuse(lambda x: ew.max(ew.sum(x, axis=0), axis=0))
    np.testing.assert_allclose(nested(x), x.sum(0).max(), rtol=1e-5)


def test_rows_that_a_later_reduction_has_none_of():
    f = ew.fuse(lambda x: ew.sum(x - ew.sum(x, axis=1, keepdims=True), axis=0))
    np.testing.assert_array_equal(f(values(0, 5)), np.zeros(5))
    np.testing.assert_array_equal(f(values(5, 0)), np.zeros(0))


def test_several_results_of_different_shapes():
    x, y = values(4, 5, 6), values(5, 1)
    f = ew.fuse(lambda x, y: (ew.sum(x * y, axis=(0, 2)), x + y, ew.max(y), ew.mean(x, axis=1)))
    got = f(x, y)
    for one, wanted in zip(got, ((x * y).sum((0, 2)), x + y, y.max(), x.mean(1)), strict=True):
        assert one.shape == wanted.shape
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-6)


def test_out_and_in_place():
    x = values(6, 40)
    wanted = softmax_in_numpy(x)
    target = np.empty_like(x)
    assert softmax(x, out=target) is target
    np.testing.assert_allclose(target, wanted, rtol=1e-5)
    softmax(x, out=x)
    np.testing.assert_allclose(x, wanted, rtol=1e-5)


@pytest.mark.parametrize("shape", [(6, 40), (5, 300), (3, 5000), (37, 8)])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_function_in_place_does_not_race(shape, axis):
    """Threads without a row of their own do not write to the rows of others."""

    @ew.fuse
    def center(x):
        return x - ew.mean(x, axis=axis, keepdims=True)

    x = values(*shape)
    wanted = x - x.mean(axis, keepdims=True)
    with testing.emulator_options(check_races=True):
        center(x, out=x)
    np.testing.assert_allclose(x, wanted, rtol=1e-4, atol=1e-5)


def test_welford_and_other_operations_of_ones_own():
    def welford(a, b):
        count = a[0] + b[0]
        apart, share = b[1] - a[1], b[0] / ew.maximum(count, 1)
        return count, a[1] + apart * share, a[2] + b[2] + apart * apart * a[0] * share

    @ew.fuse
    def variance(x):
        one = x * 0 + 1
        return ew.reduce(
            (one, x, x * 0), welford, (0, 0, 0), lambda n, mean, m2: (mean, m2 / n), axis=-1
        )

    x = values(5, 300) + 100
    mean, var = variance(x)
    np.testing.assert_allclose(mean, x.mean(-1), rtol=1e-6)
    np.testing.assert_allclose(var, x.astype(np.float64).var(-1), rtol=1e-4)

    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    either = ew.fuse(lambda x: ew.reduce(x, lambda a, b: a ^ b, 0, axis=1))
    np.testing.assert_array_equal(either(x), np.bitwise_xor.reduce(x, axis=1))


def test_a_fused_function_in_another_and_in_a_body():
    x = values(6, 40)
    twice = ew.fuse(lambda x: softmax(x) * 2)
    np.testing.assert_allclose(twice(x), 2 * softmax_in_numpy(x), rtol=1e-5)

    @cl.function
    def body(x):
        return softmax(x), ew_sum(x)

    ew_sum = ew.fuse(lambda x: ew.sum(x, axis=0))
    first, second = body(x)
    np.testing.assert_allclose(first, softmax_in_numpy(x), rtol=1e-5)
    np.testing.assert_allclose(second, x.sum(0), rtol=1e-5, atol=1e-6)
    with cl.function_debugging():
        np.testing.assert_allclose(body(x)[0], softmax_in_numpy(x), rtol=1e-5)


def test_python_numbers_are_parameters():
    f = ew.fuse(lambda x, a: ew.sum(x * a, axis=-1) + a)
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    for a in (2, 3):
        np.testing.assert_array_equal(f(x, a), (x * a).sum(-1) + a)
    np.testing.assert_allclose(f(x.astype(np.float32), 0.5), (x * 0.5).sum(-1) + 0.5)


@pytest.mark.parametrize(
    ("body", "error", "text"),
    [
        (lambda x: ew.sum(x, axis=2), ValueError, "axis must be from -2 to 1"),
        (lambda x: ew.sum(x, axis=(0, -2)), ValueError, "a dimension twice"),
        (lambda x: ew.sum(x, axis=1.5), TypeError, "axis must be an int"),
        (lambda x: ew.argmax(x, axis=(0, 1)), TypeError, "axis must be an int or None"),
        (lambda x: ew.norm(x, ord=3), ValueError, "ord must be 1, 2, inf or -inf"),
        (lambda x: x + ew.sum(x, axis=1), ValueError, "use keepdims=True"),
        (lambda x: ew.reduce(x, lambda a, b: a, (0, 0)), TypeError, "identity must have 1"),
        (lambda x: ew.reduce(x, lambda a, b: (a, b), 0), TypeError, "must return 1 value"),
        (lambda x: ew.reduce(x, lambda a, b: x, 0), TypeError, "only from its arguments"),
        (lambda x, axis=0: ew.sum(x, axis=axis), TypeError, "axis must be known while"),
        (lambda x, keep=True: ew.sum(x, keepdims=keep), TypeError, "keepdims must be known while"),
        (lambda x: ew.sum(3), TypeError, "takes values of a traced function"),
    ],
)  # fmt: skip
def test_mistakes_are_told(body, error, text):
    with pytest.raises(error, match=text):
        ew.fuse(body)(values(4, 4))


def test_operands_that_do_not_broadcast():
    f = ew.fuse(lambda x, y: ew.sum(x * y))
    with pytest.raises(ValueError, match="do not broadcast"):
        f(values(4, 4), values(3))


def test_source_shows_every_kernel_and_a_library_holds_the_function(tmp_path):
    x = values(6, 40)
    assert softmax.source(x).count("__global__") == 1
    total = ew.fuse(lambda x: ew.sum(x))
    assert total.source(values(70000)).count("__global__") == 2
    with pytest.raises(TypeError, match="need host code"):
        softmax.lower(x)
    host = softmax.as_function()
    wanted = host(x)
    cl.ship.save([host], tmp_path / "norms.culib")
    library = cl.ship.load_library(tmp_path / "norms.culib")
    np.testing.assert_array_equal(library.softmax(x), wanted)
