"""Addresses of arrays, for kernels' parameters and structures: they are known when a call runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._base.places import here

if TYPE_CHECKING:
    from culaunch._function.array import StandIn


class Pointer:
    """The address of an array's element: ``x.data_ptr() + bytes``."""

    __slots__ = ("array", "offset")

    def __init__(self, array: StandIn, offset: Any = 0) -> None:
        self.array = array
        self.offset = offset  # in bytes, from where the array begins

    def __add__(self, other: Any) -> Any:
        return Pointer(self.array, self.offset + other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return Pointer(self.array, self.offset - other)

    def __mod__(self, other: Any) -> Any:
        body, root = self.array._body, self.array._root
        address = body.address(root)
        if address is None:
            # Arrays that a function allocates are aligned to 16 bytes and to their elements' size.
            if type(other) is not int or other < 1 or max(16, self.array.itemsize) % other:
                raise TypeError(
                    f"at {here().text()}: {root.name} is allocated after this is computed: ask "
                    "x.is_aligned(bytes)"
                )
            address = 0
        return (address + self.array._offset * self.array.itemsize + self.offset) % other

    def __index__(self) -> NoReturn:
        raise TypeError(
            f"at {here().text()}: the address of {self.array._root.name} is known when a call "
            "runs: pass it to a kernel, put it into a structure, or ask x.is_aligned(bytes)"
        )

    __int__ = __index__

    def _shown(self) -> str:
        return f"the address of {self.array._root.name}"
