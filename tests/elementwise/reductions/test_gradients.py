"""Gradients that come from traces, against torch's."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_texts import kernels

import culaunch as cl
from culaunch import elementwise as ew

pytestmark = pytest.mark.needs("torch")


def values(*shape, low=-1.0):
    return np.random.default_rng(0).uniform(low, 1.0, shape).astype(np.float32)


def gradients(function, args, grads):
    """Return the gradients of a call, from the trace."""
    host = function.as_function(backward="auto")
    gradient = host._gradient
    returned = (gradient.forward or host)(*args)
    returned = returned if isinstance(returned, tuple) else (returned,)
    arguments = dict(zip(function._parameters, args, strict=True))
    results, saved = returned[: len(grads)], returned[len(grads) :]
    found = gradient.function(*gradient.inputs(grads, results, saved, arguments))
    return found if isinstance(found, tuple) else (found,)


def wanted(function, args, grads):
    """Return torch's gradients in double precision."""
    import torch

    tensors = [
        torch.tensor(one.astype(np.float64), requires_grad=True)
        if isinstance(one, np.ndarray) and one.dtype.kind == "f"
        else one if not isinstance(one, np.ndarray) else torch.tensor(one)
        for one in args
    ]  # fmt: skip
    results = function(*tensors)
    results = results if isinstance(results, tuple) else (results,)
    torch.autograd.backward(results, [torch.tensor(one.astype(np.float64)) for one in grads])
    return [
        None if not isinstance(one, torch.Tensor) or one.grad is None else one.grad.numpy()
        for one in tensors
    ]


def compare(fused, eager, args, grads, tolerance=2e-5):
    got = gradients(ew.fuse(fused), args, grads)
    expected = [one for one, arg in zip(wanted(eager, args, grads), args, strict=True)
                if isinstance(arg, np.ndarray)]  # fmt: skip
    assert len(got) == len(expected)
    for one, right, arg in zip(got, expected, args, strict=False):
        if right is None:
            assert one is None or not np.any(one)
            continue
        assert one.dtype == arg.dtype
        assert one.shape == arg.shape
        np.testing.assert_allclose(one, right, rtol=tolerance, atol=tolerance)


UNARY = ("abs", "acos", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp",
         "expm1", "negative", "reciprocal", "sin", "sinh", "square", "tan", "tanh", "floor",
         "log", "log10", "log1p", "log2", "sqrt", "rsqrt", "acosh")  # fmt: skip
POSITIVE = ("log", "log10", "log2", "sqrt", "rsqrt", "reciprocal")
BINARY = ("add", "atan2", "copysign", "divide", "hypot", "logaddexp", "maximum", "minimum",
          "multiply", "pow", "remainder", "subtract")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_every_function_of_one_argument(name):
    import torch

    x = values(4, 9, low=0.1 if name in POSITIVE else -0.9) * 0.9
    if name == "acosh":
        x = x + 3
    compare(lambda x: getattr(ew, name)(x), lambda x: getattr(torch, name)(x), [x], [values(4, 9)])


@pytest.mark.slow
@pytest.mark.parametrize("name", BINARY)
def test_every_function_of_two_arguments_with_broadcasting(name):
    import torch

    x, y = values(4, 9, low=0.1), values(9, low=0.2)
    compare(
        lambda x, y: getattr(ew, name)(x, y),
        lambda x, y: getattr(torch, name)(x, y),
        [x, y],
        [values(4, 9)],
    )


def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)


def rms_norm(x, weight):
    return x * ew.rsqrt(ew.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def layer_norm(x, weight, bias):
    apart = x - ew.mean(x, axis=-1, keepdims=True)
    scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + 1e-5)
    return apart * scale * weight + bias


def test_softmax():
    import torch

    compare(softmax, lambda x: torch.softmax(x, -1), [values(6, 40)], [values(6, 40)])


def test_norms():
    from torch.nn import functional

    x, weight, bias, grad = values(6, 40), values(40), values(40) * 2, values(6, 40)
    compare(rms_norm, lambda x, w: functional.rms_norm(x, (40,), w, 1e-5), [x, weight], [grad])
    compare(
        layer_norm,
        lambda x, w, b: functional.layer_norm(x, (40,), w, b, 1e-5),
        [x, weight, bias],
        [grad],
        1e-4,
    )


REDUCTIONS = {
    "sum": lambda t, x: x.sum(1),
    "mean": lambda t, x: x.mean(1),
    "max": lambda t, x: x.amax(1),
    "min": lambda t, x: x.amin(1),
    "var": lambda t, x: x.var(1, correction=0),
    "std": lambda t, x: x.std(1, correction=0),
    "logsumexp": lambda t, x: t.logsumexp(x, 1),
    "norm": lambda t, x: t.linalg.vector_norm(x, dim=1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    import torch

    compare(
        lambda x: getattr(ew, name)(x, axis=1),
        lambda x: REDUCTIONS[name](torch, x),
        [values(4, 9, 3)],
        [values(4, 3)],
    )


def test_equal_elements_share_the_gradient():
    x = np.array([[1, 3, 3, 0]], np.float32)
    (got,) = gradients(ew.fuse(lambda x: ew.max(x, axis=-1)), [x], [np.ones(1, np.float32)])
    assert got.tolist() == [[0, 0.5, 0.5, 0]]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_product_with_no_one_and_several_zeros(axis):
    x = np.array([[1, 2, 3, -4], [0, 2, 3, 4], [0, 0, 1, 2], [0.5, 0.25, 0, 8]], np.float32)
    compare(lambda x: ew.prod(x, axis=axis), lambda x: x.prod(axis), [x], [values(4)])


INFINITE = {
    "max": lambda x: ew.max(x, axis=1),
    "min": lambda x: ew.min(x, axis=1),
    "masked": lambda x: ew.sum(ew.where(x > -5, ew.exp(x), 0.0), axis=1),
    "unused": lambda x: ew.sum(ew.floor(x), axis=1),
}


@pytest.mark.parametrize("name", INFINITE)
def test_infinite_elements_leave_the_other_gradients_as_they_are(name):
    inf = float("inf")
    x = np.array([[1, -inf, 3, -inf], [inf, 2, 0, 1], [-inf, -inf, -inf, 1]], np.float32)
    grad = np.array([1, 2, 3], np.float32)
    (got,) = gradients(ew.fuse(INFINITE[name]), [x], [grad])
    wanted = {
        "max": [[0, 0, 1, 0], [2, 0, 0, 0], [0, 0, 0, 3]],
        "min": [[0, 0.5, 0, 0.5], [0, 0, 2, 0], [1, 1, 1, 0]],
        "masked": np.where(x > -5, grad[:, None] * np.exp(x), 0),
        "unused": np.zeros_like(x),
    }
    np.testing.assert_allclose(got, wanted[name], rtol=1e-6)


def test_a_gradient_that_is_infinite_stays_on_its_side_of_where():
    x = np.array([1, -1, 2, -2], np.float32)
    grad = np.array([np.inf, np.inf, np.nan, np.nan], np.float32)
    found = gradients(ew.fuse(lambda x, y: ew.where(x > 0, x, y)), [x, x * 0], [grad])
    np.testing.assert_array_equal(found, [[np.inf, 0, np.nan, 0], [0, np.inf, 0, np.nan]])


def test_several_results_integers_and_numbers():
    import torch

    x, chosen = values(4, 9), np.arange(9, dtype=np.int32)
    f = ew.fuse(lambda x, chosen, a=2.0: (ew.where(chosen > 3, x * a, 0.0), ew.sum(x, axis=0)))
    got = gradients(f, [x, chosen, 2.0], [values(4, 9), values(9)])
    right = wanted(
        lambda x, chosen, a: (torch.where(chosen > 3, x * a, 0.0), x.sum(0)),
        [x, chosen, 2.0],
        [values(4, 9), values(9)],
    )
    assert got[1] is None
    np.testing.assert_allclose(got[0], right[0], rtol=1e-5)


def skewness(m, axis):
    def f(x):
        apart = x - m.mean(x, **{axis: -1, "keepdims" if m is ew else "keepdim": True})
        return m.mean(apart * apart * apart, **{axis: -1})

    return f


def test_differences_to_a_mean_cancel_out_in_a_sum_of_them_alone():
    import torch

    x = values(4, 9)
    compare(skewness(ew, "axis"), skewness(torch, "dim"), [x], [values(4)])
    gradient = ew.fuse(lambda x: ew.var(x, axis=-1)).as_function(backward="auto")._gradient.function
    # The forward pass saves the mean. No reduction sums the differences.
    (text,) = kernels(gradient.__wrapped__.__globals__["fused"], values(4), values(4), x)
    assert "Partial0" not in text.source


def test_half_precision():
    x, grad = values(6, 40).astype(np.float16), values(6, 40).astype(np.float16)
    import torch

    (got,) = gradients(ew.fuse(softmax), [x], [grad])
    (right,) = wanted(lambda x: torch.softmax(x, -1), [x], [grad])
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, right, rtol=2e-3, atol=2e-4)


def test_what_has_no_gradient_is_refused():
    f = ew.fuse(lambda x: ew.reduce(x, lambda a, b: a + b, 0, axis=-1))
    with pytest.raises(TypeError, match="does not know the gradient of reduce"):
        gradients(f, [values(4, 4)], [values(4)])
    with pytest.raises(ValueError, match="backward must be 'auto' or None"):
        f.as_function(backward="none")
    with pytest.raises(ValueError, match="rename the parameter grad"):
        ew.fuse(lambda grad: grad * 2).as_function(backward="auto")
    with pytest.raises(TypeError, match="backward must be given only for fused functions"):
        cl.frameworks.torch_op("tests::not_fused", cl.function(lambda x: x), backward="auto")
