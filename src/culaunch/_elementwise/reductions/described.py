"""The kernels that a call of a reducing function launches, without a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._elementwise.reductions.call import ReductionCall
from culaunch._launch import Device
from culaunch._launch.arrays.array import array_info
from culaunch._launch.formats.dtype import from_dlpack
from culaunch._launch.formats.strides import is_dense

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from culaunch._elementwise.reductions.kernel_text import KernelText


class _Described:
    """An array with a known shape, strides and alignment."""

    def __init__(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, address: int
    ) -> None:
        self.shape, self.strides, self.dtype, self.address = shape, strides, dtype, address

    def is_contiguous(self) -> bool:
        return is_dense(self.shape, self.strides)

    def is_aligned(self, bytes_: int) -> bool:
        return self.address % bytes_ == 0


class _DescribingBody:
    """A body that collects the texts of kernels."""

    mode = "described"

    def __init__(self, name: str, ordinal: int) -> None:
        self.name, self.ordinal = name, ordinal
        self.device = Device(ordinal)
        self.texts: list[KernelText] = []

    def what(self, value: object) -> str | None:
        if isinstance(value, _Described):
            return "array"
        return type(value).__name__ if isinstance(value, (bool, int, float)) else None

    def empty(self, shape: Sequence[int], dtype: str, *, zeros: bool = False) -> _Described:  # noqa: ARG002
        from culaunch._elementwise import dtypes as dt

        return _Described(tuple(shape), _dense(shape), dt.BY_NAME[dtype], 0)

    def check(
        self, condition: bool, message: str | Callable[[], str], exception: type[Exception]
    ) -> None:
        if not condition:
            raise exception(message if isinstance(message, str) else message())


def texts_of(function: Any, arguments: tuple[Any, ...], out: Any) -> tuple[
    list[KernelText], int
]:  # fmt: skip
    """Return the texts of the kernels of a call, in their order, and the device."""
    given = tuple(map(_described, out)) if isinstance(out, tuple) else _described(out)
    call = _described_call(function, arguments)
    call.run(given)
    return call.body.texts, call.body.ordinal  # type: ignore[attr-defined]


def runs_in_place(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Tell whether a call may write its result over one of its arguments."""
    return _described_call(function, arguments).runs_in_place


def _described_call(function: Any, arguments: tuple[Any, ...]) -> ReductionCall:
    described = tuple(map(_described, arguments))
    ordinal = next((array_info(one).device[1] for one in arguments if _is_array(one)), 0)
    body: Any = _DescribingBody(function.__name__, ordinal)
    return ReductionCall(body, function, described)


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides[: len(shape)])


def _is_array(value: object) -> bool:
    return hasattr(type(value), "__setitem__") or hasattr(type(value), "__dlpack__")


def _described(value: Any) -> Any:
    if value is None or not _is_array(value):
        return value
    info = array_info(value)
    return _Described(info.shape, info.strides, from_dlpack(info.code, info.bits), info.address)
