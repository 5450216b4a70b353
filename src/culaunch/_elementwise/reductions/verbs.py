"""The reductions of the array API standard and of deep learning, on traced values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise import math_functions as mf
from culaunch._elementwise.reductions.axes import axes_of, counted, shaped, squeezed
from culaunch._elementwise.reductions.docstrings import reduction
from culaunch._elementwise.reductions.reduce import as_value, reduced, single
from culaunch._elementwise.trace import Value, nodes_of, where

if TYPE_CHECKING:
    from culaunch._elementwise.reductions.axes import Axis


@reduction("[[1, 2], [3, 4]]", "[3, 7]")
def sum(x: Value, /, *, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Add up elements.

    Bool and integers are added in 64 bits, and half precision in float32.

    Parameters
    ----------
    x : Value
    axis
    dtype : DType, str or a framework's type, optional
        The type of the sum. By default int64 for bool and signed integers, uint64 for unsigned
        ones, and the type of x otherwise.
    keepdims

    Returns
    -------
    Value
        The sums.
    """
    x = _converted("sum", x, dtype)
    if x.dtype is dt.bool_:  # asked for, as in NumPy
        return single("sum", x, lambda a, b: a | b, False, axis, keepdims)
    return single("sum", x, lambda a, b: a + b, 0, axis, keepdims)


@reduction("[[1, 2], [3, 4]]", "[2, 12]")
def prod(x: Value, /, *, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Value:
    """Multiply elements, in the same types as :func:`culaunch.elementwise.sum`.

    Parameters
    ----------
    x : Value
    axis
    dtype : DType, str or a framework's type, optional
        The type of the product, as for the sum.
    keepdims

    Returns
    -------
    Value
        The products.
    """
    x = _converted("prod", x, dtype)
    if x.dtype is dt.bool_:
        return single("prod", x, lambda a, b: a & b, True, axis, keepdims)
    return single("prod", x, lambda a, b: a * b, 1, axis, keepdims)


@reduction("[[1, 2], [3, 4]]", "[2, 4]")
def max(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Return the greatest element, or NaN if there is a NaN; no elements are an error.

    Parameters
    ----------
    x : Value
    axis
    keepdims

    Returns
    -------
    Value
        The greatest elements, in the type of `x`.
    """
    if as_value("max", x).dtype.kind == "b":
        return single("max", x, lambda a, b: a | b, False, axis, keepdims, "max")
    return single("max", x, mf.maximum, _least("max", x.dtype), axis, keepdims, "max")


@reduction("[[1, 2], [3, 4]]", "[1, 3]")
def min(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Return the least element, or NaN if there is a NaN; no elements are an error.

    Parameters
    ----------
    x : Value
    axis
    keepdims

    Returns
    -------
    Value
        The least elements, in the type of `x`.
    """
    if as_value("min", x).dtype.kind == "b":
        return single("min", x, lambda a, b: a & b, True, axis, keepdims, "min")
    return single("min", x, mf.minimum, _greatest("min", x.dtype), axis, keepdims, "min")


@reduction("[[1, 2], [3, 4]]", "[1.5, 3.5]")
def mean(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:
    """Compute the mean, in float64 for bool and integers.

    Parameters
    ----------
    x : Value
    axis
    keepdims

    Returns
    -------
    Value
        The means, in a floating-point type.
    """
    x = _floating("mean", x)
    return sum(x, axis=axis, keepdims=keepdims) / counted(x, axis)


@reduction("[[1, 3], [2, 8]]", "[1.0, 9.0]")
def var(
    x: Value, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Value:
    """Compute the variance from the differences to the mean.

    Parameters
    ----------
    x : Value
    axis
    correction : float, optional
        The divisor is the number of elements minus this number. Use 1 for the sample variance.
    keepdims

    Returns
    -------
    Value
        The variances, in a floating-point type.
    """
    x = _floating("var", x)
    apart = x - mean(x, axis=axis, keepdims=True)
    if apart.dtype.kind == "c":
        apart = mf.hypot(mf.real(apart), mf.imag(apart))
    total = sum(apart * apart, axis=axis, keepdims=keepdims)
    count = counted(x, axis)
    return total / (mf.maximum(count - correction, 0.0) if correction else count)


@reduction("[[1, 3], [2, 8]]", "[1.0, 3.0]")
def std(
    x: Value, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Value:
    """Compute the standard deviation, the square root of :func:`culaunch.elementwise.var`.

    Parameters
    ----------
    x : Value
    axis
    correction : float, optional
        The divisor is the number of elements minus this number.
    keepdims

    Returns
    -------
    Value
        The standard deviations, in a floating-point type.
    """
    return mf.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


@reduction("[[0, 1], [0, 0]]", "[True, False]")
def any(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Test whether any element is not 0.

    Parameters
    ----------
    x : Value
    axis
    keepdims

    Returns
    -------
    Value
        The answers, as bool.
    """
    x = mf.astype(as_value("any", x), dt.bool_)
    return single("any", x, lambda a, b: a | b, False, axis, keepdims)


@reduction("[[0, 1], [1, 1]]", "[False, True]")
def all(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Test whether no element is 0.

    Parameters
    ----------
    x : Value
    axis
    keepdims

    Returns
    -------
    Value
        The answers, as bool.
    """
    x = mf.astype(as_value("all", x), dt.bool_)
    return single("all", x, lambda a, b: a & b, True, axis, keepdims)


@reduction("[[1, 2], [4, 3]]", "[1, 0]")
def argmax(x: Value, /, *, axis: int | None = None, keepdims: bool = False) -> Value:
    """Return the index of the greatest element, as int64.

    Of equal elements, the first one counts. A NaN counts as the greatest element.

    Parameters
    ----------
    x : Value
    axis : int or None, optional
        The dimension to reduce. By default the index counts all elements in C order.
    keepdims : bool, optional
        Keep the reduced dimension, with one element.

    Returns
    -------
    Value
        The indices.
    """
    return _arg("argmax", x, axis, keepdims)


@reduction("[[1, 2], [4, 3]]", "[0, 1]")
def argmin(x: Value, /, *, axis: int | None = None, keepdims: bool = False) -> Value:
    """Return the index of the least element, as int64.

    Of equal elements, the first one counts. A NaN counts as the least element.

    Parameters
    ----------
    x : Value
    axis : int or None, optional
        The dimension to reduce. By default the index counts all elements in C order.
    keepdims : bool, optional
        Keep the reduced dimension, with one element.

    Returns
    -------
    Value
        The indices.
    """
    return _arg("argmin", x, axis, keepdims)


@reduction()
def logsumexp(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:
    """Compute ``log(sum(exp(x)))`` without overflow.

    Parameters
    ----------
    x : Value
        Integers or real elements.
    axis
    keepdims

    Returns
    -------
    Value
        The results, in a floating-point type.

    Raises
    ------
    TypeError
        If the elements are complex.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.logsumexp(x))
    >>> function(cl.to_device(np.array([1000.0]))).numpy().tolist()
    1000.0
    """
    x = _floating("logsumexp", x)
    if x.dtype.kind != "f":
        raise TypeError(f"logsumexp takes integers and real types (got {x.dtype.name})")
    most = max(x, axis=axis, keepdims=True)
    # Infinity minus infinity is NaN, so infinite values stay out of the exponents.
    safe = where(mf.isfinite(most), most, 0.0)
    result = mf.log(sum(mf.exp(x - safe), axis=axis, keepdims=True)) + safe
    return result if keepdims else squeezed(result, axis)


@reduction("[[3.0, 4.0], [6.0, 8.0]]", "[5.0, 10.0]")
def norm(x: Value, /, *, axis: Axis = None, ord: float = 2, keepdims: bool = False) -> Value:  # noqa: A002
    """Compute a vector norm of order 1, 2 or infinity.

    Parameters
    ----------
    x : Value
    axis
    ord : float, optional
        1, 2, ``inf`` or ``-inf``.
    keepdims

    Returns
    -------
    Value
        The norms, in a real type.

    Raises
    ------
    ValueError
        If `ord` is another number.
    """
    x = _floating("norm", x)
    if ord == 2:
        squares = x * x if x.dtype.kind == "f" else mf.real(x * mf.conj(x))
        return mf.sqrt(sum(squares, axis=axis, keepdims=keepdims))
    if ord == 1:
        return sum(mf.abs(x), axis=axis, keepdims=keepdims)
    if ord in (math.inf, -math.inf):
        return (max if ord > 0 else min)(mf.abs(x), axis=axis, keepdims=keepdims)
    raise ValueError(f"norm: ord must be 1, 2, inf or -inf (got {spell(ord)})")


# ---- shared by several


def _arg(name: str, x: Value, axis: int | None, keepdims: bool) -> Value:
    identity = _least(name, as_value(name, x).dtype) if name == "argmax" else (
        _greatest(name, x.dtype)
    )  # fmt: skip
    if axis is not None and not isinstance(axis, int):
        raise TypeError(f"{name}: axis must be an int or None (got {spell(axis)})")
    (node,) = nodes_of(name, (x,))
    trace = shaped(node)
    dims = trace.of(node)
    axes = axes_of(name, axis, len(dims))
    labels = tuple(label for a in axes if (label := dims[a]) is not None)
    position = trace.operation("position", dt.int64, (), detail=labels)
    trace.dims[position] = tuple(label if a in axes else None for a, label in enumerate(dims))

    def combine(a: Any, b: Any) -> Any:
        better = b[0] > a[0] if name == "argmax" else b[0] < a[0]
        same = b[0] == a[0]
        if x.dtype.kind == "f":
            nan_a, nan_b = mf.isnan(a[0]), mf.isnan(b[0])
            better, same = (better | nan_b) & ~nan_a, same | (nan_a & nan_b)
        takes = better | (same & (b[1] < a[1]))
        return where(takes, b[0], a[0]), where(takes, b[1], a[1])

    last = (1 << 63) - 1
    parts = reduced(name, (x, Value(position)), combine, (identity, last), axis, keepdims, name)
    return parts[1]


def _converted(name: str, x: Value, dtype: object) -> Value:
    own = as_value(name, x).dtype
    if dtype is not None:
        return mf.astype(x, dtype)
    if own.kind in "bi":
        return mf.astype(x, dt.int64)
    return mf.astype(x, dt.uint64) if own.kind == "u" else x


def _floating(name: str, x: Value) -> Value:
    return mf.astype(x, dt.float64) if as_value(name, x).dtype.kind in "biu" else x


def _least(name: str, dtype: dt.DType) -> float:
    if dtype.kind == "f":
        return -math.inf
    if dtype.kind in "iu":
        return dt.integer_range(dtype)[0]
    raise TypeError(f"{name} takes signed, unsigned, real types (got {dtype.name})")


def _greatest(name: str, dtype: dt.DType) -> float:
    _least(name, dtype)
    return math.inf if dtype.kind == "f" else dt.integer_range(dtype)[1]
