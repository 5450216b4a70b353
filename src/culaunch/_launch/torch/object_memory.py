"""The memory of another library's C++ objects, in which fields are found by their values."""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class ObjectMemory:
    """Copies of the memory of C++ objects of one class, from their addresses."""

    def __init__(self, addresses: list[int]) -> None:
        self._bytes = [memory_of(address) for address in addresses]
        self._size = min(map(len, self._bytes))

    def __len__(self) -> int:
        return len(self._bytes)

    def offsets(self, step: int) -> range:
        return range(8, self._size - step + 1, step)

    def read(self, i: int, offset: int, code: str) -> int:
        """Read a number of one object; -1 past the common length."""
        if not 0 <= offset <= self._size - struct.calcsize(code):
            return -1
        return int(struct.unpack_from(code, self._bytes[i], offset)[0])

    def only(self, step: int, fits: Callable[[Callable[..., int], int], bool]) -> int:
        """Return the only offset at which every object fits: fits(read, i), read(beyond=0)."""
        return only(
            offset
            for offset in self.offsets(step)
            if all(
                fits(lambda beyond=0: self.read(i, offset + beyond, "<Q"), i)  # noqa: B023
                for i in range(len(self))
            )
        )


def only(found: Iterable[int]) -> int:
    """Return the only item; ValueError if there are none or several."""
    (offset,) = found
    return offset


def memory_of(address: int) -> bytes:
    """Return a copy of the memory of a C++ object."""
    import ctypes

    return ctypes.string_at(address, usable_size(address))


def word_at(address: int) -> int:
    """Read eight bytes."""
    import ctypes

    return ctypes.c_uint64.from_address(address).value


def usable_size(address: int) -> int:
    """Return how many bytes of a C++ object may be read, according to the allocator."""
    return _malloc_usable_size()(address)


@functools.cache
def _malloc_usable_size() -> Callable[[int], int]:
    import ctypes

    function = ctypes.CDLL(None).malloc_usable_size
    function.argtypes, function.restype = (ctypes.c_void_p,), ctypes.c_size_t
    return function
