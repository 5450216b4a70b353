"""The heap of malloc in kernels, which lives as long as the device."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.fault import Explanation
from culaunch._emulator.report import Related

if TYPE_CHECKING:
    from culaunch._emulator.types import Lanes

# The default of cudaLimitMallocHeapSize.
HEAP_BYTES = 8 << 20
_ALIGN = 16
# In a report: more of them rarely say more.
_MOST_LINES = 8


class Heap:
    """Blocks from malloc, and recently freed ones.

    A block lives until it is freed, in any launch, as in CUDA. The memory of freed blocks is kept
    for a while. No later block gets their addresses meanwhile, and a use of them is found.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._freed: OrderedDict[int, _Block] = OrderedDict()
        self._used = 0
        self._kept = 0

    def alloc(self, size: int, place: Related | None) -> int:
        """Return the address of `size` new bytes, null if the heap has not that much left.

        `place` is the place of the call, for a report; it is None if no check needs it.
        """
        taken = _aligned_size(size)
        if taken > HEAP_BYTES - self._used:
            return 0
        memory: Lanes = np.zeros(taken + _ALIGN, np.uint8)
        address = -(-memory.ctypes.data // _ALIGN) * _ALIGN
        self._blocks[address] = _Block(size, memory, made=place)
        self._used += taken
        return address

    def free(self, address: int, place: Related) -> None:
        """Free a block; null is allowed.

        Parameters
        ----------
        place : Related
            The place of the call, for a later report.

        Raises
        ------
        HeapError
            If `address` does not belong to a block.
        """
        if not address:
            return
        block = self._blocks.pop(address, None)
        if block is None:
            earlier = self._freed.get(address)
            raise HeapError(self._why_not(address), earlier.freed if earlier else ())
        self._used -= _aligned_size(block.size)
        block.freed = (place._replace(message=f"the free: {place.message}"),)
        self._freed[address] = block
        self._kept += _aligned_size(block.size)
        # As much as the heap itself is kept, the latest: a program that frees in a loop must not
        # grow.
        while self._kept > HEAP_BYTES:
            _, oldest = self._freed.popitem(last=False)
            self._kept -= _aligned_size(oldest.size)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Address and size of every block."""
        return [(address, block.size) for address, block in self._blocks.items()]

    def maker(self, address: int) -> str:
        """Return the place of the call that allocated a block; empty if it is not known."""
        block = self._blocks.get(address)
        return "" if block is None else _made_at(block)

    def leaks(self) -> tuple[int, int, list[Related]]:
        """Return the number, the bytes and descriptions of the blocks that are not freed.

        Blocks in an earlier report are left out.
        """
        left = [(at, block) for at, block in self._blocks.items() if not block.reported]
        lines = []
        for address, block in left:
            block.reported = True
            made = f", allocated by {_made_at(block)}" if block.made else ""
            position = block.made.position if block.made else None
            lines.append(Related(f"{counted(block.size, 'byte')} at {address:#x}{made}", position))
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [Related(f"and {len(lines) - _MOST_LINES} more")]
        return len(left), sum(block.size for _, block in left), lines

    def describe_freed(self, address: int) -> Explanation | None:
        """Describe the freed block that contains `address`; None if there is none."""
        for base, block in self._freed.items():
            if base <= address < base + max(block.size, 1):
                text = (
                    f"{counted(address - base, 'byte')} into a malloc block of "
                    f"{counted(block.size, 'byte')} that was freed"
                    + (f", allocated by {_made_at(block)}" if block.made else "")
                )
                return Explanation("use-after-free", text, block.freed)
        return None

    def _why_not(self, address: int) -> str:
        if address in self._freed:
            return f"free of {address:#x}, a block that was freed before: a double free"
        for base, block in self._blocks.items():
            if base < address < base + block.size:
                return (
                    f"free of {address:#x}, which is {counted(address - base, 'byte')} into a "
                    "malloc block, "
                    "not its start"
                )
        return f"free of {address:#x}, which malloc in a kernel did not return"


class HeapError(Exception):
    """A pointer that cannot be freed; the message says why, `earlier` where it was freed."""

    def __init__(self, message: str, earlier: tuple[Related, ...]) -> None:
        super().__init__(message)
        self.earlier = earlier


@dataclass
class _Block:
    size: int
    memory: Lanes
    freed: tuple[Related, ...] = ()
    made: Related | None = None
    reported: bool = False


def _made_at(block: _Block) -> str:
    return "" if block.made is None else block.made.message


def _aligned_size(size: int) -> int:
    return -(-max(size, 1) // _ALIGN) * _ALIGN
