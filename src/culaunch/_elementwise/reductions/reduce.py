"""Reductions with any operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag
from culaunch._elementwise.reductions.axes import TRACED, axes_of, require_elements, shaped
from culaunch._elementwise.reductions.combiner import make_combiner
from culaunch._elementwise.reductions.labels import Reduction
from culaunch._elementwise.trace import Value, nodes_of, not_a_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._elementwise.graph import Node, Number
    from culaunch._elementwise.reductions.axes import Axis
    from culaunch._elementwise.reductions.combiner import Combiner


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

    Raises
    ------
    TypeError
        If `identity` does not have one number for each component.

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
    parts = reduced("reduce", values, combine, numbers, axis, keepdims)
    if post is not None:
        return post(*parts)
    return parts if isinstance(map, tuple) else parts[0]


def single(
    name: str,
    x: Value,
    combine: Callable[..., Any],
    identity: Number,
    axis: Axis,
    keepdims: bool,
    refused_empty: str = "",
) -> Value:
    return reduced(name, (x,), combine, (identity,), axis, keepdims, refused_empty)[0]


def reduced(
    name: str,
    values: tuple[Value, ...],
    combine: Callable[..., Any],
    identity: tuple[Number, ...],
    axis: Axis,
    keepdims: bool,
    refused_empty: str = "",
) -> tuple[Value, ...]:
    for value in values:
        as_value(name, value)
    args = nodes_of(name, values)
    if refused_empty:
        trace = shaped(args[0])
        text = f"{trace.name}: {refused_empty} cannot reduce zero elements"
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
        raise TypeError(f"{name}: keepdims {TRACED}")
    trace = shaped(args[0])
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


def as_value(name: str, x: object) -> Value:
    if not isinstance(x, Value):
        raise not_a_value(name, x)
    return x
