"""The arithmetic of views: shapes, strides and offsets, which may be symbolic."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from culaunch._base.places import here
from culaunch._base.values import spell
from culaunch._function.symbolic.instructions import ceildiv, extreme

if TYPE_CHECKING:
    from collections.abc import Callable

    Shape = tuple[Any, ...]
    Check = Callable[[Any, "str | Callable[[], str]", type[Exception]], None]


def dense_strides(shape: Shape) -> Shape:
    """Return the strides of C order, in elements."""
    strides: list[Any] = []
    step: Any = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def product(sizes: Shape) -> Any:
    """Return the number of elements of a shape."""
    result: Any = 1
    for size in sizes:
        result = result * size
    return result


def is_dense(shape: Shape, strides: Shape) -> bool:
    """Tell whether the strides of all dimensions that matter are in C order."""
    expected: Any = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        # The stride of a dimension with one element is never used, so it may be anything.
        if size != 1 and stride != expected:
            # An array without elements is contiguous whatever its strides are.
            return any(bool(other == 0) for other in shape)
        expected = expected * size
    return True


def indexed(
    name: str, key: Any, shape: Shape, strides: Shape, check: Check
) -> tuple[Shape, Shape, Any]:
    """Return the shape, the strides and the offset of ``x[key]``."""
    keys = list(key) if isinstance(key, tuple) else [key]
    taken = sum(one is not None and one is not Ellipsis for one in keys)
    if taken > len(shape) or keys.count(Ellipsis) > 1:
        raise IndexError(
            f"at {here().text()}: {name} takes at most {len(shape)} indices, one per dimension "
            f"(got {taken})"
        )
    if not any(one is Ellipsis for one in keys):
        keys.append(Ellipsis)
    at = next(index for index, one in enumerate(keys) if one is Ellipsis)
    keys[at : at + 1] = [slice(None)] * (len(shape) - taken)
    sizes: list[Any] = []
    steps: list[Any] = []
    offset: Any = 0
    axis = 0
    for one in keys:
        if one is None:
            # A new dimension has the stride that keeps a dense array dense.
            rest = strides[axis] * shape[axis] if axis < len(shape) else 1
            sizes.append(1)
            steps.append(rest)
            continue
        size, stride = shape[axis], strides[axis]
        if isinstance(one, slice):
            start, length, step = _slice(one, size)
            sizes.append(length)
            steps.append(stride * step)
            offset = offset + start * stride
        else:
            index = _number(one)
            message = _out_of_range(name, axis, index, size)
            check(
                # A constant index that is not negative needs one comparison. Others need both, in
                # one path.
                (index < size) if _is_plain(index, 0) else _index_in_range(index, size),
                message,
                IndexError,
            )
            offset = offset + (index if index >= 0 else index + size) * stride
        axis += 1
    return tuple(sizes), tuple(steps), offset


def _is_plain(index: Any, least: int) -> bool:
    return type(index) is int and index >= least


def _index_in_range(index: Any, size: Any) -> Any:
    return (index < size) & (index >= -size)


def _out_of_range(name: str, axis: int, index: Any, size: Any) -> Callable[[], str]:
    return lambda: f"index {index} is out of range for axis {axis} of {name}, which has size {size}"


def _slice(one: slice, size: Any) -> tuple[Any, Any, Any]:
    step = 1 if one.step is None else _number(one.step)
    if step <= 0:
        raise ValueError(
            f"at {here().text()}: the step of a slice must be at least 1 (got {spell(one.step)})"
        )
    start = 0 if one.start is None else _bound(_number(one.start), size)
    stop = size if one.stop is None else _bound(_number(one.stop), size)
    if one.start is None and one.stop is None:
        return 0, ceildiv(size, step), step
    if type(start) is int and start == 0:
        return 0, ceildiv(stop, step), step
    return start, extreme("MAX", ceildiv(stop - start, step), 0), step


def _bound(index: Any, size: Any) -> Any:
    """Clamp a bound of a slice to the array, as Python does."""
    if index >= 0:
        return index if type(index) is int and index == 0 else extreme("MIN", index, size)
    return extreme("MAX", index + size, 0)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(
            f"at {here().text()}: an index must be an int, a slice, None or ... (got "
            f"{spell(value)})"
        )
    return (
        value if type(value) is not int and not hasattr(value, "dtype") else operator.index(value)
    )


def _size(value: Any) -> Any:
    if isinstance(value, bool) or not (hasattr(type(value), "__index__") or hasattr(value, "node")):
        raise TypeError(
            f"at {here().text()}: a shape must be an int or a tuple of ints (got {spell(value)} "
            "in the tuple)"
        )
    return value


def reshaped(name: str, given: Shape, shape: Shape, check: Check) -> Shape:
    """Return the whole shape of a reshape; one of its sizes may be -1."""
    sizes = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    sizes = tuple(map(_size, sizes))
    open_axes = [axis for axis, size in enumerate(sizes) if type(size) is int and size == -1]
    if len(open_axes) > 1:
        raise ValueError(f"at {here().text()}: only one size of a shape may be -1 (got {sizes})")
    total = product(shape)
    if open_axes:
        others = product(tuple(size for size in sizes if not (type(size) is int and size == -1)))
        check(
            others > 0,
            lambda: (
                f"{name}: -1 cannot stand for a size, because the product of the others is {others}"
            ),
            ValueError,
        )
        check(
            total % others == 0,
            lambda: f"{name} has {total} elements, which is not a multiple of {others}",
            ValueError,
        )
        at = open_axes[0]
        return (*sizes[:at], total // others, *sizes[at + 1 :])
    wanted = product(sizes)
    check(
        total == wanted,
        lambda: f"{name} has {total} elements, but the requested shape has {wanted}",
        ValueError,
    )
    return sizes


def axis_of(name: str, axis: Any, rank: int) -> int:
    """Return the number of a dimension from 0 on; negative numbers count from the end."""
    found = operator.index(axis)
    if not -rank <= found < rank:
        raise IndexError(
            f"at {here().text()}: the axis must be from {-rank} to {rank - 1} for {name} (got "
            f"{found})"
        )
    return found + rank if found < 0 else found


def permutation(name: str, axes: tuple[Any, ...], rank: int) -> tuple[int, ...]:
    """Return the order of dimensions from the arguments of permute()."""
    given = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
    order = tuple(operator.index(axis) + (rank if axis < 0 else 0) for axis in given)
    if sorted(order) != list(range(rank)):
        raise ValueError(
            f"at {here().text()}: permute() must name each of the {rank} dimensions of {name} "
            f"once (got {given})"
        )
    return order
