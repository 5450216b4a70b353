"""How many bytes of each array a kernel reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.types import Lanes


@dataclass(frozen=True)
class ArgumentCounts:
    """The accesses to the arrays that were one argument of some launches."""

    index: int
    """The number of the argument."""
    size: int
    """The bytes of the different arrays."""
    # How many of these bytes were read, and written. An atomic operation does both.
    read_bytes: int
    written_bytes: int

    def __str__(self) -> str:
        counts = ((self.read_bytes, "read"), (self.written_bytes, "written"))
        done = [f"{count:,} {word}" for count, word in counts if count] or ["none accessed"]
        return f"argument {self.index}: of {self.size:,} bytes, {', '.join(done)}"


class ArgumentBytes(NamedTuple):
    """A flag for each byte of an array, whether it was read, and written."""

    base: int
    read: Lanes
    written: Lanes

    @classmethod
    def of(cls, base: int, size: int) -> ArgumentBytes:
        """Make the flags of an array that nothing has accessed."""
        return cls(base, np.zeros(size, bool), np.zeros(size, bool))

    def add(self, address: Lanes, size: int, verb: str) -> None:
        """Mark accesses of `size` bytes."""
        end = self.base + self.read.shape[0]
        if int(address.max()) + size <= self.base or int(address.min()) >= end:
            return
        at = ((address - self.base)[:, None] + np.arange(size)).reshape(-1)
        at = at[(at >= 0) & (at < end - self.base)]
        if verb != "write":
            self.read[at] = True
        if verb != "read":
            self.written[at] = True


def argument_counts(arrays: Iterable[tuple[int, ArgumentBytes]]) -> tuple[ArgumentCounts, ...]:
    """Add up the arrays of each argument; they come with its number."""
    found: dict[int, ArgumentCounts] = {}
    for index, one in arrays:
        old = found.get(index, ArgumentCounts(index, 0, 0, 0))
        found[index] = ArgumentCounts(
            index,
            old.size + one.read.shape[0],
            old.read_bytes + int(one.read.sum()),
            old.written_bytes + int(one.written.sum()),
        )
    return tuple(found[index] for index in sorted(found))
