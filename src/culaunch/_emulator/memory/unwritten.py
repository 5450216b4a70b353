"""Allocations of device memory that begin undefined, until something writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.memory.scratch import Scratch
from culaunch._emulator.memory.undefined_bytes import UndefinedBytes

if TYPE_CHECKING:
    from culaunch._emulator.types import Lanes

_UNIT = 8


class Unwritten:
    """The bytes of an allocation that nothing has written.

    Kernels tell which bytes they write. The host does not: it copies through the driver, or writes
    through an array that shares the memory. So random bytes fill the allocation at first. If one
    of eight bytes has changed since, all eight count as written.

    Parameters
    ----------
    address, size : int
        The allocation.
    memory : numpy.ndarray
        Its bytes, a multiple of 16 of them.
    """

    def __init__(self, address: int, size: int, memory: Lanes) -> None:
        self._memory = memory
        # Two allocations of one size get the same bytes, so a copy stays unwritten.
        self._fill: Lanes = np.frombuffer(
            np.random.default_rng(size).bytes(memory.shape[0]), np.uint8
        )
        memory[:] = self._fill
        # The map needs only the layout. Its own bytes take no memory, because nothing touches them.
        layout = Scratch("global", 1, size)
        self._bytes = UndefinedBytes(layout, undefined=True, base=address)

    def bytes_of(self, size: int) -> UndefinedBytes | None:
        """Return the map of the unwritten bytes; None if there are none, or for another size."""
        if size != self._memory.shape[0]:
            return None
        undefined = self._bytes.map
        changed = (self._memory != self._fill) & (undefined.by_size[1] != 0)
        undefined.by_size[_UNIT][changed.reshape(-1, _UNIT).any(axis=1)] = 0
        return self._bytes if self._bytes.any else None

    def end_launch(self) -> None:
        """Forget the changes by a kernel: a sum of unwritten bytes and others stays unwritten."""
        self._fill = self._memory.copy()
