"""How an access takes part in PTX's memory model."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ASYNC", "BLOCK", "BULK", "CLUSTER", "COUNTED", "GRID", "PLAIN", "RELAXED", "How"]

# The scopes, narrow to wide. The emulator has one device: .sys reaches no more threads than .gpu.
BLOCK, CLUSTER, GRID = 0, 1, 2


class How(NamedTuple):
    """The kind of an access, and for a strong one its scope and its order.

    `kind` is ``"plain"``; ``"strong"`` (atomic, volatile, relaxed, acquire, release); ``"async"``
    (cp.async); ``"bulk"``, a bulk copy that ends with a wait of its thread for the copy's group;
    or ``"counted"``, a bulk copy that ends at an mbarrier.
    """

    kind: str
    scope: int = GRID
    acquires: bool = False
    releases: bool = False

    @property
    def strong(self) -> bool:
        """Whether two of these accesses do not race, if the scopes include both threads."""
        return self.kind == "strong"


PLAIN, ASYNC, BULK, COUNTED = How("plain"), How("async"), How("bulk"), How("counted")
RELAXED = How("strong")
