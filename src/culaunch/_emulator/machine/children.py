"""Launches, copies and fills that threads of a kernel make: they run after its grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.report import Related
    from culaunch._emulator.types import Lanes

_ALIGNMENT = 64  # of a parameter buffer (CUDA C++ Programming Guide, "Parameter Buffer Layout")


class ChildLaunch(NamedTuple):
    """A launch with the memory of its parameters, where the thread writes them."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    parameters: Lanes
    values: bytes = b""
    place: Related | None = None


class Children:
    """The launches of one grid, in the order in which its threads made them."""

    def __init__(self) -> None:
        self._buffers: dict[int, ChildLaunch] = {}
        self._launched: list[ChildLaunch | Callable[[], None]] = []
        self._tails: list[ChildLaunch | Callable[[], None]] = []

    def prepare(
        self, kernel: str, size: int, grid: tuple[int, ...], block: tuple[int, ...], shared: int
    ) -> int:
        """Return the address of a new parameter buffer of `size` bytes."""
        memory: Lanes = np.zeros(size + 2 * _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        parameters = memory[start : start + size]
        address = memory.ctypes.data + start
        self._buffers[address] = ChildLaunch(kernel, grid, block, shared, parameters)
        return address

    def launch(self, address: int, place: Related, *, is_tail: bool) -> bool:
        """Launch with a parameter buffer; tell whether it is one that was not launched."""
        child = self._buffers.pop(address, None)
        if child is not None:
            values = child.parameters.tobytes()
            self.add(child._replace(values=values, place=place), is_tail=is_tail)
        return child is not None

    def add(self, child: ChildLaunch | Callable[[], None], *, is_tail: bool) -> None:
        """Add a launch, or a function that runs in its place."""
        (self._tails if is_tail else self._launched).append(child)

    def in_order(self) -> list[ChildLaunch | Callable[[], None]]:
        """Return the launches: those of streams as they came, then the tail launches."""
        return [*self._launched, *self._tails]
