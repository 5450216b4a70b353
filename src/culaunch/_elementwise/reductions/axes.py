"""The dimensions that a reduction goes over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.graph import ReducesError
from culaunch._elementwise.reductions.labels import ShapedTrace
from culaunch._elementwise.trace import Value, nodes_of

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.labels import Dims

    Axis = int | tuple[int, ...] | None

TRACED = (
    "must be known while the function is traced, but a parameter is an argument even if it has a "
    "default: close over the number instead"
)


def axes_of(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """Return the dimensions of an axis argument, in order."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple) else (axis,)
    found = []
    for one in given:
        if isinstance(one, Value):
            raise TypeError(f"{name}: axis {TRACED}")
        if isinstance(one, bool) or not hasattr(type(one), "__index__"):
            raise not_an_axis(name, axis)
        if rank == 0:
            raise ValueError(
                f"{name}: axis must be None or () for an array without dimensions (got "
                f"{spell(axis)})"
            )
        if not -rank <= one < rank:
            raise ValueError(
                f"{name}: axis must be from {-rank} to {rank - 1}, with rank {rank} (got "
                f"{spell(one)})"
            )
        found.append(int(one) % rank)
    if len(set(found)) != len(found):
        raise ValueError(f"{name}: axis has a dimension twice (got {spell(axis)})")
    return tuple(sorted(found))


def not_an_axis(name: str, axis: object) -> TypeError:
    """Return the error for an invalid axis."""
    return TypeError(f"{name}: axis must be an int, a tuple of int or None (got {spell(axis)})")


def require_elements(trace: ShapedTrace, dims: Dims, axis: Axis, name: str, text: str) -> None:
    """Check that a reduction has elements to reduce, in every call."""
    for a in axes_of(name, axis, len(dims)):
        label = dims[a]
        if label is not None:
            trace.check(label.root().size != 0, lambda: text, ValueError)


def shaped(node: Node) -> ShapedTrace:
    # A function is first traced without shapes. If it reduces, it is traced again with shapes.
    if not isinstance(node.trace, ShapedTrace):
        raise ReducesError
    return node.trace


def squeezed(x: Value, axis: Axis) -> Value:
    """Drop reduced dimensions, which have one element."""
    (node,) = nodes_of("squeeze", (x,))
    trace = shaped(node)
    dims = trace.of(node)
    axes = axes_of("squeeze", axis, len(dims))
    made = trace.operation("squeeze", node.dtype, (node,), detail=axes)
    trace.dims[made] = tuple(label for a, label in enumerate(dims) if a not in axes)
    return Value(made)


def counted(x: Value, axis: Axis) -> Value:
    (node,) = nodes_of("mean", (x,))
    trace = shaped(node)
    dims = trace.of(node)
    labels = tuple(
        label for a in axes_of("mean", axis, len(dims)) if (label := dims[a]) is not None
    )
    return Value(trace.operation("count", dt.weak_int, (), detail=labels))
