"""A value of one thread that records what NumPy would do to it.

The instructions' decoders make functions of NumPy arrays. Called with a `Lane` in place of an
array, a function writes its own C code: NumPy's protocols (``__array_ufunc__`` and
``__array_function__``) hand over each operation. Both engines therefore share one meaning of
each instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from culaunch._emulator.compiled.c_types import bitcast, c_type, convert, literal
from culaunch._emulator.compiled.ufuncs import TEMPLATES, Untraceable, loop_types

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from culaunch._emulator.compiled.trace import Trace

__all__ = ["Lane", "Untraceable"]


class _Cell:
    """The bits of a value. Views share them, like views of an array."""

    def __init__(self, name: str, dtype: np.dtype[Any]) -> None:
        self.name = name
        self.dtype = dtype


class Lane(NDArrayOperatorsMixin):
    """A stand-in for an array of one element, or of several for a packed type."""

    def __init__(
        self,
        trace: Trace,
        names: Sequence[str | _Cell],
        dtype: np.dtype[Any],
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self.trace = trace
        self.dtype = dtype
        self.cells = [_Cell(n, dtype) if isinstance(n, str) else n for n in names]
        self.shape = shape or (len(self.cells),)

    # A part of a longer array, as this is, is contiguous.
    flags = np.zeros(1).flags

    def names(self) -> list[str]:
        """Return the C names of the values."""
        return [bitcast(cell.name, cell.dtype, self.dtype) for cell in self.cells]

    @property
    def name(self) -> str:
        """The C name of a single value."""
        if len(self.cells) != 1:
            raise Untraceable("a packed value")
        return self.names()[0]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        dtype, out = options.pop("dtype", None), options.pop("out", None)
        if method != "__call__" or options:
            raise Untraceable(f"{ufunc.__name__}.{method}")
        result = self._apply(ufunc, inputs, dtype)
        if out is None:
            return result
        return out[0].assign(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None:
            raise Untraceable(function.__name__)
        return known(self, *args, **kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Untraceable("an array is needed")

    __index__ = __int__ = __float__ = __iter__ = __len__ = __array__

    def __bool__(self) -> bool:
        return self.trace.decide(self.astype(np.dtype(bool)).name)

    def view(self, dtype: Any) -> Lane:
        """Return the same bits as another type."""
        want = np.dtype(dtype)
        if want.itemsize == self.dtype.itemsize:
            return Lane(self.trace, self.cells, want, self.shape)
        have, wide = self.dtype.itemsize, want.itemsize
        bits = self.view(f"u{have}").names()
        parts = []
        if wide < have:
            part = np.dtype(f"u{wide}")
            shifts = range(0, 8 * have, 8 * wide)
            parts = [self.let(f"({bit}) >> {shift}", part) for bit in bits for shift in shifts]
            return Lane(self.trace, parts, part).view(want)
        whole, count = np.dtype(f"u{wide}"), wide // have
        if len(bits) % count:
            raise Untraceable("a view of several values")
        for start in range(0, len(bits), count):
            terms = [
                f"(({c_type(whole)})({bit}) << {8 * have * i})"
                for i, bit in enumerate(bits[start : start + count])
            ]
            parts.append(self.let(" | ".join(terms), whole))
        return Lane(self.trace, parts, whole).view(want)

    def astype(self, dtype: Any) -> Lane:
        """Convert to another type."""
        want = np.dtype(dtype)
        names = [self.let(convert(name, self.dtype, want), want) for name in self.names()]
        return Lane(self.trace, names, want, self.shape)

    def copy(self) -> Lane:
        """Return the value in a variable of its own."""
        return self.astype(self.dtype)

    def byteswap(self) -> Lane:
        """Return the value with its bytes in reverse order."""
        swap = f"__builtin_bswap{8 * self.dtype.itemsize}"
        names = [self.let(f"{swap}({name})", self.dtype) for name in self.names()]
        return Lane(self.trace, names, self.dtype)

    def any(self) -> Any:
        """Tell whether any is true: true for a group whose lanes differ."""
        return self._fold(np.logical_or) if self.trace.forks else True

    def all(self) -> Any:
        """Tell whether all are true: false for a group whose lanes differ."""
        return self._fold(np.logical_and) if self.trace.forks else False

    def max(self, *, initial: Any) -> Lane:
        """Return the largest value of the lanes: there is only one here."""
        return self._fold(np.maximum, initial)

    def min(self, *, initial: Any) -> Lane:
        """Return the smallest value."""
        return self._fold(np.minimum, initial)

    def sum(self, *, axis: int) -> Lane:
        """Return the sum of packed values."""
        if self.shape[0] != 1 or axis != 1:
            raise Untraceable("a sum of lanes")
        return self._fold(np.add)

    def reshape(self, *_: Any) -> Lane:
        """Return the packed values of the lane as a row, or the other way round."""
        return Lane(self.trace, self.cells, self.dtype, (1, len(self.cells)))

    def __getitem__(self, key: Any) -> Lane:
        if isinstance(key, tuple) and len(key) == 2 and len(self.shape) == 2:
            cells = self.cells[key[1]]
            if isinstance(cells, list):
                return Lane(self.trace, cells, self.dtype, (1, len(cells)))
            return Lane(self.trace, [cells], self.dtype)
        if isinstance(_mask(key), Lane):
            return self  # its users look only at lanes whose mask is true
        raise Untraceable("an index")

    def __setitem__(self, key: Any, value: Any) -> None:
        mask = _mask(key)
        if not isinstance(mask, Lane):
            raise Untraceable("an index")
        value = value.astype(self.dtype) if isinstance(value, Lane) else np.array(value)
        self.assign(_where(self, mask, value.astype(self.dtype), self))

    def assign(self, value: Lane) -> Lane:
        """Take another value, as all views do."""
        value = value.astype(self.dtype)
        for cell, new in zip(self.cells, value.cells, strict=True):
            cell.name, cell.dtype = new.name, new.dtype
        return self

    def _fold(self, ufunc: np.ufunc, initial: Any = None) -> Lane:
        parts = [Lane(self.trace, [cell], self.dtype) for cell in self.cells]
        result = parts[0]
        for part in parts[1:]:
            result = ufunc(result, part)
        return result if initial is None else ufunc(result, initial)

    def let(self, expression: str, dtype: np.dtype[Any]) -> str:
        """Name the value of a C expression."""
        return self.trace.let(expression, c_type(dtype))

    def _apply(self, ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: Any) -> Any:
        template = TEMPLATES.get(ufunc)
        if template is None:
            raise Untraceable(ufunc.__name__)
        takes, gives = loop_types(ufunc, [_sample(x) for x in inputs], dtype)
        columns, shape = _columns(inputs, takes)
        results: list[list[str]] = [[] for _ in gives]
        for row in zip(*columns, strict=True):
            # Each operand is named once: a template may use it several times.
            values = [self.let(x, kind) for x, kind in zip(row, takes, strict=True)]
            for names, text, kind in zip(results, template(takes[0], *values), gives, strict=True):
                names.append(self.let(text, kind))
        lanes = [Lane(self.trace, n, k, shape) for n, k in zip(results, gives, strict=True)]
        return lanes[0] if len(lanes) == 1 else tuple(lanes)


def _columns(
    inputs: Sequence[Any], kinds: Sequence[np.dtype[Any]]
) -> tuple[list[list[str]], tuple[int, ...]]:
    """Return the operands by part, converted; an operand with a single part is used for each."""
    columns: list[list[str]] = []
    shape: tuple[int, ...] = (1,)
    for value, kind in zip(inputs, kinds, strict=True):
        if isinstance(value, Lane):
            names = [convert(name, value.dtype, kind) for name in value.names()]
            if len(value.shape) > len(shape) or value.shape[-1] > shape[-1]:
                shape = value.shape
        else:
            flat = np.asarray(value).reshape(-1)
            names = [literal(item, kind) for item in flat]
        columns.append(names)
    count = max(map(len, columns))
    if any(len(names) not in (1, count) for names in columns):
        raise Untraceable("operands of different shapes")
    return [names * count if len(names) == 1 else names for names in columns], shape


def _sample(value: Any) -> Any:
    return np.zeros(1, value.dtype) if isinstance(value, Lane) else value


def _mask(key: Any) -> Any:
    return key[0] if isinstance(key, tuple) and len(key) == 1 else key


def _where(like: Lane, condition: Any, a: Any, b: Any) -> Lane:
    kind = np.where(np.zeros(1, bool), _sample(a), _sample(b)).dtype
    columns, shape = _columns([condition, a, b], [np.dtype(bool), kind, kind])
    names = [like.let(f"{c} ? {x} : {y}", kind) for c, x, y in zip(*columns, strict=True)]
    return Lane(like.trace, names, kind, shape)


def _clip(_: Lane, value: Lane, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(value, low), high)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.clip: _clip,
    np.broadcast_to: lambda _, value, _shape: value,
    np.broadcast_arrays: lambda _, *values: values,
    np.nonzero: lambda _, mask: (mask,),
    np.zeros_like: lambda _, value: np.zeros(1, value.dtype),
}
