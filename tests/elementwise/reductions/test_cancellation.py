"""Gradients with less work: values that cancel, and saved results."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_texts import gradient_of, kernels

from culaunch import elementwise as ew
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.gradients.invariance import moves_nothing
from culaunch._elementwise.reductions.labels import Label, ShapedTrace
from culaunch._elementwise.trace import Value, node_of


def most(x):
    return ew.max(x, axis=-1, keepdims=True)


def total(x):
    return ew.sum(x, axis=-1, keepdims=True)


def softmax(x):
    e = ew.exp(x - most(x))
    return e / total(e)


CANCELS = {
    "softmax": lambda x, m: ew.exp(x - m) / total(ew.exp(x - m)),
    "softmax of twice": lambda x, m: ew.exp(2 * x - m) / total(ew.exp(2 * x - m)),
    "log_softmax": lambda x, m: (x - m) - ew.log(total(ew.exp(x - m))),
    "logsumexp": lambda x, m: ew.log(total(ew.exp(x - m))) + m,
    "difference": lambda x, m: (x - m) - most(x - m),
    "ratio of squares": lambda x, m: ew.exp(x - m) * ew.exp(x - m) / total(ew.exp(x - m - m)),
    "negative": lambda x, m: -ew.exp(x - m) / total(ew.exp(x - m)),
}
MOVES = {
    "exp": lambda x, m: ew.exp(x - m),
    "power": lambda x, m: ew.exp(x - m) * ew.exp(x - m) / total(ew.exp(x - m)),
    "sum of differences": lambda x, m: total(x - m),
    "epsilon": lambda x, m: ew.exp(x - m) / (total(ew.exp(x - m)) + 1e-5),
    "one sum": lambda x, m: ew.exp(x - m) / total(ew.exp(x)),
    "scaled": lambda x, m: ew.exp((x - m) * 0.5) / total(ew.exp(x - m)),
    "added": lambda x, m: x - m + m + m,
    "over the rows": lambda x, m: ew.exp(x - m) / ew.sum(ew.exp(x - m), axis=0),
    "product": lambda x, m: (x - m) * (x - m),
    "rounded": lambda x, m: ew.floor(x - m) - ew.floor(x - m - m) - m,
    "comparison": lambda x, m: ew.where(x > m, x, 0.0),
}


def shifted(function):
    """Return whether a value m of each row cancels in a function."""
    trace = ShapedTrace("f")
    rows, columns = Label(6), Label(8)
    x, m = trace.input(0, dt.float32), trace.input(1, dt.float32)
    trace.dims[x], trace.dims[m] = (rows, columns), (rows, None)
    # An input has no operation: a reduction of it stands for the value.
    value = node_of(most(Value(m) + Value(x) * 0))
    result = node_of(function(Value(x), Value(value)))
    return moves_nothing(trace, value, (result,))


@pytest.mark.parametrize("name", CANCELS)
def test_what_cancels(name):
    assert shifted(CANCELS[name])
    # The claim itself: another value of m gives the same result.
    x = np.random.default_rng(0).standard_normal((6, 8))
    m = np.arange(6.0).reshape(6, 1) / 4
    function = ew.fuse(CANCELS[name])
    np.testing.assert_allclose(function(x, m), function(x, m * 0 + 0.25), rtol=1e-12)


@pytest.mark.parametrize("name", MOVES)
def test_what_does_not_cancel(name):
    assert not shifted(MOVES[name])


def test_the_gradient_of_a_softmax_has_no_share_of_its_maximum():
    x = np.zeros((6, 40), np.float32)
    (text,) = kernels(gradient_of(softmax), x, x)
    # No element is compared with the maximum.
    assert " == " not in text.source.split("float v0")[1]
    assert text.source.count("struct Partial") == 3


def test_saved_results_leave_one_reduction():
    x = np.zeros((6, 40), np.float32)
    (text,) = kernels(gradient_of(softmax, results=1), x, x, x)
    assert text.source.count("struct Partial") == 1
    assert "expf" not in text.source
    assert [one.name for one in text.parameters if hasattr(one, "name")] == ["y0", "x0", "x1"]


def needs(function):
    return [what for what, _ in ew.fuse(function).as_function(backward="auto")._gradient.needs]


def test_results_are_saved_only_if_they_save_a_pass():
    assert needs(softmax) == ["grad", "out", "argument"]
    assert needs(lambda x: ew.norm(x, axis=-1)) == ["grad", "out", "argument"]
    # Without reductions: the argument is as good.
    assert needs(lambda x: ew.exp(x)) == ["grad", "argument"]
    # The result alone does not tell the variance, which is saved.
    assert needs(lambda x: x / (1 + total(x * x))) == ["grad", "saved", "argument"]
    # A linear function needs none of them.
    assert needs(lambda x: x - total(x)) == ["grad", "argument"]


def test_a_parameter_with_the_name_of_a_result_is_refused():
    def f(out_0):
        return softmax(out_0)

    with pytest.raises(ValueError, match="rename the parameter out_0"):
        ew.fuse(f).as_function(backward="auto")


DIVISORS = [1.0, 3.0, -7.0, 1e-40, -1e-44, 1e38, -3e38, 0.0, np.inf, -np.inf, np.nan, 2.0**-127]
NUMERATORS = [0.0, -0.0, 1.0, -2.5, 1e-38, 1e-42, 3e38, np.inf, -np.inf, np.nan, 1e-5, 1e20]


def test_division_by_a_value_of_the_row():
    """The gradient of x * weight / divisor: any divisor gives the quotient within 2 ulp."""
    divisor = np.array(DIVISORS, np.float32).reshape(-1, 1)
    grad = np.tile(np.array(NUMERATORS, np.float32), (len(DIVISORS), 1))

    def f(x, divisor):
        return x / total(divisor)

    gradient = gradient_of(f)
    got = gradient(grad, np.ones_like(grad), divisor)[0]
    with np.errstate(all="ignore"):
        right = (grad.astype(np.float64) / divisor.astype(np.float64)).astype(np.float32)
    assert np.array_equal(np.isnan(got), np.isnan(right))
    is_number = ~np.isnan(right)
    assert np.array_equal(np.signbit(got)[is_number], np.signbit(right)[is_number])
    np.testing.assert_allclose(got, right, rtol=2.5e-7, atol=3e-45)
