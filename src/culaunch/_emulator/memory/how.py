"""How an access takes part in PTX's memory model."""

from __future__ import annotations

from typing import NamedTuple

# The scopes, narrow to wide. The emulator has one device: .sys reaches no more threads than .gpu.
BLOCK, CLUSTER, GRID = 0, 1, 2


class How(NamedTuple):
    """The kind of an access, and for a strong one its scope and its order."""

    kind: str
    """``"plain"``, or ``"strong"`` for atomic, volatile, relaxed, acquire and release accesses.
    ``"async"`` is cp.async. ``"bulk"`` is a bulk copy whose thread waits for a group of copies, and
    ``"counted"`` one that an mbarrier counts."""
    scope: int = GRID
    acquires: bool = False
    releases: bool = False

    @property
    def strong(self) -> bool:
        """Whether two of these accesses do not race, if the scopes include both threads."""
        return self.kind == "strong"


PLAIN, ASYNC, BULK, COUNTED = How("plain"), How("async"), How("bulk"), How("counted")
RELAXED = How("strong")
