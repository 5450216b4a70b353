"""The threads that make an access to memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from culaunch._emulator.types import Lanes


class Threads(Protocol):
    """The lanes of an access, as a memory needs to know them to report one of them."""

    n: int
    lanes: Lanes

    def lane_at(self, index: int) -> int:
        """Return the chunk's lane that is at `index`."""
        raise NotImplementedError
