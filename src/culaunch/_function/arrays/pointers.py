"""Addresses of arrays, for kernels' parameters and structures. They are known only in a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._base.places import here

if TYPE_CHECKING:
    from culaunch._function.arrays.array import StandIn


class Pointer:
    """The address of an array's element: ``x.data_ptr() + bytes``."""

    __slots__ = ("array", "offset")

    def __init__(self, array: StandIn, offset: Any = 0) -> None:
        self.array = array
        self.offset = offset  # in bytes, from the beginning of the array

    def __add__(self, other: Any) -> Any:
        return Pointer(self.array, self.offset + other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Pointer):
            return self._place() - other._place(self)
        return Pointer(self.array, self.offset - other)

    def _place(self, other: Pointer | None = None) -> Any:
        """Return its offset in bytes from the beginning of its memory."""
        root = self.array._root
        if other is not None and other.array._root is not root:
            raise self.array._body.refuse(
                TypeError(
                    f"at {here().text()}: the addresses of {other.array._root.name} and "
                    f"{root.name} cannot be compared in a body, because they are known only when "
                    "a call runs: compare addresses of one array"
                )
            )
        return self.array._offset * self.array.itemsize + self.offset

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Pointer):
            return self.__index__()
        return self._place() == other._place(self)

    def __ne__(self, other: object) -> Any:
        if not isinstance(other, Pointer):
            return self.__index__()
        return self._place() != other._place(self)

    def __lt__(self, other: Any) -> Any:
        return self._place() < other._place(self)

    def __le__(self, other: Any) -> Any:
        return self._place() <= other._place(self)

    def __gt__(self, other: Any) -> Any:
        return self._place() > other._place(self)

    def __ge__(self, other: Any) -> Any:
        return self._place() >= other._place(self)

    def __mod__(self, other: Any) -> Any:
        body, root = self.array._body, self.array._root
        address = body.address(root)
        if address is None:
            # Arrays that a function allocates are aligned to 16 bytes and to their elements' size.
            if type(other) is not int or other < 1 or max(16, self.array.itemsize) % other:
                raise TypeError(
                    f"at {here().text()}: the address of {root.name} is not known in a body, "
                    "because each call allocates the array: use x.is_aligned(bytes)"
                )
            address = 0
        return (address + self.array._offset * self.array.itemsize + self.offset) % other

    def __index__(self) -> NoReturn:
        raise self.array._body.refuse(
            TypeError(
                f"at {here().text()}: the address of {self.array._root.name} is known only "
                "when a call runs: pass it to a kernel, put it into a structure, or use "
                "x.is_aligned(bytes)"
            )
        )

    def __hash__(self) -> int:
        return self.__index__()

    # It is not a text or a condition either.
    __int__ = __bool__ = __str__ = __index__

    def __format__(self, spec: str) -> NoReturn:
        self.__index__()

    def __repr__(self) -> str:
        return f"<{self._shown()}>"

    def _shown(self) -> str:
        return f"the address of {self.array._root.name}"
