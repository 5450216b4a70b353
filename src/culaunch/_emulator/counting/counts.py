"""The numbers that are counted for a line of code, and their sum."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field


@dataclass
class Counts:
    """The work of the threads of some launches.

    The terms are those of Nsight Compute. A sector is 32 bytes of global memory. A wavefront is a
    pass of a warp's access through the 32 banks of shared memory.
    """

    warps: int = 0
    """Instructions that warps executed."""
    threads: int = 0
    """Instructions that threads executed, also those whose predicate was false."""
    active: int = 0
    """Instructions that threads executed with a true predicate."""
    # Conditional branches of warps, and those after which the threads of a warp parted.
    branches: int = 0
    divergent: int = 0
    flops: int = 0
    """Floating-point operations: a fused multiply-add is two."""
    # Accesses of warps to global memory, and the bytes that their threads asked for.
    global_requests: int = 0
    global_bytes: int = 0
    # Sectors that these accesses moved, and the number if their bytes were adjacent.
    sectors: int = 0
    ideal_sectors: int = 0
    # Accesses of warps to shared memory, and the bytes that their threads asked for.
    shared_requests: int = 0
    shared_bytes: int = 0
    # Passes that these accesses took, and the number without bank conflicts.
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    local_bytes: int = 0
    """Bytes of local memory that threads accessed."""
    # Atomic operations of warps, and the number of steps in which each address is updated once.
    atomic_requests: int = 0
    atomic_passes: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    """These instructions by kind: ``"integer"`` and ``"float"`` for arithmetic and comparisons,
    ``"memory"``, ``"atomic"``, ``"matrix"``, ``"move"``, ``"control"``, ``"synchronization"``."""

    @property
    def active_lanes(self) -> float:
        """How many of the 32 lanes of a warp were active, on average."""
        return self.active / self.warps if self.warps else 0.0

    @property
    def bank_conflicts(self) -> int:
        """The wavefronts that bank conflicts added."""
        return self.wavefronts - self.ideal_wavefronts

    def add(self, other: Counts) -> None:
        """Add the numbers of another one."""
        for kind, number in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + number
        for one in dataclasses.fields(Counts):
            if one.name != "kinds":
                setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
