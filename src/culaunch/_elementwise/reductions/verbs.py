"""The reductions of the array API standard and of deep learning, on traced values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag
from culaunch._base.values import spell
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise import math_functions as mf
from culaunch._elementwise.graph import ReducesError
from culaunch._elementwise.reductions.combiner import make_combiner
from culaunch._elementwise.reductions.labels import Reduction, ShapedTrace
from culaunch._elementwise.trace import Value, nodes_of, not_a_value, where

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._elementwise.graph import Node, Number
    from culaunch._elementwise.reductions.combiner import Combiner
    from culaunch._elementwise.reductions.labels import Dims

    Axis = int | tuple[int, ...] | None


_TRACED = (
    "must be known while tracing runs, and a parameter stands for an argument even if it has a "
    "default: close over the number instead"
)


def sum(x: Value, /, *, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Add up elements.

    Bool and integers are added in 64 bits, and half precision in float32.

    Parameters
    ----------
    x : Value
    axis : int, tuple of int or None, optional
        The dimensions to reduce; all by default.
    dtype : DType, str or a framework's type, optional
        The type of the sum. By default int64 for bool and signed integers, uint64 for unsigned
        ones, and the type of x otherwise.
    keepdims : bool, optional
        Keep the reduced dimensions, with one element each.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.sum(x, axis=1))
    >>> function(cl.to_device(np.array([[1, 2], [3, 4]]))).numpy().tolist()
    [3, 7]
    """
    x = _converted("sum", x, dtype)
    return _single("sum", x, lambda a, b: a + b, 0, axis, keepdims)


def prod(x: Value, /, *, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Value:
    """Multiply elements, in the same types as :func:`culaunch.elementwise.sum`.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.prod(x, axis=1))
    >>> function(cl.to_device(np.array([[1, 2], [3, 4]]))).numpy().tolist()
    [2, 12]
    """
    x = _converted("prod", x, dtype)
    return _single("prod", x, lambda a, b: a * b, 1, axis, keepdims)


def max(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Return the greatest element, or NaN if there is a NaN; no elements are an error.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.max(x, axis=1))
    >>> function(cl.to_device(np.array([[1, 2], [3, 4]]))).numpy().tolist()
    [2, 4]
    """
    if _value("max", x).dtype.kind == "b":
        return _single("max", x, lambda a, b: a | b, False, axis, keepdims, "max")
    return _single("max", x, mf.maximum, _least("max", x.dtype), axis, keepdims, "max")


def min(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Return the least element, or NaN if there is a NaN; no elements are an error.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.min(x, axis=1))
    >>> function(cl.to_device(np.array([[1, 2], [3, 4]]))).numpy().tolist()
    [1, 3]
    """
    if _value("min", x).dtype.kind == "b":
        return _single("min", x, lambda a, b: a & b, True, axis, keepdims, "min")
    return _single("min", x, mf.minimum, _greatest("min", x.dtype), axis, keepdims, "min")


def mean(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:
    """Compute the mean, in float64 for bool and integers.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.mean(x, axis=1))
    >>> function(cl.to_device(np.array([[1, 2], [3, 4]]))).numpy().tolist()
    [1.5, 3.5]
    """
    x = _floating("mean", x)
    return sum(x, axis=axis, keepdims=keepdims) / _count(x, axis)


def var(
    x: Value, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Value:
    """Compute the variance from the differences to the mean.

    Parameters
    ----------
    x : Value
    axis : int, tuple of int or None, optional
        The dimensions to reduce; all by default.
    correction : float, optional
        The divisor is the number of elements minus this number. Use 1 for the sample variance.
    keepdims : bool, optional
        Keep the reduced dimensions, with one element each.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.var(x, axis=1))
    >>> function(cl.to_device(np.array([[1, 3], [2, 8]]))).numpy().tolist()
    [1.0, 9.0]
    """
    x = _floating("var", x)
    apart = x - mean(x, axis=axis, keepdims=True)
    if apart.dtype.kind == "c":
        apart = mf.hypot(mf.real(apart), mf.imag(apart))
    total = sum(apart * apart, axis=axis, keepdims=keepdims)
    count = _count(x, axis)
    return total / (mf.maximum(count - correction, 0.0) if correction else count)


def std(
    x: Value, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
) -> Value:
    """Compute the standard deviation, the square root of :func:`culaunch.elementwise.var`.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.std(x, axis=1))
    >>> function(cl.to_device(np.array([[1, 3], [2, 8]]))).numpy().tolist()
    [1.0, 3.0]
    """
    return mf.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def any(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Test whether any element is not 0.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.any(x, axis=1))
    >>> function(cl.to_device(np.array([[0, 1], [0, 0]]))).numpy().tolist()
    [True, False]
    """
    x = mf.astype(_value("any", x), dt.bool_)
    return _single("any", x, lambda a, b: a | b, False, axis, keepdims)


def all(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:  # noqa: A001
    """Test whether no element is 0.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.all(x, axis=1))
    >>> function(cl.to_device(np.array([[0, 1], [1, 1]]))).numpy().tolist()
    [False, True]
    """
    x = mf.astype(_value("all", x), dt.bool_)
    return _single("all", x, lambda a, b: a & b, True, axis, keepdims)


def argmax(x: Value, /, *, axis: int | None = None, keepdims: bool = False) -> Value:
    """Return the index of the greatest element, as int64.

    Of equal elements, the first one counts. A NaN counts as the greatest element.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.argmax(x, axis=1))
    >>> function(cl.to_device(np.array([[1, 2], [4, 3]]))).numpy().tolist()
    [1, 0]
    """
    return _arg("argmax", x, axis, keepdims)


def argmin(x: Value, /, *, axis: int | None = None, keepdims: bool = False) -> Value:
    """Return the index of the least element, as int64.

    Of equal elements, the first one counts. A NaN counts as the least element.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.argmin(x, axis=1))
    >>> function(cl.to_device(np.array([[1, 2], [4, 3]]))).numpy().tolist()
    [0, 1]
    """
    return _arg("argmin", x, axis, keepdims)


def logsumexp(x: Value, /, *, axis: Axis = None, keepdims: bool = False) -> Value:
    """Compute ``log(sum(exp(x)))`` without overflow.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.logsumexp(x))
    >>> function(cl.to_device(np.array([1000.0]))).numpy().tolist()
    1000.0
    """
    x = _floating("logsumexp", x)
    most = max(x, axis=axis, keepdims=True)
    # Infinite minus infinite is no number: what is infinite stays out of the exponents.
    safe = where(mf.isfinite(most), most, 0.0)
    result = mf.log(sum(mf.exp(x - safe), axis=axis, keepdims=True)) + safe
    return result if keepdims else _squeezed(result, axis)


def norm(x: Value, /, *, axis: Axis = None, ord: float = 2, keepdims: bool = False) -> Value:  # noqa: A002
    """Compute a vector norm of order 1, 2 or infinity.

    Parameters
    ----------
    x : Value
    axis : int, tuple of int or None, optional
        The dimensions to reduce; all by default.
    ord : float, optional
        1, 2, ``inf`` or ``-inf``.
    keepdims : bool, optional
        Keep the reduced dimensions, with one element each.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda x: ew.norm(x, axis=1))
    >>> function(cl.to_device(np.array([[3.0, 4.0], [6.0, 8.0]]))).numpy().tolist()
    [5.0, 10.0]
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


def reduce(
    map: Value | tuple[Value, ...],  # noqa: A002
    combine: Callable[..., Any],
    identity: Number | tuple[Number, ...],
    post: Callable[..., Any] | None = None,
    *,
    axis: Axis = None,
    keepdims: bool = False,
) -> Any:
    """Reduce with an operation of your own.

    Parameters
    ----------
    map : Value or tuple of Value
        The partial result of one element, computed from the arguments. A tuple has several
        components.
    combine : callable
        Takes two partial results and returns one of the same types. It must be associative and
        commutative. It can use constants, but no other values.
    identity : number or tuple of numbers
        The neutral element: combining a partial result with it does not change the result.
    post : callable, optional
        Takes the components of the last partial result, and returns the final result.
    axis : int, tuple of int or None, optional
        The dimensions to reduce; all by default.
    keepdims : bool, optional
        Keep the reduced dimensions, with one element each.

    Returns
    -------
    Value or tuple of Value
        The final result. Without ``post``, several components are a tuple.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> @ew.fuse
    ... def variance(x):
    ...     def welford(a, b):
    ...         count = a[0] + b[0]
    ...         apart, share = b[1] - a[1], b[0] / ew.maximum(count, 1)
    ...         return (
    ...             count, a[1] + apart * share, a[2] + b[2] + apart * apart * a[0] * share
    ...         )
    ...     one = x * 0 + 1
    ...     return ew.reduce(
    ...         (one, x, x * 0), welford, (0, 0, 0), lambda n, mean, m2: m2 / n, axis=-1
    ...     )
    >>> variance(cl.to_device(np.array([1.0, 2.0, 3.0, 6.0]))).numpy().tolist()
    3.5
    """
    values = map if isinstance(map, tuple) else (map,)
    numbers = identity if isinstance(identity, tuple) else (identity,)
    if len(numbers) != len(values):
        raise TypeError(
            f"reduce: identity must have {len(values)} numbers, one for each component (got "
            f"{len(numbers)})"
        )
    parts = _reduced("reduce", values, combine, numbers, axis, keepdims)
    if post is not None:
        return post(*parts)
    return parts if isinstance(map, tuple) else parts[0]


# ---- what the above share


def _single(
    name: str,
    x: Value,
    combine: Callable[..., Any],
    identity: Number,
    axis: Axis,
    keepdims: bool,
    refused_empty: str = "",
) -> Value:
    return _reduced(name, (x,), combine, (identity,), axis, keepdims, refused_empty)[0]


def _reduced(
    name: str,
    values: tuple[Value, ...],
    combine: Callable[..., Any],
    identity: tuple[Number, ...],
    axis: Axis,
    keepdims: bool,
    refused_empty: str = "",
) -> tuple[Value, ...]:
    for value in values:
        _value(name, value)
    args = nodes_of(name, values)
    if refused_empty:
        trace = _shaped(args[0])
        text = f"{trace.name}: {refused_empty} of no elements has no value"
        require_elements(trace, trace.together(name, args), axis, name, text)
    combiner = make_combiner(name, tuple(node.dtype for node in args), identity, combine)
    return tuple(map(Value, reduced_nodes(name, args, combiner, axis, keepdims)))


def reduced_nodes(
    name: str,
    args: tuple[Node, ...],
    combiner: Combiner,
    axis: Axis,
    keepdims: Any,
) -> tuple[Node, ...]:
    """Return the components of a reduction."""
    if isinstance(keepdims, Value):
        raise TypeError(f"{name}: keepdims {_TRACED}")
    trace = _shaped(args[0])
    dims = trace.together(name, args)
    axes = axes_of(name, axis, len(dims))
    labels = tuple(label for a in axes if (label := dims[a]) is not None)
    detail = Reduction(combiner, labels, axes, checked_flag(f"{name}: keepdims", keepdims))
    node = trace.operation("reduce", args[0].dtype, args, detail=detail)
    left = tuple(
        None if a in axes else label for a, label in enumerate(dims) if keepdims or a not in axes
    )
    trace.dims[node] = left
    parts = []
    for i, dtype in enumerate(combiner.dtypes):
        part = trace.operation("part", dtype, (node,), index=i)
        trace.dims[part] = left
        parts.append(part)
    return tuple(parts)


def require_elements(trace: ShapedTrace, dims: Dims, axis: Axis, name: str, text: str) -> None:
    """Check that a reduction has elements to reduce, in every call."""
    for a in axes_of(name, axis, len(dims)):
        label = dims[a]
        if label is not None:
            trace.check(label.root().size != 0, lambda: text, ValueError)


def _arg(name: str, x: Value, axis: int | None, keepdims: bool) -> Value:
    identity = _least(name, _value(name, x).dtype) if name == "argmax" else (
        _greatest(name, x.dtype)
    )  # fmt: skip
    if axis is not None and not isinstance(axis, int):
        raise TypeError(f"{name}: axis must be an int or None (got {spell(axis)})")
    (node,) = nodes_of(name, (x,))
    trace = _shaped(node)
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
    parts = _reduced(name, (x, Value(position)), combine, (identity, last), axis, keepdims, name)
    return parts[1]


def axes_of(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """Return the dimensions of an axis argument, in order."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple) else (axis,)
    found = []
    for one in given:
        if isinstance(one, Value):
            raise TypeError(f"{name}: axis {_TRACED}")
        if isinstance(one, bool) or not hasattr(type(one), "__index__"):
            raise not_an_axis(name, axis)
        if not -rank <= one < rank:
            raise ValueError(
                f"{name}: axis must be from {-rank} to {rank - 1}, for {rank} dimensions (got "
                f"{spell(one)})"
            )
        found.append(int(one) % rank)
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: axis has a dimension twice (got {spell(axis)})")
    return tuple(sorted(found))


def not_an_axis(name: str, axis: object) -> TypeError:
    """Return the error for an invalid axis."""
    return TypeError(f"{name}: axis must be an int, a tuple of int or None (got {spell(axis)})")


def _shaped(node: Node) -> ShapedTrace:
    # A function is first traced without shapes: when it turns out to reduce, it is traced with
    # them.
    if not isinstance(node.trace, ShapedTrace):
        raise ReducesError
    return node.trace


def _value(name: str, x: object) -> Value:
    if not isinstance(x, Value):
        raise not_a_value(name, x)
    return x


def _converted(name: str, x: Value, dtype: object) -> Value:
    own = _value(name, x).dtype
    if dtype is not None:
        return mf.astype(x, dtype)
    if own.kind in "bi":
        return mf.astype(x, dt.int64)
    return mf.astype(x, dt.uint64) if own.kind == "u" else x


def _floating(name: str, x: Value) -> Value:
    return mf.astype(x, dt.float64) if _value(name, x).dtype.kind in "biu" else x


def _squeezed(x: Value, axis: Axis) -> Value:
    """Drop reduced dimensions, which have one element."""
    (node,) = nodes_of("squeeze", (x,))
    trace = _shaped(node)
    dims = trace.of(node)
    axes = axes_of("squeeze", axis, len(dims))
    made = trace.operation("squeeze", node.dtype, (node,), detail=axes)
    trace.dims[made] = tuple(label for a, label in enumerate(dims) if a not in axes)
    return Value(made)


def _count(x: Value, axis: Axis) -> Value:
    (node,) = nodes_of("mean", (x,))
    trace = _shaped(node)
    dims = trace.of(node)
    labels = tuple(
        label for a in axes_of("mean", axis, len(dims)) if (label := dims[a]) is not None
    )
    return Value(trace.operation("count", dt.weak_int, (), detail=labels))


def _least(name: str, dtype: dt.DType) -> float:
    if dtype.kind == "f":
        return -math.inf
    if dtype.kind in "iu":
        return dt.integer_range(dtype)[0]
    raise TypeError(f"{name} takes signed, unsigned, real types (got {dtype.name})")


def _greatest(name: str, dtype: dt.DType) -> float:
    _least(name, dtype)
    return math.inf if dtype.kind == "f" else dt.integer_range(dtype)[1]
