"""Fused functions in the body of a function: the results of a call, from shapes and types only."""

# ruff: noqa: SLF001 - attributes that a fused function has for the extension, and for a body

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.values import counted, spell
from culaunch._core import NUMBERS
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.graph import ReducesError
from culaunch._launch.arrays.array import array_info
from culaunch._launch.formats.strides import is_dense

if TYPE_CHECKING:
    from culaunch._launch.launches.recording import RecordingBody

_MOST = NUMBERS["operands"]["MAX_OPERANDS"]
_WEAK = {"bool": dt.weak_bool, "int": dt.weak_int, "float": dt.weak_float}
# The codes of _specialize for an argument: 1 is read in place, 2 is raw, 3 is a scalar, 4 only
# provides its shape.
_SHAPED, _RAW = (1, 4), 2


class BodyCall:
    """One call of a fused function in a body.

    If no outputs are given, the body allocates them. They have the shape that the arguments
    broadcast to, and the memory order that the function itself would choose.
    """

    def __init__(self, body: RecordingBody, function: Any, arguments: tuple[Any, ...]) -> None:
        self.body = body
        self.function = function
        self.arguments = arguments
        # The same numbers as in the extension, so the same code is made. The result is known before
        # anything runs.
        numbers = bytes(map(self._number, range(len(arguments))))
        specialized = function._specialize(numbers)
        if specialized is None:
            raise ReducesError
        outputs, roles, _, uses_index, _ = specialized
        if len(outputs) + len(numbers) > _MOST:
            raise ValueError(
                f"{function.__name__} has {counted(len(outputs) + len(numbers), 'input')} and "
                "outputs "
                f"together, but at most {_MOST} are supported"
            )
        self.dtypes = [dt.DTYPES[number].name for number in outputs]
        self._uses_index = uses_index
        self._shaped = [i for i, role in enumerate(roles) if role in _SHAPED]
        self._read = [i for i, role in enumerate(roles) if role == 1]
        for i, role in enumerate(roles):
            if role == _RAW:
                self._require_dense(i)

    def run(self, out: Any) -> Any:
        """Take part in the call; return the function's result."""
        shape = self._shape(out)
        outputs = (
            self._allocated(shape)
            if out is None
            else (self._outputs(out, [shape] * len(self.dtypes)))
        )
        self.body.call(self.function, self.arguments, outputs)
        return out if out is not None else outputs[0] if len(outputs) == 1 else tuple(outputs)

    # ---- arguments

    def _number(self, index: int) -> int:
        value = self.arguments[index]
        kind = self.body.what(value)
        if kind == "array":
            return self._array_number(index, getattr(value.dtype, "name", ""))
        if kind in _WEAK:
            return _WEAK[kind].number
        if isinstance(value, complex):
            return dt.weak_complex.number
        has_dtype = hasattr(type(value), "dtype") and getattr(value, "ndim", None) == 0
        if has_dtype and not hasattr(type(value), "__setitem__"):  # a NumPy scalar
            return dt.FIRST_SCALAR + self._array_number(index, value.dtype.name)
        if hasattr(type(value), "__dlpack__"):
            return self._array_number(index, _info_dtype(value))
        raise TypeError(
            f"{self._what(index)} must be an array, a Python number or a NumPy scalar "
            f"(got {spell(value)})"
        )

    def _array_number(self, index: int, name: str) -> int:
        found = dt.BY_NAME.get(name)
        if found is None:
            raise TypeError(
                f"{self._what(index)} must have elements of one of {', '.join(dt.BY_NAME)} "
                f"(got {name or 'another type'})"
            )
        return found.number

    def _what(self, index: int) -> str:
        return f"{self.function.__name__}: argument {self.function._parameters[index]}"

    def _require_dense(self, index: int) -> None:
        value = self.arguments[index]
        if self.body.what(value) == "array":
            self.body.check(
                value.is_contiguous(),
                lambda: f"{self._what(index)} is raw and must be contiguous in C order",
                ValueError,
            )

    # ---- shapes

    def _shape(self, out: Any) -> tuple[Any, ...]:
        shapes = [(self._what(i), layout_of(self.body, self.arguments[i])[0]) for i in self._shaped]
        if not shapes:
            first = out[0] if isinstance(out, tuple) and out else out
            if first is None:
                raise ValueError(
                    f"{self.function.__name__}: no argument determines the output's shape: "
                    "pass out="
                )
            return layout_of(self.body, first)[0]
        shape: tuple[Any, ...] = ()
        for what, own in shapes:
            shape = self._broadcast(what, shape, own)
        return shape

    def _broadcast(
        self, what: str, shape: tuple[Any, ...], own: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Return the shape that two shapes broadcast to; each decision is a guard."""
        # Shapes are compared from their last dimensions; missing leading dimensions count as 1.
        missing = len(own) - len(shape)
        if missing < 0:
            own = (*[1] * -missing, *own)
        elif missing > 0:
            shape = (*[1] * missing, *shape)
        sizes = []
        for size, dim in zip(shape, own, strict=True):
            if (type(size) is int and size == 1) or dim == size:
                sizes.append(dim)
            # The body's sizes are numbers of the call. This comparison and the next are guards, and
            # another call may take another branch with its own program.
            elif dim == 1:
                sizes.append(size)
            else:
                self.body.check(
                    size == 1,
                    lambda: (
                        f"{what} of shape {_text(own)} does not broadcast with shape "
                        f"{_text(shape)} of the arguments before it"
                    ),
                    ValueError,
                )
                sizes.append(dim)
        return tuple(sizes)

    # ---- outputs

    def _allocated(self, shape: tuple[Any, ...]) -> list[Any]:
        # A kernel that reads an element's index counts in C order, so its output must be in C
        # order.
        order = None if self._uses_index else self._order(shape)
        made = []
        for dtype in self.dtypes:
            if order is None:
                made.append(self.body.empty(shape, dtype))
                continue
            array = self.body.empty([shape[axis] for axis in order], dtype)
            made.append(array.permute(*(order.index(axis) for axis in range(len(order)))))
        return made

    def _order(self, shape: tuple[Any, ...]) -> list[int] | None:
        """Return the dimensions from the outermost in memory on; None: C order.

        The first argument that has the shape of the output decides, as in a call.
        """
        for i in self._read:
            own, strides, is_dense = layout_of(self.body, self.arguments[i])
            if len(own) != len(shape) or not all(a == b for a, b in zip(own, shape, strict=True)):
                continue
            if len(own) < 2 or is_dense():
                return None
            return _memory_order(own, strides)
        return None

    def _outputs(self, out: Any, shapes: list[tuple[Any, ...]]) -> list[Any]:
        count = len(self.dtypes)
        outputs = list(out) if isinstance(out, tuple) else [out]
        name = self.function.__name__
        if len(outputs) != count or (isinstance(out, tuple) and count == 1):
            wanted = "an array" if count == 1 else f"a tuple of {count} arrays"
            raise TypeError(f"{name}: out must be {wanted} (got {type(out)})")
        for i, (array, dtype) in enumerate(zip(outputs, self.dtypes, strict=True)):
            what = f"{name}: out" if count == 1 else f"{name}: out[{i}]"
            if self.body.what(array) != "array":
                raise TypeError(
                    f"{what} must be an array of the body: an argument, an allocation, or a "
                    f"view of one (got {spell(array)})"
                )
            if array.dtype.name != dtype:
                raise TypeError(
                    f"{what} must be {dtype}, the type of the result (got {array.dtype.name})"
                )
            own, shape = array.shape, shapes[i]
            if len(own) != len(shape):
                raise ValueError(f"{what} must have shape {_text(shape)} (got {_text(own)})")
            for dim, size in zip(own, shape, strict=True):
                self.body.check(
                    dim == size,
                    lambda what=what, own=own, shape=shape: (  # type: ignore[misc]
                        f"{what} must have shape {_text(shape)} (got {_text(own)})"
                    ),
                    ValueError,
                )
        return outputs


def layout_of(body: RecordingBody, value: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
    """Return shape, strides, and a number that says whether it is dense."""
    if body.what(value) == "array":
        return value.shape, value.strides, value.is_contiguous
    info = array_info(value)
    return info.shape, info.strides, lambda: is_dense(info.shape, info.strides)


def _info_dtype(value: Any) -> str:
    info = array_info(value)
    found = [one.name for one in dt.DTYPES if (one.code, one.bits) == (info.code, info.bits)]
    return found[0] if found else ""


def _memory_order(shape: tuple[Any, ...], strides: tuple[Any, ...]) -> list[int] | None:
    """Return the dimensions from the outermost in memory to the innermost; None: C order.

    Like MemoryOrder in csrc/elementwise/layout.cpp: a dimension of one element, or one that is
    broadcast, has no place in memory.
    """
    order = list(range(len(shape)))

    def is_before(a: int, b: int) -> bool:
        if shape[a] <= 1 or shape[b] <= 1 or strides[a] == 0 or strides[b] == 0:
            return False
        return bool(abs(strides[a]) > abs(strides[b]))

    for end in range(1, len(shape)):
        d = end
        while d > 0 and is_before(order[d], order[d - 1]):
            order[d], order[d - 1] = order[d - 1], order[d]
            d -= 1
    # Insertion sort, because the order of equal strides, and of those that do not matter, must be
    # the same as in the extension.
    return None if order == sorted(order) else order


def _text(shape: tuple[Any, ...]) -> str:
    return f"({', '.join(f'{size}' for size in shape)}{',' if len(shape) == 1 else ''})"
